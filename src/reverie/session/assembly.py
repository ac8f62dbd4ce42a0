"""A session put together: every part made once, in the order in which they need each other.

The one place where layers, loop, tools, agents and hooks meet. It opens nothing, sends nothing and runs no turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from reverie.agents.fork import ForkPoint
from reverie.context.engine import Engine, Host
from reverie.context.rule_attachments import RuleAttachments
from reverie.events import TaskChanged
from reverie.instructions import Instructions, load_instructions
from reverie.layers.base import BreakCause, Companion
from reverie.loop import Thread
from reverie.permissions.policy import PolicyMode, Rules
from reverie.runtime.live import LiveServer
from reverie.runtime.tasks import TaskInfo, Tasks
from reverie.session.correspondence import Correspondence
from reverie.session.forks import SessionForks
from reverie.session.gate import Gate
from reverie.session.hook_points import HookPoints
from reverie.session.outlet import Outlet
from reverie.session.parts import SessionParts, new_header, open_accounts
from reverie.session.remembering import Remembering
from reverie.session.spawning import Spawning
from reverie.session.team_sync import TeamSync
from reverie.session.teammate_here import OpenSession
from reverie.storage.transcript.records import SessionHeader
from reverie.storage.transcript.session_log import Clock
from reverie.tools.base import Caller, Tool, ToolContext
from reverie.tools.registry import list_schemas, make_read_only_check
from reverie.tools.seen_files import find_seen_files


class Assembly:
    """The parts of one session, joined. `Session` adds what a caller does with them."""

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
        self.emit = emit = outlet.emit
        self._clock = clock
        self._turn: asyncio.Task[None] | None = None
        self._turn_is_over = False
        """Nothing of the turn changes the context any more, though its last event may not be read yet."""
        self.closing = False
        """Whether it is being closed: background work in flight is waited for, and nothing else happens any more."""
        self._server: LiveServer | None = None
        self._schemas = list_schemas(tools)
        self.tasks = Tasks(parts.background, self._task_changed)
        self.hook_points = HookPoints(parts.hooks, emit)
        self.memory = Remembering.open(parts, emit, clock)
        given = parts.settings.permissions
        self.gate = Gate(
            parts.hooks,
            PolicyMode(given.mode),
            Rules.parse(given.allow, given.ask, given.deny),
            can_ask=interactive,
            emit=emit,
            writes_memory=self.memory.may_write if self.memory is not None else lambda _call: False,
            is_read_only=make_read_only_check(tools),
        )
        self.letters = Correspondence(parts, emit, lambda: self.busy)
        self.accounts = open_accounts(parts, emit, clock)
        self._forks = SessionForks(
            parts, self.accounts, emit, lambda: ForkPoint.of(self._thread, self.engine.conversation)
        )
        self.agents = Spawning(
            parts,
            tasks=self.tasks,
            letters=self.letters,
            gate=self.gate,
            points=self.hook_points,
            accounts=self.accounts,
            interactive=interactive,
            is_idle=lambda: not self.busy and not self.closing,
            open_session=open_session,
            emit=emit,
            clock=clock,
        )
        beside: list[Companion] = [self._rules(), *([self.memory] if self.memory is not None else [])]
        self.engine = Engine(
            parts,
            Host(
                forks=self._forks,
                ask=self._forks.ask,
                render_header=self._render_header,
                ensure_header=self.ensure_header,
                in_turn=lambda: self._turn is not None and not self._turn_is_over,
                on_clear=lambda: self.hook_points.started("clear"),
                run_hook=self.hook_points.run,
                attached=self.agents.attached,
            ),
            tasks=self.tasks,
            accounts=self.accounts,
            memory=self.memory.opened if self.memory is not None else None,
            companions=(*beside, self.agents, self.hook_points),
            interactive=interactive,
            emit=emit,
            clock=clock,
        )
        self.conversation = self.engine.conversation
        self.dreaming = self.engine.dreaming
        self._thread = self._main_thread({tool.name: tool for tool in tools})
        self.agents.attach(self._thread, self.engine)
        self._team_sync = TeamSync(parts, self.tasks, self.memory.opened, emit) if self.memory else None

    def _main_thread(self, tools: dict[str, Tool]) -> Thread:
        parts, settings = self.parts, self.parts.settings
        cap = min(settings.model.max_output, parts.facts.max_output)
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
                post=self.letters.send,
            ),
            emit=self.emit,
            max_rounds=parts.flags.number("tools.max_rounds", settings.tools.max_rounds),
            parallel=lambda: parts.flags.number("tools.parallel", settings.tools.parallel),
            max_nudges=settings.model.go_on_nudges,
            output_cap=cap,
            output_cap_raised=max(cap, min(settings.model.raised_output, parts.facts.max_output)),
        )

    def _rules(self) -> RuleAttachments:
        parts = self.parts

        def load() -> Instructions:
            return load_instructions(parts.places, parts.settings, window=parts.limits.window)

        return RuleAttachments(load, lambda: parts.log.view, parts.places.cwd, lambda: parts.flags.on("rules"))

    @property
    def busy(self) -> bool:
        """Whether a turn is running, or the context is being changed."""
        return self._turn is not None or self.engine.compactor.running

    def ensure_header(self) -> None:
        """The prefix is rendered once, also for another agent's conversation; then only its model may change."""
        parts, log = self.parts, self.parts.log
        header = log.view.header
        if header is None:
            log.hold(new_header(parts, self._schemas, self._today(), self.emit))
            if log.view.entries:
                self.conversation.announce(BreakCause.HEADER, "the conversation came without a header")
        elif header.model != parts.held_with:
            log.hold(replace(header, model=parts.held_with))
            why = f"the model changed from {header.model} to {parts.held_with}"
            self.conversation.announce(BreakCause.MODEL, why)

    def _render_header(self, old: SessionHeader) -> SessionHeader:
        """The prefix rendered again, as after a compaction; how long its cache is kept does not change."""
        fresh = new_header(self.parts, old.tools, self._today(), self.emit)
        return replace(fresh, ttl=old.ttl, ttl_reason=old.ttl_reason)

    def _today(self) -> date:
        return self._clock().astimezone().date()

    def _task_changed(self, info: TaskInfo) -> None:
        progress = info.progress[-1] if info.progress else ""
        self.emit(TaskChanged(info.id, info.purpose, info.title, info.state.value, progress))
        if info.state.is_over:
            self.agents.task_over(info)
        if info.state.is_over and self.dreaming is not None:
            self.dreaming.task_over(info.id)
