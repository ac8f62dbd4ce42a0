"""Joins the parts of a session: which stages its pipeline has, what happens around its rounds, what tools are given.

The one place a new layer is plugged in. It builds and decides nothing; it never runs a turn.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from reverie.agents.fork import ForkPoint, ForkResult, kept_point, run_fork
from reverie.context.accounts import Accounts
from reverie.context.asking import ask
from reverie.context.conversation import Around, Conversation
from reverie.context.pipeline import Pipeline
from reverie.context.rule_attachments import RuleAttachments
from reverie.errors import AuthenticationFailed, Unreachable
from reverie.events import Event, Notice
from reverie.instructions import Instructions, load_instructions
from reverie.layers.base import AskFork, EffectResult, RunHook, Stage, SteppedStage
from reverie.layers.l1_tool_results.message_budget import MessageBudget
from reverie.layers.l2_microcompact.stage import Microcompact, Numbers
from reverie.layers.l4_compaction.collapse import Collapse
from reverie.layers.l4_compaction.ground import Ground
from reverie.layers.l4_compaction.numbers import CompactionNumbers
from reverie.layers.l4_compaction.snip import Snip
from reverie.layers.l4_compaction.stage import AutoCompact, Compaction, Reactive
from reverie.loop import Thread
from reverie.models.request_log import RequestLog
from reverie.models.sending import RetryPolicy
from reverie.permissions.rules import Decision, ToolCall
from reverie.runtime.hooks import HookEvent
from reverie.runtime.tasks import Tasks
from reverie.session.correspondence import Correspondence
from reverie.session.effects import Effects
from reverie.session.gate import Gate
from reverie.session.hook_points import HookPoints
from reverie.session.note_keeper import NoteKeeper, note_numbers
from reverie.session.parts import Parts, new_header
from reverie.session.remembering import Remembering
from reverie.session.stand_in import StandIn
from reverie.storage.transcript.records import SessionHeader
from reverie.storage.transcript.session_log import Clock
from reverie.tools.base import Caller, FileSeen, Tool, ToolContext, ToolOutput
from reverie.tools.seen_files import seen_files
from reverie.types import Block, Purpose, ToolUseBlock

_INSTRUCTION_FILES = frozenset({"AGENTS.md", "CLAUDE.md", "AGENTS.local.md", "CLAUDE.local.md"})


@dataclass(slots=True)
class Wiring:
    """What the wires run between. `conversation` and `thread` are the main agent's."""

    parts: Parts
    emit: Callable[[Event], None]
    tasks: Tasks
    points: HookPoints
    gate: Gate
    accounts: Accounts
    memory: Remembering | None
    letters: Correspondence
    clock: Clock
    stand_in: StandIn
    rules: RuleAttachments
    compaction: Compaction
    notes: NoteKeeper
    conversation: Conversation
    thread: Thread
    attached: Callable[[], Sequence[Block]]
    """What a compaction brings along that others want the model to see again."""

    @classmethod
    def join(
        cls,
        parts: Parts,
        *,
        emit: Callable[[Event], None],
        tasks: Tasks,
        points: HookPoints,
        gate: Gate,
        accounts: Accounts,
        memory: Remembering | None,
        letters: Correspondence,
        clock: Clock,
        tools: Sequence[Tool],
    ) -> Wiring:
        """Builds the main agent's conversation and thread."""
        wiring = cls.__new__(cls)  # the conversation needs the wiring, and the wiring the conversation
        wiring.parts, wiring.emit, wiring.tasks = parts, emit, tasks
        wiring.points, wiring.gate, wiring.accounts, wiring.clock = points, gate, accounts, clock
        wiring.memory, wiring.letters = memory, letters
        wiring.attached = tuple
        wiring.stand_in = StandIn(parts, accounts, emit)
        if memory is not None:
            memory.stand_in = wiring.stand_in
        wiring.rules = wiring._rules()
        wiring.compaction = Compaction(wiring._ground())
        wiring.notes = NoteKeeper(
            parts, tasks, wiring.fork, auto_on=wiring.auto_on, may_spend=wiring.stand_in.may_begin, emit=emit
        )
        wiring.conversation = wiring._converse()
        wiring.thread = wiring._main_thread({tool.name: tool for tool in tools})
        return wiring

    def _converse(self) -> Conversation:
        parts, model = self.parts, self.parts.settings.model
        log_to = parts.settings.debug.request_log
        effects = Effects(
            parts.settings,
            parts.flags,
            parts.limits.window,
            parts.places.tool_results(parts.log.session_id),
            ask_fork=self._ask_fork,
            run_hook=self._run_hook,
            wait_for=self.tasks.settle,
        )
        return Conversation(
            log=parts.log,
            model=parts.model,
            thresholds=parts.limits,
            emit=self.emit,
            pipeline=Pipeline(self._stages(effects), parts.flags.on, self._stage_failed),
            retry=RetryPolicy(
                model.retries,
                model.retry_first_wait_s,
                model.retry_longest_wait_s,
                model.retry_longest_asked_s,
                model.retry_connecting_s,
            ),
            request_log=RequestLog(log_to) if log_to is not None else None,
            around=Around(
                after_response=self.notes.after_response,
                after_result=self._after_result,
                between_rounds=self._between_rounds,
                may_stop=self.points.may_stop,
                keep=effects.keep,
                carry_out=effects.carry_out,
            ),
            clock=self.clock,
            account=self.accounts.main(),
            ask=self._ask_about,
        )

    def _stages(self, effects: Effects) -> dict[str, Stage | SteppedStage]:
        folder = self.parts.places.tool_results(self.parts.log.session_id)
        return {
            "tool_result_budget": MessageBudget(folder, effects.limits),
            "snip": Snip(),
            "microcompact": self._microcompact(folder),
            "collapse": Collapse(self._collapse_at, str(self.parts.places.cwd)),
            "autocompact": AutoCompact(self.compaction),
            "reactive": Reactive(self.compaction),
        }

    def _collapse_at(self) -> float:
        return self.parts.flags.number("compaction.collapse_at_pct", self.parts.settings.compaction.collapse_at_pct)

    def auto_on(self) -> bool:
        """Whether the context may be compacted without being asked, whatever the switch."""
        flags, window = self.parts.flags, self.parts.settings.window
        off = window.disable_compact or window.disable_autocompact or flags.on("context_collapse")
        return not off and flags.on("compaction.auto")

    def _ground(self) -> Ground:
        parts, places, given = self.parts, self.parts.places, self.parts.settings.compaction
        folder = places.session(parts.log.session_id)

        def numbers() -> CompactionNumbers:
            number = parts.flags.number
            values = {f.name: number(f"compaction.{f.name}", getattr(given, f.name)) for f in fields(CompactionNumbers)}
            return CompactionNumbers(**values).for_window(parts.limits.window)

        return Ground(
            cwd=places.cwd,
            home=places.home,
            transcript=places.transcript(parts.log.session_id),
            requests=folder / "requests",
            notes=places.session_notes(parts.log.session_id),
            template=places.notes_config / "template.md",
            render_header=self._render_header,
            numbers=numbers,
            note_numbers=lambda: note_numbers(parts),
            is_on=parts.flags.on,
            auto_on=self.auto_on,
            leave_out=self._restored_otherwise,
            attachments=lambda: self.attached(),
        )

    def _render_header(self, old: SessionHeader) -> SessionHeader:
        """The prefix rendered again, as after a compaction; how long its cache is kept does not change."""
        today = self.clock().astimezone().date()
        return replace(new_header(self.parts, old.tools, today, self.emit), ttl=old.ttl, ttl_reason=old.ttl_reason)

    def _restored_otherwise(self, path: Path) -> bool:
        """Memory and instruction files are shown again anyway, and notes stand for themselves."""
        folders = [self.parts.places.session_notes(self.parts.log.session_id).parent]
        if self.memory is not None:
            folders.append(self.memory.directory.root)
        return path.name in _INSTRUCTION_FILES or any(path.is_relative_to(folder) for folder in folders)

    def _microcompact(self, folder: Path) -> Microcompact:
        parts, number = self.parts, self.parts.flags.number
        given = parts.settings.microcompact

        def numbers() -> Numbers:
            return Numbers(
                pause_minutes=number("microcompact.pause_minutes", given.pause_minutes),
                keep_recent=number("microcompact.keep_recent", given.keep_recent),
                cache_edits_above=number("microcompact.cache_edits_above", given.cache_edits_above),
                server_trigger=number("microcompact.server_trigger", given.server_trigger),
                server_target=number("microcompact.server_target", given.server_target),
            )

        return Microcompact(
            parts.facts,
            parts.model.capabilities,
            warning_at=parts.limits.warning,
            is_on=parts.flags.on,
            numbers=numbers,
            folder=folder,
        )

    async def _after_result(self, call: ToolUseBlock, output: ToolOutput) -> Sequence[Block]:
        """What the model is told beside a result: what the hooks say, the rules for the file it touched, its age."""
        said = [*await self.points.after_result(call, output), *await self.rules.after_result(call, output)]
        return said if self.memory is None else [*said, *await self.memory.after_result(call, output)]

    async def _between_rounds(self) -> Sequence[Block]:
        """Letters last: nothing may wait between their leaving the queue and their being recorded."""
        return [*await self.notes.between_rounds(), *self.letters.drain()]

    def _rules(self) -> RuleAttachments:
        parts = self.parts

        def load() -> Instructions:
            return load_instructions(parts.places, parts.settings, window=parts.limits.window)

        return RuleAttachments(load, lambda: parts.log.view, parts.places.cwd, lambda: parts.flags.on("rules"))

    def _main_thread(self, tools: Mapping[str, Tool]) -> Thread:
        parts, settings = self.parts, self.parts.settings
        cap = min(settings.model.max_output, parts.facts.max_output)
        return Thread(
            log=parts.log,
            surroundings=self.conversation,
            tools=tools,
            context=ToolContext(
                cwd=parts.places.cwd,
                caller=Caller(),
                permission=self.gate,
                read_cache=seen_files(parts.log.view, parts.log.records, parts.places.cwd),
                keep_dir=parts.places.tool_results(parts.log.session_id),
                keeper=self.memory.keeper if self.memory is not None else lambda _path: None,
                post=self.letters.send,
            ),
            emit=self.emit,
            max_rounds=parts.flags.number("tools.max_rounds", settings.tools.max_rounds),
            parallel=lambda: parts.flags.number("tools.parallel", settings.tools.parallel),
            max_nudges=settings.model.go_on_nudges,
            output_cap=cap,
            output_cap_raised=max(cap, min(settings.model.raised_output, parts.facts.max_output)),
        )

    def fork_point(self) -> ForkPoint:
        """The conversation as it stands now, kept for a fork that is made later."""
        return kept_point(self.thread, self.conversation)

    async def fork(
        self,
        directive: str,
        *,
        purpose: Purpose,
        permission: Callable[[ToolCall], Awaitable[Decision]],
        max_rounds: int,
        max_tokens: int | None = None,
        seen: Mapping[Path, FileSeen] | None = None,
        progress: Callable[[str], None] = lambda _text: None,
        enough: Callable[[Sequence[ToolUseBlock]], bool] | None = None,
    ) -> ForkResult:
        """A fork of the main conversation as it stands now. `seen`: files it may edit without having read them."""
        thread = self.thread
        context = replace(thread.context, read_cache=thread.context.read_cache.copy())
        for path, known in (seen or {}).items():
            context.read_cache.note(path, known)
        point = ForkPoint(self.conversation, thread.tools, context, thread.output_cap, thread.output_cap_raised)

        async def work(begun: ForkPoint) -> ForkResult:
            return await run_fork(
                begun,
                directive,
                purpose=purpose,
                permission=permission,
                max_rounds=max_rounds,
                max_tokens=max_tokens,
                progress=progress,
                enough=enough,
            )

        return await (self.stand_in.run(purpose, point, work) if purpose is Purpose.NOTES else work(point))

    async def _ask_fork(self, effect: AskFork) -> EffectResult:
        return await self._ask_about(self.conversation, effect)

    async def _ask_about(self, conversation: Conversation, effect: AskFork) -> EffectResult:
        """Asks the model, unless such work is kept from it: code then writes what it would have, and that is told."""
        why = self.stand_in.unwanted(effect.purpose)
        if why is not None:
            self.stand_in.tell(effect.purpose, why)
            return EffectResult(ok=False, text=why, error=Unreachable(why))
        result = await ask(conversation, effect)
        error = result.error
        is_down = isinstance(error, AuthenticationFailed) or (error is not None and error.retryable)
        if is_down and self.stand_in.is_on:
            self.stand_in.tell(effect.purpose, str(error))
        return result

    async def _run_hook(self, effect: RunHook) -> EffectResult:
        outcome = await self.parts.hooks.fire(HookEvent(effect.event), effect.payload, match_on=effect.match_on)
        for notice in outcome.notices:
            self.emit(notice)
        return EffectResult(ok=not outcome.blocked, text=outcome.reason or "\n".join(outcome.context))

    def _stage_failed(self, name: str, error: Exception) -> None:
        self.parts.background.write("stage_failed", stage=name, error=f"{type(error).__name__}: {error}")
        self.emit(Notice(f"the layer {name} failed and was left out: {error}", "warning", "layers"))
