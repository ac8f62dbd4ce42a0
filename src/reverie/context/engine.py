"""Puts all layers of one conversation together and joins them to a loop.

The loop begins and ends turns here; its `conversation` prepares requests, observes responses and keeps results. The
owner of the loop provides what only it can do (`EngineHost`) and never calls a layer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from reverie.context.accounts import Accounts
from reverie.context.compactor import Compactor
from reverie.context.conversation import Around, Conversation
from reverie.context.effects import Effects
from reverie.context.pipeline import Pipeline
from reverie.events import Event, Notice
from reverie.layers.base import AskFork, Companion, EffectResult, Forks, RunHook, Stage, SteppedStage
from reverie.layers.l1_tool_results.message_budget import MessageBudget
from reverie.layers.l2_microcompact.stage import Microcompact, MicrocompactNumbers
from reverie.layers.l3_session_notes.keeper import NoteKeeper, note_numbers
from reverie.layers.l4_compaction.folding import Collapse, Snip
from reverie.layers.l4_compaction.setup import CompactionNumbers, CompactionSetup
from reverie.layers.l4_compaction.stage import AutoCompact, Breakers, Compaction, Reactive
from reverie.layers.l5_extraction.extractor import Extractor
from reverie.layers.l6_dreaming.dreaming import Dreaming
from reverie.memory.opening import OpenedMemory
from reverie.memory.recall.runner import Recall
from reverie.models.request_log import RequestLog
from reverie.models.sending import RetryPolicy
from reverie.quick import dataclass
from reverie.runtime.parts import Parts
from reverie.runtime.tasks import Tasks
from reverie.storage.transcript.records import LayerFailure, SessionHeader, TurnCounts
from reverie.storage.transcript.session_log import Clock
from reverie.types import Block, Purpose

_INSTRUCTION_FILES = frozenset({"AGENTS.md", "CLAUDE.md", "AGENTS.local.md", "CLAUDE.local.md"})


async def _nothing() -> None:
    return None


async def _no_hook(_effect: RunHook) -> EffectResult:
    return EffectResult(ok=True)


@dataclass(frozen=True, slots=True)
class EngineHost:
    """What only the owner of the loop can do. A loop without hooks and agents keeps the defaults."""

    forks: Forks
    ask: Callable[[Conversation, AskFork], Awaitable[EffectResult]]
    render_header: Callable[[SessionHeader], SessionHeader]
    """Renders the prefix again, for example after a compaction."""
    ensure_header: Callable[[], None]
    in_turn: Callable[[], bool]
    """Whether a turn is running, so that nobody else may change the context."""
    on_clear: Callable[[], Awaitable[None]] = _nothing
    run_hook: Callable[[RunHook], Awaitable[EffectResult]] = _no_hook
    attached: Callable[[], Sequence[Block]] = tuple
    """Blocks that the model must see again after a compaction."""
    discovered: Callable[[], Sequence[str]] = tuple
    """The tools whose definitions the model has loaded."""
    keeps_notes: bool = True
    """False: notes are written by code when a compaction needs them, and not between two requests."""
    clears_any_tool: bool = False
    """Whether results of unknown tools may be cleared, after a copy is on disk."""
    allowance: Callable[[], float | None] = lambda: None
    """What clearing old results may cost at once, in tokens of fresh input; None: no limit."""


@dataclass(frozen=True, slots=True)
class _LateRecall(Companion):
    """Shows what a model chose after the message was sent, with the results of the next round."""

    recall: Recall

    async def between_rounds(self) -> Sequence[Block]:
        return await self.recall.take_late()


class LayerEngine:
    """The layers around one conversation. The `companions` come after layer 3, in their order."""

    def __init__(
        self,
        parts: Parts,
        host: EngineHost,
        *,
        tasks: Tasks,
        accounts: Accounts,
        memory: OpenedMemory | None,
        companions: Sequence[Companion] = (),
        interactive: bool,
        emit: Callable[[Event], None],
        clock: Clock,
    ) -> None:
        self._parts = parts
        self._host = host
        self._emit = emit
        self._memory = memory
        self._folder = parts.places.tool_results(parts.log.session_id)
        self._effects = Effects(
            parts.settings,
            parts.flags,
            parts.limits.window,
            self._folder,
            ask_fork=lambda effect: host.ask(self.conversation, effect),
            run_hook=host.run_hook,
            wait_for=tasks.settle,
            failed=lambda why: self.report_failure("tool_results", why),
        )
        self.notes = NoteKeeper(parts, tasks, host.forks, auto_on=self.auto_on, emit=emit)
        self.compaction = Compaction(self._ground(), Breakers.of(parts.log.records))
        self.compactor = Compactor(
            parts,
            self.compaction,
            lambda: self.conversation,
            ensure_header=host.ensure_header,
            in_turn=host.in_turn,
            set_notes_aside=self.notes.set_aside,
            on_clear=host.on_clear,
            emit=emit,
        )
        self.recall: Recall | None = None
        if memory is not None:
            self.recall = Recall(
                parts,
                memory.directory,
                why_not_ask=lambda: host.forks.unwanted(Purpose.RECALL),
                takes_over=lambda why: host.forks.takes_over(Purpose.RECALL, why),
                emit=emit,
                clock=clock,
            )
            companions = (*companions, _LateRecall(self.recall))
        own = (self.compactor, self.notes) if host.keeps_notes else (self.compactor,)
        self.conversation = self._converse(accounts, (*own, *companions), clock)
        self.extractor = Extractor(
            parts,
            tasks,
            host.forks,
            memory=memory,
            interactive=interactive,
            emit=emit,
            clock=clock,
        )
        self.dreaming: Dreaming | None = None
        if memory is not None:
            self.dreaming = Dreaming(
                parts, tasks, host.forks, memory, ensure_header=host.ensure_header, emit=emit, clock=clock
            )

    # -- what a loop calls ----------------------------------------------------------------------------------------

    async def begin_turn(self, query: str) -> None:
        """Call when a user message is recorded: updates the limits and recalls the memories that fit."""
        self.conversation.thresholds = self._parts.limits_now()
        if self.recall is not None and query.strip():
            await self.recall.recall(query)

    def end_turn(self, *, answered: bool) -> None:
        """Call when a turn is over: starts extraction in the background."""
        if self.recall is not None:
            self.recall.turn_ended(answered=answered)
        gate = self.extractor.turn_ended(answered=answered)
        if gate is not None:
            self._parts.tally.declined("extraction", gate.value)

    def result_limit(self, tool: str) -> int:
        """Returns how many characters of a result of this tool stay in the conversation."""
        limits = self._effects.limits(tool)
        return limits.by_tool.get(tool, limits.default)

    def report_failure(self, layer: str, why: str) -> None:
        """Records that a layer failed, for `reverie health` and `reverie doctor`."""
        failure = LayerFailure(layer, why)
        self._parts.log.append(failure)
        self._log_failure(failure)

    def _log_failure(self, failure: LayerFailure) -> None:
        self._parts.background.write("layer_failed", layer=failure.layer, error=failure.why)

    def idle(self, *, answered: bool) -> None:
        """Call when the user has the answer: starts a dream if its gates are open, records the turn's
        counts, and waits for a pause."""
        parts = self._parts
        if answered and self.dreaming is not None:
            closed = self.dreaming.after_turn()
            if closed is not None:
                parts.tally.declined("dream", f"the gate `{closed.gate.value}` is closed")
        declined, retried = parts.tally.take()
        if declined or retried:
            parts.log.append(TurnCounts(declined, retried))
        if answered:
            self.compactor.compact_when_idle()

    async def close(self) -> None:
        if self.recall is not None:
            await self.recall.close()

    # -- how it is put together -----------------------------------------------------------------------------------

    def _converse(self, accounts: Accounts, companions: tuple[Companion, ...], clock: Clock) -> Conversation:
        parts = self._parts
        log_to = parts.settings.debug.request_log
        return Conversation(
            log=parts.log,
            model=parts.model,
            thresholds=parts.limits,
            emit=self._emit,
            pipeline=Pipeline(
                self._stages(),
                parts.flags.on,
                self._report_stage_failure,
                self._log_failure,
                parts.tally.declined,
            ),
            retry=RetryPolicy.of(parts.settings),
            request_log=RequestLog(log_to) if log_to is not None else None,
            around=Around(companions, self._effects.keep, self._effects.carry_out),
            clock=clock,
            account=accounts.main(),
            ask=self._host.ask,
            retried=parts.tally.retried,
        )

    def _stages(self) -> dict[str, Stage | SteppedStage]:
        parts = self._parts
        return {
            "tool_result_budget": MessageBudget(self._folder, self._effects.limits),
            "snip": Snip(),
            "microcompact": Microcompact(
                parts.facts,
                parts.model.capabilities,
                warning_at=parts.limits.warning,
                is_on=parts.flags.on,
                numbers=lambda: parts.numbers(MicrocompactNumbers, "microcompact"),
                folder=self._folder,
                any_tool=self._host.clears_any_tool,
                allowance=self._host.allowance,
            ),
            "collapse": Collapse(self._collapse_at, str(parts.places.cwd)),
            "autocompact": AutoCompact(self.compaction),
            "reactive": Reactive(self.compaction),
        }

    def _collapse_at(self) -> float:
        given = self._parts.settings.compaction.collapse_at_pct
        return self._parts.flags.number("compaction.collapse_at_pct", given)

    def auto_on(self) -> bool:
        """Whether the context may be compacted automatically."""
        flags, window = self._parts.flags, self._parts.settings.window
        off = window.disable_compact or window.disable_autocompact or flags.on("context_collapse")
        return not off and flags.on("compaction.auto")

    def _ground(self) -> CompactionSetup:
        parts, places = self._parts, self._parts.places
        return CompactionSetup(
            cwd=places.cwd,
            home=places.home,
            transcript=places.transcript(parts.log.session_id),
            requests=places.session(parts.log.session_id) / "requests",
            notes=places.session_notes(parts.log.session_id),
            template=places.notes_config / "template.md",
            render_header=self._host.render_header,
            numbers=lambda: parts.numbers(CompactionNumbers, "compaction").for_window(parts.limits.window),
            note_numbers=lambda: note_numbers(parts),
            code_notes=lambda: parts.settings.notes.cadence == "economic" and parts.flags.on("session_notes"),
            is_on=parts.flags.on,
            auto_on=self.auto_on,
            leave_out=self._is_restored_elsewhere,
            attachments=self._host.attached,
            discovered=self._host.discovered,
        )

    def _is_restored_elsewhere(self, path: Path) -> bool:
        folders = [self.notes.path.parent]
        if self._memory is not None:
            folders.append(self._memory.directory.root)
        return path.name in _INSTRUCTION_FILES or any(path.is_relative_to(folder) for folder in folders)

    def _report_stage_failure(self, name: str, error: Exception) -> None:
        self.report_failure(name, f"{type(error).__name__}: {error}")
        self._emit(Notice(f"the layer {name} failed and was left out: {error}", "warning", "layers"))
