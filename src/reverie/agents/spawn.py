"""Starts agents and keeps their tree: who may start whom, within which limits, and where a result goes.

One spawner per session. Every agent runs as a background task, so it is listed and can be killed, and its errors stop
at the edge of the task. `find_lost_agents` reads from a transcript which agents ran when the session ended.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from reverie.agents.children import (
    AgentResult,
    AgentSetup,
    Running,
    fork_child,
    fresh_agent,
    has_begun,
    is_fork,
    step_line,
)
from reverie.agents.companion import AgentCompanion, Batch
from reverie.agents.definition import GENERAL, AgentDefinition
from reverie.agents.host import ContextOrder, SpawnerHost
from reverie.agents.messages.message import new_message
from reverie.agents.messages.roster import MAIN, AgentMode, Member, MemberState, Roster
from reverie.agents.worktree import Worktree, check_repo
from reverie.errors import ReverieError, UserError
from reverie.events import Event, ToolStarted
from reverie.prompts import render
from reverie.quick import dataclass
from reverie.runtime.tasks import Task, TaskHandle, TaskInfo, Tasks, TaskState
from reverie.tools.base import AgentOrder, ToolOutput
from reverie.types import JsonObject, Origin, Purpose, Record, TextBlock, ToolUseBlock

_WHY_NOT = {
    AgentMode.FORK: "You are a fork, and a fork cannot start agents: do it yourself.",
    AgentMode.WORKER: "You are a worker, and a worker cannot start agents: do it yourself, or report what is left.",
    AgentMode.TEAMMATE: "You are a teammate, and a teammate cannot start agents: do it yourself, or write to others.",
    AgentMode.SIDE_QUESTION: "A side question is answered without tools.",
}
FORK_ROUNDS = 200  # the most rounds of a fork, whatever the settings allow
IN_BACKGROUND = frozenset({AgentMode.FORK, AgentMode.WORKER, AgentMode.TEAMMATE})


@dataclass(slots=True, eq=False)
class _Child:
    """One agent, from the order to its report."""

    member: Member
    mode: AgentMode
    order: AgentOrder
    kind: AgentDefinition | None
    parent: AgentCompanion
    background: bool
    batch: Batch | None
    reported: bool = False
    tree: Worktree | None = None
    tree_note: str = ""
    result: AgentResult | None = None
    told: Sequence[TextBlock] = ()


class Spawner:
    """The agents of one session. `main` is the companion of the main agent; for `waits` see `AgentCompanion`."""

    def __init__(self, host: SpawnerHost, tasks: Tasks, roster: Roster, *, waits: bool) -> None:
        self.host = host
        self.tasks = tasks
        self.roster = roster
        self._children: dict[str, _Child] = {}
        self.started = set[str]()  # the names of all agents that were ever started
        member = roster.find(MAIN) or roster.add(Member(MAIN, MAIN, AgentMode.MAIN))
        self.main = self._companion(member, waits=waits)

    def _companion(self, member: Member, *, waits: bool = True) -> AgentCompanion:
        may_end = None if member.mode is AgentMode.MAIN else self.host.may_end(member)
        return AgentCompanion(member, self.start, self.at_work_below, waits=waits, may_end=may_end)

    # -- starting -------------------------------------------------------------------------------------------------

    async def start(self, companion: AgentCompanion, order: AgentOrder) -> ToolOutput:
        """Starts the agent that a call of the Agent tool orders. Returns its result, or that it has started."""
        mode = self._mode(companion, order)
        kind = self._kind(mode, order)
        self._check_limits(companion, order)
        name = self._name(order, kind, mode)
        background = mode in IN_BACKGROUND or bool(order.background)
        member = Member(name, "", mode, parent=companion.member.id, title=order.description)
        member.kind = kind.name if kind is not None else mode.value
        child = _Child(
            member, mode, order, kind, companion, background, companion.batch() if mode is AgentMode.FORK else None
        )
        if order.isolated:
            check_repo(companion.thread.context.cwd)
        task = self.tasks.start(Purpose.AGENT, f"{name}: {order.description}", lambda handle: self._work(child, handle))
        member.id = task.id
        self.roster.add(member)
        self._children[task.id] = child
        self.started.add(name)
        if not background:
            return await self._wait_for(task, child)
        return ToolOutput(
            f"Started {name}, a {mode.value} ({task.id}). {PROMISE}",
            structured={"agent": task.id, "name": name, "background": True},
        )

    def _mode(self, companion: AgentCompanion, order: AgentOrder) -> AgentMode:
        refusal = _WHY_NOT.get(companion.member.mode)
        if refusal is None and is_fork(companion.view):
            refusal = _WHY_NOT[AgentMode.FORK]
        if refusal is not None:
            raise UserError(refusal)
        if order.teammate:
            return AgentMode.TEAMMATE
        if order.kind is not None:
            return AgentMode.SUB_AGENT
        header = companion.view.header
        if header is not None and header.flags.get("coordinator") and companion.member.mode is AgentMode.MAIN:
            return AgentMode.WORKER
        return AgentMode.FORK if self.host.is_on("fork_children") else AgentMode.SUB_AGENT

    def _kind(self, mode: AgentMode, order: AgentOrder) -> AgentDefinition | None:
        if mode in (AgentMode.FORK, AgentMode.WORKER):
            return None
        kinds = self.host.kinds().kinds
        found = kinds.get(order.kind or GENERAL)
        if found is None:
            raise UserError(f"There is no kind of agent called {order.kind!r}: there are {', '.join(sorted(kinds))}.")
        return found

    def _check_limits(self, companion: AgentCompanion, order: AgentOrder) -> None:
        limits = self.host.limits()
        if self.roster.depth(companion.member.id) >= limits.depth:
            raise UserError(
                f"You are {limits.depth} levels below the main agent, and agents may not start agents any deeper "
                "(agents.depth): do it yourself."
            )
        at_work = [m.name for m in self.roster if m.mode is not AgentMode.MAIN and m.state is MemberState.RUNNING]
        if len(at_work) >= limits.at_once:
            raise UserError(
                f"{len(at_work)} agents are running, which is the limit (agents.at_once): {', '.join(at_work)}. "
                f"Wait for one of them before you start {order.description!r}."
            )

    def _name(self, order: AgentOrder, kind: AgentDefinition | None, mode: AgentMode) -> str:
        if order.name is None:
            wanted = kind.name if kind is not None else "-".join(order.description.lower().split()[:4])
            return self.roster.free_name(wanted if wanted.isascii() else mode.value)
        if (reason := self.roster.why_not(order.name)) is not None:
            raise UserError(f"{reason}.")
        return order.name

    async def _wait_for(self, task: Task[str], child: _Child) -> ToolOutput:
        try:
            info = await task.wait()
        except asyncio.CancelledError:
            await self.tasks.kill(task.id)
            raise
        result = child.result
        structured = {"agent": task.id, "name": child.member.name, "rounds": result.rounds if result else 0}
        if info.state is TaskState.COMPLETED:
            return ToolOutput(task.result or "", structured=structured, origin=Origin.AGENT)
        return ToolOutput(_describe_end(child, info), is_error=True, structured=structured, origin=Origin.AGENT)

    # -- running --------------------------------------------------------------------------------------------------

    async def _work(self, child: _Child, handle: TaskHandle) -> str:
        if child.order.isolated:
            child.tree = await self.host.make_worktree(child.member.name, child.parent.thread.context.cwd)
        child.told = await self.host.agent_started(child.member)
        try:
            if child.mode is AgentMode.TEAMMATE:
                assert child.kind is not None
                order = replace(child.order, prompt=self._with_worktree(child, child.order.prompt))
                report = await self.host.run_teammate(child.member, order, child.kind, self._cwd(child), handle)
            elif child.mode is AgentMode.FORK:
                report = await self._fork(child, handle)
            else:
                report = await self._own_context(child, handle)
        finally:
            self.roster.remove(child.member.id)  # from now on nobody can write to it
            await self._end_below(child.member.id)
            child.tree_note = await child.tree.leave() if child.tree is not None else ""
        report = "\n\n".join(filter(None, (report, child.tree_note)))
        if child.background:
            await self._deliver(child, report)
        return report

    async def _fork(self, child: _Child, handle: TaskHandle) -> str:
        batch, limits = child.batch, self.host.limits()
        assert batch is not None
        leads = batch.take_lead()
        if not leads and batch.point.conversation.model.capabilities.cache_markers:
            with suppress(TimeoutError):
                async with asyncio.timeout(limits.lead_s):
                    await batch.begun.wait()

        def on_event(event: Event) -> None:
            if has_begun(event):
                batch.begun.set()
            self._on_event(child, handle, event)

        companion = self._companion(child.member)
        permission = self.host.permission(child.member, None, background=True)
        rounds = min(FORK_ROUNDS, limits.max_rounds)
        setup = AgentSetup(child.member, companion, permission, rounds, on_event, child.told)
        cwd = child.tree.path if child.tree is not None else None
        running = fork_child(batch, self._with_worktree(child, child.order.prompt), setup, cwd=cwd)
        try:
            return await self._run_watched(child, companion, running, handle)
        finally:
            batch.begun.set()

    async def _own_context(self, child: _Child, handle: TaskHandle) -> str:
        model = child.order.model or (child.kind.model if child.kind is not None else "")
        point = self.host.new_context(
            ContextOrder(child.member.id, child.mode, child.kind, child.parent, model, self._cwd(child))
        )
        prompt = child.order.prompt
        if child.mode is AgentMode.WORKER:
            prompt = render("reverie.agents", "worker.md", {"task": prompt})
        companion = self._companion(child.member)
        permission = self.host.permission(child.member, child.kind, background=child.background)
        rounds = self.host.limits().max_rounds
        setup = AgentSetup(
            child.member, companion, permission, rounds, lambda event: self._on_event(child, handle, event), child.told
        )
        running = fresh_agent(point, self._with_worktree(child, prompt), setup)
        try:
            return await self._run_watched(child, companion, running, handle)
        finally:
            await self.host.close_context(point)

    async def _run_watched(self, child: _Child, companion: AgentCompanion, running: Running, handle: TaskHandle) -> str:
        companion.attach(running.thread, running.conversation)
        watching = asyncio.ensure_future(self.host.watch(child.member, running.thread.log, handle.progress))
        try:
            child.result = await running.run()
            if child.result.reason != "answered":
                await companion.report_end(child.result.text)
        except ReverieError:
            await companion.report_end("")
            raise
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        return child.result.report

    def _cwd(self, child: _Child) -> Path:
        return child.tree.path if child.tree is not None else child.parent.thread.context.cwd

    def _with_worktree(self, child: _Child, prompt: str) -> str:
        tree = child.tree
        if tree is None:
            return prompt
        values = {"folder": str(tree.path), "original": str(tree.repo), "branch": tree.branch, "task": prompt}
        return render("reverie.agents", "worktree.md", values)

    def _on_event(self, child: _Child, handle: TaskHandle, event: Event) -> None:
        if isinstance(event, ToolStarted):
            child.member.step = step_line(event)
            if not child.member.summary:
                handle.progress(child.member.step)

    # -- ending ---------------------------------------------------------------------------------------------------

    async def _deliver(self, child: _Child, report: str) -> None:
        call = ToolUseBlock(f"report-{child.member.id}", "Agent", {})
        kept = await self.host.keep(call, ToolOutput(report, origin=Origin.AGENT))
        text = kept.content if isinstance(kept.content, str) else report
        self._send_to_parent(child, f"{child.member.name} is done ({child.order.description}):\n\n{text}")

    def _send_to_parent(self, child: _Child, text: str) -> None:
        child.reported = True
        parent = child.parent.member
        parent.inbox.put(new_message(child.member.name, parent.name, text, summary=child.order.description))
        self.host.message_arrived(parent, child.member.name)

    async def _end_below(self, id: str) -> None:
        below = [member.id for member in self.roster.children(id)]
        if below:
            await asyncio.gather(*(self.tasks.kill(one) for one in below))

    def task_over(self, info: TaskInfo) -> None:
        """Called for every task that is over. The parent also learns of agents that failed or were killed."""
        child = self._children.pop(info.id, None)
        if child is None:
            return
        self.roster.remove(info.id)
        if child.batch is not None:
            child.batch.begun.set()
        if child.background and not child.reported:
            self._send_to_parent(child, _describe_end(child, info))

    def at_work_below(self, id: str) -> list[Member]:
        """The running agents that this one started and that will still write to it."""
        below = [child for child in self._children.values() if child.member.parent == id and child.background]
        return [child.member for child in below if not child.reported and child.member.state is MemberState.RUNNING]

    def report_lost(self, lost: Sequence[LostAgent], where: Callable[[LostAgent], Path]) -> None:
        """Tells the main agent which agents ended together with an earlier session."""
        for one in lost:
            kept = f" Its work until then is in {where(one)}." if where(one).exists() else ""
            text = f"{one.name} was at work when the session ended, and ended with it. It has not reported.{kept}"
            self.main.member.inbox.put(new_message(one.name, self.main.member.name, text, summary="it is gone"))

    async def close(self, *, all: bool) -> None:
        """Ends the agents that wait for messages; with `all`, every agent."""
        ended = [m.id for m in self.roster.children(MAIN) if all or m.state is MemberState.IDLE]
        await asyncio.gather(*(self.tasks.kill(id) for id in ended))


PROMISE = (
    "It continues in the background; its report will arrive as a message. Continue with other work, or end your turn."
)


def _describe_end(child: _Child, info: TaskInfo) -> str:
    who = f"{child.member.name} ({child.order.description})"
    how = (
        "was stopped before it was done." if info.state is TaskState.KILLED else f"failed: {info.error or 'no reason'}"
    )
    return " ".join(filter(None, (who, how, child.tree_note)))


_MESSAGE = re.compile(r'<letter id="[0-9a-f]{16}" from="([^"]+)"[^\n]*>\n[^\n]*\n([^\n]*)')


@dataclass(frozen=True, slots=True)
class LostAgent:
    """An agent that never reported."""

    id: str
    name: str


def find_lost_agents(records: Sequence[Record]) -> list[LostAgent]:
    """Returns the agents that were started in the background and have not ended, oldest first."""
    at_work: dict[str, LostAgent] = {}
    for record in records:
        result: Any = record.data.get("toolUseResult")
        started = cast(JsonObject, result) if isinstance(result, dict) else {}
        if started.get("background") and isinstance(started.get("name"), str):
            at_work[str(started["name"])] = LostAgent(str(started.get("agent")), str(started["name"]))
        for block in record.message.content if record.message is not None else ():
            if isinstance(block, TextBlock) and block.origin is Origin.AGENT and (found := _MESSAGE.match(block.text)):
                name, said = found[1], found[2]
                if said.startswith((f"{name} is done (", f"{name} (", f"{name} ends", f"{name} was at work")):
                    at_work.pop(name, None)
    return list(at_work.values())
