"""The agents of a session: joins the spawner to the main thread and decides what agents may do.

Every call of an agent passes the session's gate in the agent's name. `agents/spawn.py` decides who may start whom.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from pathlib import Path

from reverie.agents.definition import AgentDefinition, Definitions, coordinator_prompt, list_kinds, load_definitions
from reverie.agents.fork import ForkPoint
from reverie.agents.host import AgentLimits, ContextOrder
from reverie.agents.messages.message import message_blocks
from reverie.agents.messages.roster import Member
from reverie.agents.spawn import LostAgent, Spawner, find_lost_agents
from reverie.agents.worktree import Worktree
from reverie.context.accounts import Accounts
from reverie.context.engine import LayerEngine
from reverie.events import Event, Notice
from reverie.layers.base import Companion
from reverie.loop import Thread
from reverie.paths.places import slug
from reverie.permissions.rules import Decision, Deny, ToolCall
from reverie.quick import dataclass
from reverie.runtime.tasks import TaskHandle, TaskInfo, Tasks
from reverie.session.agent_contexts import AgentContexts, keeper_for, prompt_of, tools_for
from reverie.session.agent_memories import AgentMemories
from reverie.session.gate import PermissionGate, Requester
from reverie.session.hook_points import AskStop, HookPoints
from reverie.session.local_teammate import LocalTeammate, OpenSession, SharedModel
from reverie.session.messages import SessionMessages
from reverie.session.parts import SessionParts
from reverie.session.progress_watcher import ProgressWatcher
from reverie.storage.transcript.session_log import Clock, SessionLog
from reverie.storage.transcript.view import View
from reverie.tools.base import AgentOrder, PermissionFunction, ToolOutput
from reverie.types import Block, Message, Origin, TextBlock, ToolUseBlock

_HANDS_OVER = "You coordinate: a worker makes the changes. Start one with Agent, and say all it must know."


@dataclass(eq=False)
class SessionAgents(Companion):
    """The agents of one session. `spawner` keeps their tree. Implements `SpawnerHost`."""

    parts: SessionParts
    tasks: Tasks
    messages: SessionMessages
    gate: PermissionGate
    points: HookPoints
    accounts: Accounts
    interactive: bool
    is_idle: Callable[[], bool]
    open_session: OpenSession
    emit: Callable[[Event], None]
    clock: Clock
    listed_tools: Callable[[], Sequence[TextBlock]] = tuple
    """Returns the lists of tools that are not in a request, for an agent with its own context."""
    _reported: set[str] = field(default_factory=set[str], init=False)
    _contexts: AgentContexts | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._watcher = ProgressWatcher(self.parts, self.numbers_of, self.accounts.may_spend)
        self.remembering = AgentMemories(self.parts, self.emit)
        self.spawner = Spawner(self, self.tasks, self.messages.roster, waits=not self.interactive)

    def attach(self, thread: Thread, engine: LayerEngine) -> None:
        """Sets the thread of the main agent, once all parts exist."""
        self.spawner.main.attach(thread, engine.conversation)
        self._contexts = AgentContexts(
            self.parts,
            engine,
            thread.context,
            self.remembering,
            lambda: list_kinds(self.kinds()),
            self.points.tool_hooks,
            emit=self.emit,
            clock=self.clock,
            listed_tools=self.listed_tools,
        )
        if self.parts.resumed:
            self.spawner.report_lost(find_lost_agents(self.parts.log.records), self._transcript_of)

    async def after_response(self) -> None:
        await self.spawner.main.after_response()

    async def between_rounds(self) -> Sequence[Block]:
        return self.messages.drain()

    async def may_stop(self, answer: str) -> str | Sequence[Block] | None:
        del answer
        await self.spawner.main.settle()
        return self.messages.drain(at_end=True)

    async def main_permission(self, call: ToolCall) -> Decision:
        """The gate of the main agent. A coordinator changes nothing itself."""
        header = self.parts.log.view.header
        coordinates = header is not None and header.flags.get("coordinator")
        if coordinates and not call.read_only and call.tool != "SendMessage":
            return Deny(_HANDS_OVER)
        return await self.gate(call)

    def attachments(self) -> Sequence[Block]:
        """Returns what the model must know about agents after a compaction."""
        return self._reminders(self.parts.log.view)

    def _transcript_of(self, lost: LostAgent) -> Path:
        return self.parts.places.agent_transcript(self.parts.log.session_id, lost.id.removeprefix("agent-"))

    def new_reminders(self, view: View) -> list[TextBlock]:
        """Returns what the model must know about agents and does not see yet. It joins the next message."""
        reminders = self._reminders(view)
        if not reminders:
            return []
        seen = {
            block.text
            for entry in view.entries
            for block in entry.message.content
            if isinstance(block, TextBlock) and block.origin is Origin.CODE
        }
        return [block for block in reminders if block.text not in seen]

    def _reminders(self, view: View) -> list[TextBlock]:
        coordinates = view.header is not None and view.header.flags.get("coordinator")
        texts = (list_kinds(self.kinds()), coordinator_prompt() if coordinates else "")
        return [TextBlock(text, Origin.CODE) for text in texts if text]

    def become(self, kind: AgentDefinition) -> None:
        """Makes the main agent of a team member one of this kind: its prompt, memory and permissions."""
        memory, context = self.remembering.of(kind), self.spawner.main.thread.context
        self.parts.prompt = prompt_of(kind, memory)
        context.permission = self.permission(self.spawner.main.member, kind, background=False)
        context.keeper = keeper_for(memory, self.parts.log, context.keeper)

    def task_over(self, info: TaskInfo) -> None:
        self.spawner.task_over(info)

    async def end_waiting(self) -> None:
        """Ends the agents that only wait for messages; without a user, all agents."""
        await self.spawner.close(all=not self.interactive)

    async def close(self) -> None:
        """Records the messages of this process's agents that no turn has read, for the next session."""
        messages = [one for one in self.spawner.main.member.inbox.drain() if one.sender in self.spawner.started]
        if messages and self.parts.log.view.entries:
            self.parts.log.append_message(Message("user", tuple(message_blocks(messages))), isMeta=True)
        await self._watcher.close()

    @property
    def _attached_contexts(self) -> AgentContexts:
        assert self._contexts is not None, "agents start after the session is complete"
        return self._contexts

    def new_context(self, wanted: ContextOrder) -> ForkPoint:
        return self._attached_contexts.create(wanted)

    async def close_context(self, point: ForkPoint) -> None:
        await self._attached_contexts.close(point)

    def kinds(self) -> Definitions:
        """Returns the current kinds. A problem with a file is reported once."""
        found = load_definitions(self.parts.places, bare=self.parts.settings.session.bare)
        for problem in found.problems:
            if problem not in self._reported:
                self._reported.add(problem)
                self.emit(Notice(problem, "warning", "agents"))
        return found

    def numbers_of(self, key: str) -> float:
        return self.parts.flags.number(f"agents.{key}", getattr(self.parts.settings.agents, key))

    def limits(self) -> AgentLimits:
        return self.parts.numbers(AgentLimits, "agents")

    def is_on(self, flag: str) -> bool:
        return self.parts.flags.on(flag)

    def permission(self, member: Member, kind: AgentDefinition | None, *, background: bool) -> PermissionFunction:
        """Returns the session's gate for an agent."""
        memory = self.remembering.of(kind)
        whose = Requester(
            member.name,
            member.kind,
            wait_s=self.numbers_of("ask_s") if background else None,
            is_free=memory.may_write if memory is not None else lambda _call: False,
        )

        async def decide(call: ToolCall) -> Decision:
            if kind is not None and kind.reads_only and not call.read_only:
                return Deny(f"{call.tool} may change something, and an agent of the kind {kind.name} only reads.")
            return await self.gate.judge(call, whose)

        return decide

    async def keep(self, call: ToolUseBlock, output: ToolOutput) -> ToolOutput:
        """Runs layer 1 on a report; it is not the result of a tool, so no hook runs."""
        return await self.spawner.main.conversation.around.keep(call, output)

    async def make_worktree(self, name: str, cwd: Path) -> Worktree:
        places, settings = self.parts.places, self.parts.settings
        return await Worktree.make(name, cwd, places.home / "worktrees" / slug(places.root), settings.env)

    def may_end(self, member: Member) -> AskStop:
        path = self.parts.places.agent_transcript(self.parts.log.session_id, member.id.removeprefix("agent-"))
        return self.points.agent_stop(member, str(path))

    async def agent_started(self, member: Member) -> Sequence[TextBlock]:
        return await self.points.agent_started(member)

    def message_arrived(self, to: Member, sender: str) -> None:
        """Tells the user of an idle session that an agent has reported."""
        if to is self.spawner.main.member and self.is_idle():
            self.emit(Notice(f"{sender} has reported (read with your next message)", source="agents"))

    async def watch(self, member: Member, log: SessionLog, tell: Callable[[str], None]) -> None:
        await self._watcher.watch(member, log, tell)

    async def run_teammate(
        self, member: Member, order: AgentOrder, kind: AgentDefinition, cwd: Path, handle: TaskHandle
    ) -> str:
        """Runs a teammate as another session in this process."""
        memory = self.remembering.of(kind)
        mate = LocalTeammate(
            member,
            messages=self.messages,
            settings=self.parts.settings,
            open_session=self.open_session,
            keep=self.keep,
            on_message=self.message_arrived,
            permission=self.permission(member, kind, background=True),
            memory=memory,
            tools=tuple(tools_for(kind, self.spawner.main.thread.tools, always=("SendMessage",)).values()),
            progress=handle.progress,
            may_end=self.may_end(member),
        )
        inherited = self.parts.model
        wanted = self._attached_contexts.model_name(order.model or kind.model, kind, inherited.name)
        return await mate.run(order, prompt_of(kind, memory), wanted or SharedModel(inherited), cwd)
