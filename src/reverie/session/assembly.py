"""Puts a session together: every part is built once, in the order in which the parts need each other.

Layers, loop, tools, agents and hooks meet here. It does not open, send or run anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

from reverie.agents.definition import is_trusted
from reverie.agents.fork import ForkPoint, ask_aside
from reverie.context.engine import EngineHost, LayerEngine
from reverie.context.rule_attachments import RuleAttachments
from reverie.errors import UserError
from reverie.events import Event, Notice, PermissionAsked, TaskChanged
from reverie.instructions import Instructions, load_instructions
from reverie.layers.base import BreakCause, Companion
from reverie.loop import Thread
from reverie.models.window import output_caps
from reverie.paths import Places
from reverie.permissions.policy import PolicyMode, Rules
from reverie.permissions.sandbox.sandboxes import Sandboxes
from reverie.runtime.live import LiveServer
from reverie.runtime.tasks import TaskInfo, Tasks
from reverie.session.commands import SessionCommands
from reverie.session.file_undo import FileUndo
from reverie.session.forks import SessionForks
from reverie.session.gate import PermissionGate
from reverie.session.hook_points import HookPoints
from reverie.session.local_teammate import OpenSession
from reverie.session.mcp_tools import SessionMcp
from reverie.session.memory_companion import MemoryCompanion
from reverie.session.messages import SessionMessages
from reverie.session.parts import SessionParts, new_header, open_accounts
from reverie.session.session_agents import SessionAgents
from reverie.session.team_sync import SessionSyncs
from reverie.storage.saved_rules import LocalRules
from reverie.storage.transcript.records import SessionHeader
from reverie.storage.transcript.session_log import Clock
from reverie.storage.transcript.view import View
from reverie.tools.base import CALL_TOOL, Caller, Tool, ToolContext
from reverie.tools.registry import list_schemas, make_read_only_check
from reverie.tools.seen_files import find_seen_files
from reverie.types import JsonObject, Purpose

if TYPE_CHECKING:
    from reverie.session.telemetry import SessionTelemetry


_MODES = {
    PolicyMode.ASK: "default",
    PolicyMode.ACCEPT_EDITS: "acceptEdits",
    PolicyMode.ACCEPT_ALL: "bypassPermissions",
    PolicyMode.READ_ONLY: "plan",
}
_TASK_TYPES = {Purpose.AGENT: "subagent"}
"""Names that hooks know."""
_MCP_TOOLS = ("LoadTools", CALL_TOOL)
"""They join an older conversation when its prefix is rendered again."""


class Outlet:
    """Sends a session's events to the running turn, else to a listener; else they wait. `emit` never blocks."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Event] | None = None
        self._listener: Callable[[Event], None] | None = None
        self._waiting: list[Event] = []

    def emit(self, event: Event) -> None:
        if self._queue is not None:
            self._queue.put_nowait(event)
        elif self._listener is not None:
            self._listener(event)
        else:
            self._waiting.append(event)

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Hands over the waiting events, and from now on all events between turns."""
        self._listener = listener
        for event in self._take():
            listener(event)

    def open_turn(self) -> asyncio.Queue[Event]:
        """Returns the queue of a new turn, with the waiting events first."""
        self._queue = asyncio.Queue()
        for event in self._take():
            self._queue.put_nowait(event)
        return self._queue

    def close_turn(self) -> None:
        """Drops the unread events of the turn, except for those that are not about it, as questions of other agents."""
        queue, self._queue = self._queue, None
        while queue is not None and not queue.empty():
            event = queue.get_nowait()
            if isinstance(event, Notice | TaskChanged | PermissionAsked):
                self.emit(event)

    def _take(self) -> list[Event]:
        waiting, self._waiting = self._waiting, []
        return waiting


class Assembly:
    """The joined parts of one session. `Session` adds the methods for callers."""

    def __init__(
        self,
        parts: SessionParts,
        outlet: Outlet,
        *,
        interactive: bool,
        tools: Sequence[Tool],
        clock: Clock,
        open_session: OpenSession,
    ) -> None:
        self.parts = parts
        self._outlet = outlet
        self.telemetry: SessionTelemetry | None = None
        if parts.settings.telemetry.otel:
            from reverie.session.telemetry import SessionTelemetry

            self.telemetry = SessionTelemetry(parts)
        self.emit = emit = self.telemetry.listening(outlet.emit) if self.telemetry is not None else outlet.emit
        self._clock = clock
        self._turn: asyncio.Task[None] | None = None
        self._turn_is_over = False
        """The turn changes the context no longer, though its last event may still be unread."""
        self.closing = False  # the session is closing: it only waits for running background work
        self._server: LiveServer | None = None
        self._schemas = list_schemas(tools)
        self.tasks = Tasks(parts.background, self._task_changed)
        self.hook_points = HookPoints(parts.hooks, emit, self._running_tasks)
        self.memory = MemoryCompanion.open(parts, emit, clock)
        given = parts.settings.permissions
        self.sandboxes = Sandboxes(wanted=given.sandbox, private=[parts.places.home])
        stored = parts.places.session(parts.log.session_id) / "files" if parts.lease is not None else None
        self.file_undo = FileUndo(parts.log, stored, self.sandboxes)
        self.gate = PermissionGate(
            parts.hooks,
            PolicyMode(given.mode),
            Rules.parse(given.allow, given.ask, given.deny),
            can_ask=interactive,
            emit=emit,
            writes_memory=self.memory.may_write if self.memory is not None else lambda _call: False,
            is_read_only=make_read_only_check(tools),
            why_ask=self.memory.why_ask if self.memory is not None else lambda _call: None,
            trusted=is_trusted(parts.settings, parts.places),
            sandboxes=self.sandboxes,
            before_change=self.file_undo.keep,
            store=LocalRules(parts.places.cwd, parts.places.home),
        )
        self.mcp = SessionMcp(parts, self.gate, emit, interactive, tools)
        self._prompt_id = ""
        parts.hooks.now = self._hook_fields
        self.messages = SessionMessages(parts, emit, lambda: self.busy)
        self.accounts = open_accounts(parts, emit, clock)
        self._forks = SessionForks(
            parts, self.accounts, emit, lambda: ForkPoint.of(self._thread, self.engine.conversation)
        )
        self.agents = SessionAgents(
            parts,
            tasks=self.tasks,
            messages=self.messages,
            gate=self.gate,
            points=self.hook_points,
            accounts=self.accounts,
            interactive=interactive,
            is_idle=lambda: not self.busy and not self.closing,
            open_session=open_session,
            emit=emit,
            clock=clock,
            listed_tools=self.mcp.listed,
        )
        self.commands = SessionCommands(parts, self.gate, self.hook_points, emit)
        beside: list[Companion] = [self._rules(), *([self.memory] if self.memory is not None else [])]
        self.engine = LayerEngine(
            parts,
            EngineHost(
                forks=self._forks,
                ask=self._forks.ask,
                render_header=self._render_header,
                ensure_header=self.ensure_header,
                in_turn=lambda: self._turn is not None and not self._turn_is_over,
                on_clear=lambda: self.hook_points.session_started("clear"),
                run_hook=self.hook_points.run,
                attached=lambda: [
                    *self.agents.attachments(),
                    *self.commands.attachments(),
                    *self.mcp.attachments(),
                ],
                discovered=self.mcp.discovered,
            ),
            tasks=self.tasks,
            accounts=self.accounts,
            memory=self.memory.opened if self.memory is not None else None,
            companions=(*beside, self.agents, self.mcp, self.hook_points),
            interactive=interactive,
            emit=emit,
            clock=clock,
        )
        self.conversation = self.engine.conversation
        self.dreaming = self.engine.dreaming
        self._thread = self._main_thread({tool.name: tool for tool in tools})
        self.agents.attach(self._thread, self.engine)
        self.commands.attach(self._thread)
        self._syncs = SessionSyncs(parts, self.tasks, self.memory.opened, emit) if self.memory else None

    def _main_thread(self, tools: dict[str, Tool]) -> Thread:
        parts, settings = self.parts, self.parts.settings
        cap, raised = output_caps(settings, parts.facts, parts.limits.window)
        return Thread(
            log=parts.log,
            surroundings=self.conversation,
            tools=tools,
            context=ToolContext(
                cwd=parts.places.cwd,
                caller=Caller(),
                permission=self.agents.main_permission,
                read_cache=find_seen_files(parts.log.view, parts.log.records, parts.places.cwd),
                keep_dir=parts.places.tool_results(parts.log.session_id),
                keeper=self.memory.keeper if self.memory is not None else lambda _path: None,
                spawn=self.agents.spawner.main.spawn,
                post=self.messages.send,
                sandboxes=self.sandboxes,
                shown=(self.memory.directory.root,) if self.memory is not None else (),
            ),
            emit=self.emit,
            max_rounds=parts.flags.number("tools.max_rounds", settings.tools.max_rounds),
            parallel=lambda: parts.flags.number("tools.parallel", settings.tools.parallel),
            max_nudges=settings.model.go_on_nudges,
            output_cap=cap,
            output_cap_raised=raised,
        )

    def _rules(self) -> RuleAttachments:
        parts = self.parts

        def load() -> Instructions:
            return load_instructions(parts.places, parts.settings, window=parts.limits.window)

        return RuleAttachments(load, lambda: parts.log.view, parts.places.cwd, lambda: parts.flags.on("rules"))

    @property
    def id(self) -> str:
        return self.parts.log.session_id

    @property
    def view(self) -> View:
        """What the model sees."""
        return self.parts.log.view

    @property
    def places(self) -> Places:
        return self.parts.places

    @property
    def model_name(self) -> str:
        return self.parts.model.name

    def cancel(self) -> bool:
        """Stops the running turn, or a compaction; records stay. False if nothing is running."""
        return self._turn.cancel() if self._turn is not None else self.engine.compactor.cancel()

    async def ask_aside(self, question: str) -> str:
        """Answers a side question, even while a turn is running. The conversation does not change."""
        if not question.strip():
            raise UserError("there is nothing to answer: write the question after /btw")
        self.ensure_header()
        return await ask_aside(self._forks.kept(), question)

    @property
    def busy(self) -> bool:
        """Whether a turn is running, or the context is being changed."""
        return self._turn is not None or self.engine.compactor.running

    def ensure_header(self) -> None:
        """Renders the prefix once, even for another agent's conversation; later only its model may change."""
        parts, log = self.parts, self.parts.log
        header = log.view.header
        if header is None:
            log.hold(new_header(parts, self._schemas, self._today(), self.emit))
            if log.view.entries:
                self.conversation.announce(BreakCause.HEADER, "the conversation came without a header")
        elif header.model != parts.model_name:
            log.hold(replace(header, model=parts.model_name))
            why = f"the model changed from {header.model} to {parts.model_name}"
            self.conversation.announce(BreakCause.MODEL, why)

    def _render_header(self, old: SessionHeader) -> SessionHeader:
        """Renders the prefix again, as after a compaction; the lifetime of its cache does not change."""
        had = {tool.get("name") for tool in old.tools}
        behind = [one for one in self._schemas if one["name"] in _MCP_TOOLS and one["name"] not in had]
        fresh = new_header(self.parts, (*old.tools, *behind), self._today(), self.emit)
        return replace(fresh, ttl=old.ttl, ttl_reason=old.ttl_reason)

    def _hook_fields(self) -> JsonObject:
        fields = {"permission_mode": _MODES[self.gate.mode]}
        return {"prompt_id": self._prompt_id, **fields} if self._prompt_id else fields

    def _running_tasks(self) -> list[JsonObject]:
        return [
            {
                "id": one.id,
                "type": _TASK_TYPES.get(one.purpose, one.purpose),
                "status": "running",
                "description": one.title,
            }
            for one in self.tasks.running
        ]

    def _today(self) -> date:
        return self._clock().astimezone().date()

    def _task_changed(self, info: TaskInfo) -> None:
        progress = info.progress[-1] if info.progress else ""
        self.emit(TaskChanged(info.id, info.purpose, info.title, info.state.value, progress))
        if info.state.is_over:
            self.agents.task_over(info)
        if info.state.is_over and self.dreaming is not None:
            self.dreaming.task_over(info.id)
