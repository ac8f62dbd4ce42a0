"""Starts agents and keeps the tree of them: who may start whom, within which limits, and what becomes of a result.

One a session. An agent runs as a background task whether somebody waits for it or not, so that it is listed and can be
killed; whatever it falls over stops at that task's edge. It makes no thread and opens no file itself. Who was at work
when a session ended is known from its transcript (`lost_agents`).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from reverie.agents.children import AgentResult, Batch, Running, fork_child, fresh_agent, has_begun, is_fork, step_line
from reverie.agents.definition import GENERAL, AgentDefinition
from reverie.agents.house import Fresh, House
from reverie.agents.messages.message import new_letter
from reverie.agents.messages.roster import MAIN, Member, MemberState, Mode, Roster
from reverie.agents.nest import Nest
from reverie.agents.worktree import Worktree, check_repo
from reverie.errors import ReverieError, UserError
from reverie.events import Event, ToolStarted
from reverie.prompts import render
from reverie.runtime.tasks import Task, TaskHandle, TaskInfo, Tasks, TaskState
from reverie.tools.base import AgentOrder, ToolOutput
from reverie.types import JsonObject, Origin, Purpose, Record, TextBlock, ToolUseBlock

_WHY_NOT = {
    Mode.FORK: "You are a fork, and a fork cannot start agents: do it yourself.",
    Mode.WORKER: "You are a worker, and a worker cannot start agents: do it yourself, or report what is left.",
    Mode.TEAMMATE: "You are a teammate, and a teammate cannot start agents: do it yourself, or write to the others.",
    Mode.SIDE_QUESTION: "A side question is answered without tools.",
}
FORK_ROUNDS = 200
"""Most rounds of a fork, whatever the settings allow others."""
IN_BACKGROUND = frozenset({Mode.FORK, Mode.WORKER, Mode.TEAMMATE})


@dataclass(slots=True, eq=False)
class _Child:
    """One agent from the moment it is wanted."""

    member: Member
    mode: Mode
    order: AgentOrder
    kind: AgentDefinition | None
    parent: Nest
    background: bool
    batch: Batch | None
    reported: bool = False
    tree: Worktree | None = None
    left: str = ""
    """What is said of its work tree."""
    result: AgentResult | None = None


class Spawner:
    """The agents of one session. `main` is the main agent's nest; `waits`: see `Nest`."""

    def __init__(self, house: House, tasks: Tasks, roster: Roster, *, waits: bool) -> None:
        self.house = house
        self.tasks = tasks
        self.roster = roster
        self._children: dict[str, _Child] = {}
        self.started = set[str]()
        """The names of all who were ever started."""
        member = roster.find(MAIN) or roster.add(Member(MAIN, MAIN, Mode.MAIN))
        self.main = self._nest(member, waits=waits)

    def _nest(self, member: Member, *, waits: bool = True) -> Nest:
        may_end = None if member.mode is Mode.MAIN else self.house.may_end(member)
        return Nest(member, self.start, self.at_work_below, waits=waits, may_end=may_end)

    # -- starting -------------------------------------------------------------------------------------------------

    async def start(self, nest: Nest, order: AgentOrder) -> ToolOutput:
        """Starts what a call of the Agent tool asks for; its result, or that it is at work."""
        mode = self._mode(nest, order)
        kind = self._kind(mode, order)
        self._check_limits(nest, order)
        name = self._name(order, kind, mode)
        background = mode in IN_BACKGROUND or bool(order.background)
        member = Member(name, "", mode, parent=nest.member.id, title=order.description)
        child = _Child(member, mode, order, kind, nest, background, nest.batch() if mode is Mode.FORK else None)
        if order.isolated:
            check_repo(nest.thread.context.cwd)
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

    def _mode(self, nest: Nest, order: AgentOrder) -> Mode:
        refusal = _WHY_NOT.get(nest.member.mode)
        if refusal is None and is_fork(nest.view):
            refusal = _WHY_NOT[Mode.FORK]
        if refusal is not None:
            raise UserError(refusal)
        if order.teammate:
            return Mode.TEAMMATE
        if order.kind is not None:
            return Mode.SUB_AGENT
        header = nest.view.header
        if header is not None and header.flags.get("coordinator") and nest.member.mode is Mode.MAIN:
            return Mode.WORKER
        return Mode.FORK if self.house.is_on("fork_children") else Mode.SUB_AGENT

    def _kind(self, mode: Mode, order: AgentOrder) -> AgentDefinition | None:
        if mode in (Mode.FORK, Mode.WORKER):
            return None
        kinds = self.house.kinds().kinds
        found = kinds.get(order.kind or GENERAL)
        if found is None:
            raise UserError(f"There is no kind of agent called {order.kind!r}: there are {', '.join(sorted(kinds))}.")
        return found

    def _check_limits(self, nest: Nest, order: AgentOrder) -> None:
        numbers = self.house.numbers()
        if self.roster.depth(nest.member.id) >= numbers.depth:
            raise UserError(
                f"You stand {numbers.depth} levels below the main agent, and agents may start agents no deeper "
                "(agents.depth): do it yourself."
            )
        at_work = [m.name for m in self.roster if m.mode is not Mode.MAIN and m.state is MemberState.RUNNING]
        if len(at_work) >= numbers.at_once:
            raise UserError(
                f"{len(at_work)} agents are at work, which is the limit (agents.at_once): {', '.join(at_work)}. "
                f"Wait for one of them before you start {order.description!r}."
            )

    def _name(self, order: AgentOrder, kind: AgentDefinition | None, mode: Mode) -> str:
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
        return ToolOutput(_ended(child, info), is_error=True, structured=structured, origin=Origin.AGENT)

    # -- running --------------------------------------------------------------------------------------------------

    async def _work(self, child: _Child, handle: TaskHandle) -> str:
        if child.order.isolated:
            child.tree = await self.house.worktree(child.member.name, child.parent.thread.context.cwd)
        try:
            if child.mode is Mode.TEAMMATE:
                assert child.kind is not None
                order = replace(child.order, prompt=self._moved(child, child.order.prompt))
                report = await self.house.teammate(child.member, order, child.kind, self._cwd(child), handle)
            elif child.mode is Mode.FORK:
                report = await self._fork(child, handle)
            else:
                report = await self._own_context(child, handle)
        finally:
            self.roster.remove(child.member.id)  # nobody can write to it from here on
            await self._end_below(child.member.id)
            child.left = await child.tree.leave() if child.tree is not None else ""
        report = "\n\n".join(filter(None, (report, child.left)))
        if child.background:
            await self._deliver(child, report)
        return report

    async def _fork(self, child: _Child, handle: TaskHandle) -> str:
        batch, numbers = child.batch, self.house.numbers()
        assert batch is not None
        leads = batch.take_lead()
        if not leads and batch.point.conversation.model.capabilities.cache_markers:
            with suppress(TimeoutError):
                async with asyncio.timeout(numbers.lead_s):
                    await batch.begun.wait()

        def heard(event: Event) -> None:
            if has_begun(event):
                batch.begun.set()
            self._heard(child, handle, event)

        nest = self._nest(child.member)
        running = fork_child(
            batch,
            child.member,
            nest,
            self._moved(child, child.order.prompt),
            permission=self.house.permission(child.member, None, background=True),
            max_rounds=min(FORK_ROUNDS, numbers.max_rounds),
            emit=heard,
            cwd=child.tree.path if child.tree is not None else None,
        )
        try:
            return await self._watched(child, nest, running, handle)
        finally:
            batch.begun.set()

    async def _own_context(self, child: _Child, handle: TaskHandle) -> str:
        model = child.order.model or (child.kind.model if child.kind is not None else "")
        point = self.house.fresh(Fresh(child.member.id, child.mode, child.kind, child.parent, model, self._cwd(child)))
        prompt = child.order.prompt
        if child.mode is Mode.WORKER:
            prompt = render("reverie.agents", "worker.md", {"task": prompt})
        nest = self._nest(child.member)
        running = fresh_agent(
            point,
            child.member,
            nest,
            self._moved(child, prompt),
            permission=self.house.permission(child.member, child.kind, background=child.background),
            max_rounds=self.house.numbers().max_rounds,
            emit=lambda event: self._heard(child, handle, event),
        )
        try:
            return await self._watched(child, nest, running, handle)
        finally:
            await self.house.closed(point)

    async def _watched(self, child: _Child, nest: Nest, running: Running, handle: TaskHandle) -> str:
        nest.sit(running.thread, running.conversation)
        watching = asyncio.ensure_future(self.house.look(child.member, running.thread.log, handle.progress))
        try:
            child.result = await running.run()
            if child.result.reason != "answered":
                await nest.ends_unasked(child.result.text)
        except ReverieError:
            await nest.ends_unasked("")
            raise
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        return child.result.report

    def _cwd(self, child: _Child) -> Path:
        return child.tree.path if child.tree is not None else child.parent.thread.context.cwd

    def _moved(self, child: _Child, prompt: str) -> str:
        tree = child.tree
        if tree is None:
            return prompt
        values = {"folder": str(tree.path), "original": str(tree.repo), "branch": tree.branch, "task": prompt}
        return render("reverie.agents", "worktree.md", values)

    def _heard(self, child: _Child, handle: TaskHandle, event: Event) -> None:
        if isinstance(event, ToolStarted):
            child.member.step = step_line(event)
            if not child.member.summary:
                handle.progress(child.member.step)

    # -- ending ---------------------------------------------------------------------------------------------------

    async def _deliver(self, child: _Child, report: str) -> None:
        """Puts a report into the parent's inbox, within the limit of a tool result."""
        call = ToolUseBlock(f"report-{child.member.id}", "Agent", {})
        kept = await self.house.keep(call, ToolOutput(report, origin=Origin.AGENT))
        text = kept.content if isinstance(kept.content, str) else report
        self._post(child, f"{child.member.name} is done ({child.order.description}):\n\n{text}")

    def _post(self, child: _Child, text: str) -> None:
        child.reported = True
        parent = child.parent.member
        parent.inbox.put(new_letter(child.member.name, parent.name, text, summary=child.order.description))
        self.house.arrived(parent, child.member.name)

    async def _end_below(self, id: str) -> None:
        below = [member.id for member in self.roster.children(id)]
        if below:
            await asyncio.gather(*(self.tasks.kill(one) for one in below))

    def task_over(self, info: TaskInfo) -> None:
        """Told of every task that is over: whoever fell over or was killed is told to its parent all the same."""
        child = self._children.pop(info.id, None)
        if child is None:
            return
        self.roster.remove(info.id)
        if child.batch is not None:
            child.batch.begun.set()
        if child.background and not child.reported:
            self._post(child, _ended(child, info))

    def at_work_below(self, id: str) -> list[Member]:
        """Those this one started that will still write to it: not who has reported, nor a teammate that waits.

        Who is not in the roster any more may be about to report.
        """
        below = [child for child in self._children.values() if child.member.parent == id and child.background]
        return [child.member for child in below if not child.reported and child.member.state is MemberState.RUNNING]

    def tell_lost(self, lost: Sequence[Lost], where: Callable[[Lost], Path]) -> None:
        """Tells the main agent of those that a session which ended has taken with it."""
        for one in lost:
            kept = f" What it had done until then is in {where(one)}." if where(one).exists() else ""
            text = f"{one.name} was at work when the session ended, and ended with it. It has not reported.{kept}"
            self.main.member.inbox.put(new_letter(one.name, self.main.member.name, text, summary="it is gone"))

    async def close(self, *, all: bool) -> None:
        """Ends those that wait for letters, since nobody will write any more; or everyone, if nobody will read."""
        ended = [m.id for m in self.roster.children(MAIN) if all or m.state is MemberState.IDLE]
        await asyncio.gather(*(self.tasks.kill(id) for id in ended))


PROMISE = (
    "It goes on in the background; its report will arrive as a letter. Go on with something else, or end your turn."
)


def _ended(child: _Child, info: TaskInfo) -> str:
    who = f"{child.member.name} ({child.order.description})"
    how = (
        "was stopped before it was done." if info.state is TaskState.KILLED else f"failed: {info.error or 'no reason'}"
    )
    return " ".join(filter(None, (who, how, child.left)))


_LETTER = re.compile(r'<letter id="[0-9a-f]{16}" from="([^"]+)"[^\n]*>\n[^\n]*\n([^\n]*)')


@dataclass(frozen=True, slots=True)
class Lost:
    """An agent that never reported."""

    id: str
    name: str


def lost_agents(records: Sequence[Record]) -> list[Lost]:
    """The agents that were started in the background and are not known to have ended, oldest first."""
    at_work: dict[str, Lost] = {}
    for record in records:
        result: Any = record.data.get("toolUseResult")
        started = cast(JsonObject, result) if isinstance(result, dict) else {}
        if started.get("background") and isinstance(started.get("name"), str):
            at_work[str(started["name"])] = Lost(str(started.get("agent")), str(started["name"]))
        for block in record.message.content if record.message is not None else ():
            if isinstance(block, TextBlock) and block.origin is Origin.AGENT and (letter := _LETTER.match(block.text)):
                name, said = letter[1], letter[2]
                if said.startswith((f"{name} is done (", f"{name} (", f"{name} ends", f"{name} was at work")):
                    at_work.pop(name, None)
    return list(at_work.values())
