"""Layer 5 during a conversation: after an answer, a fork learns from the new messages in the background.

Failures are counted, logged and tried again from the same cursor; they never reach the conversation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import KW_ONLY, field

from reverie.errors import ReverieError
from reverie.events import Event, Notice
from reverie.layers.base import Fork, Forks
from reverie.layers.l5_extraction.explicit import asks_to_remember, keep_requests
from reverie.layers.l5_extraction.gates import WRITER, ExtractionGate, RunState, find_closed_gate
from reverie.layers.l5_extraction.learning import ExtractionNumbers, LearningResult, learn
from reverie.layers.l5_extraction.span import MessageSpan, OwnWrites, new_since
from reverie.layers.l5_extraction.writes import VERBS, Done
from reverie.memory.opening import OpenedMemory
from reverie.memory.taxonomy import Trust
from reverie.quick import dataclass
from reverie.runtime.heartbeat import Heartbeat
from reverie.runtime.parts import Parts
from reverie.runtime.tasks import Task, TaskHandle, Tasks
from reverie.storage.transcript.records import Cursor, from_record
from reverie.storage.transcript.session_log import Clock
from reverie.types import Purpose

SERIAL = "extraction"
_VERSIONS = 200
"""How many versions of memory one turn can make, with those of other sessions."""


@dataclass(eq=False)
class Extractor:
    """The extractor of one session. The session calls only `turn_ended`, which returns at once and never raises."""

    parts: Parts
    tasks: Tasks
    forks: Forks
    _: KW_ONLY
    memory: OpenedMemory | None
    interactive: bool
    emit: Callable[[Event], None]
    clock: Clock
    _task: Task[None] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._state: RunState[Fork] = RunState()
        self._heartbeat = Heartbeat(self.parts.places.heartbeat(WRITER), now=self.clock)

    def turn_ended(self, *, answered: bool, main_agent: bool = True) -> ExtractionGate | None:
        """Looks at a turn that is over. Returns the gate that stopped it, if one did."""
        gate = self._gate(answered, main_agent)
        if gate not in (None, ExtractionGate.NOT_ANSWERED, ExtractionGate.RUNNING):
            self._heartbeat.stop(gate.value)
        return gate

    def _gate(self, answered: bool, main_agent: bool) -> ExtractionGate | None:
        parts = self.parts
        closed = find_closed_gate(
            parts.flags.on,
            answered=answered,
            memory=self.memory is not None,
            main_agent=main_agent,
            remote=parts.settings.remote.enabled,
            interactive=self.interactive,
            daily_log=parts.prefix_flag("daily_log"),
        )
        if closed is not None:
            return closed
        every = parts.numbers(ExtractionNumbers, "extraction").every_turns
        if self._task is not None and self._task.info.state.is_over:  # also one that was killed before it began
            self._state = self._state.killed()
            self._task = None
        if self._state.running is not None:
            self._state, _ = self._state.ended(self.forks.kept())
            return ExtractionGate.RUNNING
        span = new_since(self.forks.now().learnable, self._cursors())
        if (skipped := self._why_skip(span)) is not None:
            if skipped is ExtractionGate.OWN_WRITE and asks_to_remember(span):
                self._start_keeping(span)
            return skipped
        if not self._state.is_due(every):
            self._state = self._state.waited()
            return ExtractionGate.THROTTLE
        if self.forks.may_begin(Purpose.EXTRACTION) is not None:
            return ExtractionGate.BUDGET
        self._state, start = self._state.ended(self.forks.kept(), every=every)
        assert start is not None
        self._start(start)
        return None

    def _cursors(self) -> Iterator[str | None]:
        log = self.parts.log
        yield log.view.cursors.get(WRITER)
        for record in reversed(log.records):
            payload = from_record(record)
            if isinstance(payload, Cursor) and payload.writer == WRITER:
                yield payload.uuid

    def _why_skip(self, span: MessageSpan) -> ExtractionGate | None:
        """Returns why there is nothing to do for these messages. What the agent saved itself counts as looked at."""
        memory = self.memory
        assert memory is not None
        if not span.has_person:
            return ExtractionGate.NOTHING_NEW
        parts = self.parts
        own = OwnWrites(memory.directory.root, parts.places.cwd, parts.settings.places.user_home)
        if span.wrote_memory(own.is_by_shell) or (span.wrote_memory(own.is_by_tool) and self._has_landed(span)):
            self._move_cursor(span)
            return ExtractionGate.OWN_WRITE
        return None

    def _has_landed(self, span: MessageSpan) -> bool:
        """Whether memory has a version of these messages: a write that waits in the inbox makes none."""
        assert self.memory is not None
        session, messages = self.parts.log.session_id, {entry.uuid for entry in span.entries}
        newest = (version.info for version in self.memory.directory.log(limit=_VERSIONS))
        return any(one.session == session and one.message in messages for one in newest)

    def _start_keeping(self, span: MessageSpan) -> None:
        memory = self.memory
        assert memory is not None
        what = "keeping what you asked to remember"
        self.tasks.start(Purpose.EXTRACTION, what, lambda _: self._keep_requests(memory, span), serial=SERIAL)

    def _move_cursor(self, span: MessageSpan) -> None:
        if span.end is not None:
            self.parts.log.append(Cursor(WRITER, span.end))

    # -- one run --------------------------------------------------------------------------------------------------

    def _start(self, turn: Fork) -> None:
        self._task = self.tasks.start(
            Purpose.EXTRACTION, "learning from the conversation", lambda task: self._work(turn, task), serial=SERIAL
        )

    async def _work(self, turn: Fork, task: TaskHandle) -> None:
        try:
            await self._run(turn, task)
        except asyncio.CancelledError:
            self._state = self._state.killed()
            raise
        except Exception as error:
            self._report_failure(error)
            self._go_on()
            raise
        self._go_on()

    def _go_on(self) -> None:
        self._state, trailing = self._state.over()
        if trailing is not None:
            self._start(trailing)

    async def _run(self, turn: Fork, task: TaskHandle) -> None:
        parts, memory = self.parts, self.memory
        assert memory is not None
        span = new_since(turn.learnable, self._cursors())
        gate = self._why_skip(span)
        if gate is None and self.forks.may_begin(Purpose.EXTRACTION) is not None:
            gate = ExtractionGate.BUDGET
        if gate is not None:
            self._heartbeat.stop(gate.value)
            return
        began = self.clock()
        try:
            learnt = await self.forks.attempt(
                Purpose.EXTRACTION,
                turn,
                lambda fork: learn(
                    fork,
                    span,
                    memory.directory,
                    parts.numbers(ExtractionNumbers, "extraction"),
                    session=parts.log.session_id,
                    today=began.astimezone().date(),
                    report=lambda kind, reason: parts.background.write(f"extraction_{kind}", reason=reason),
                    progress=task.progress,
                ),
            )
        except Exception:  # whatever failed, what the user asked to remember is kept; the caller reports the error
            await self._keep_requests(memory, span)
            raise
        self._move_cursor(span)
        self._tell(learnt, (self.clock() - began).total_seconds())
        await self._keep_requests(memory, span)

    async def _keep_requests(self, memory: OpenedMemory, span: MessageSpan) -> None:
        """Saves what the user asked to remember and the run did not write."""
        kept = await asyncio.to_thread(
            keep_requests,
            memory,
            span,
            self.parts.log.session_id,
            today=self.clock().astimezone().date(),
        )
        if kept:
            self.parts.background.write("extraction_kept_request", files=list(kept))
            self.emit(Notice(f"{notice(kept)}, as you asked", source="memory"))

    def _tell(self, learnt: LearningResult, seconds: float) -> None:
        figures = {"seconds": round(seconds, 3), **learnt.figures()}
        self.parts.background.write("extraction_done", files=list(learnt.done), ended=learnt.reason, **figures)
        self._heartbeat.success(**figures)
        text = notice(learnt.done, held=len(learnt.held), inferred=self._inferred(learnt))
        if text is not None:
            self.emit(Notice(text, source="memory"))

    def _inferred(self, learnt: LearningResult) -> list[str]:
        """The written files that are only inferred."""
        if self.memory is None:
            return []
        directory, marks = self.memory.directory, self.memory.gate.marks
        there = [name for name, what in learnt.done.items() if what != "forgotten" and directory.exists(name)]
        return [name for name in there if marks.lead_trust(directory.read(name).text) is Trust.INFERRED]

    def _report_failure(self, error: Exception) -> None:
        # What other people's errors say may quote the conversation; the kind is enough.
        said = str(error) if isinstance(error, ReverieError) else f"Unexpected {type(error).__name__}."
        if self._heartbeat.failure(said):
            text = (
                f"learning from the conversation has failed three times in a row: {said} (`reverie doctor` says more)"
            )
            self.emit(Notice(text, "warning", "memory"))


def notice(done: Mapping[str, Done], *, held: int = 0, inferred: Collection[str] = ()) -> str | None:
    """Describes the result of a run for the user in one sentence; None if nothing was written and nothing waits."""
    parts = [
        f"{word} {', '.join(_marked(name, name in inferred) for name, what in done.items() if what == kind)}"
        for kind, word in VERBS.items()
        if kind in done.values()
    ]
    if held:
        parts.append(f"{held} line{'s wait' if held > 1 else ' waits'}: /memory inbox")
    undo = " (`reverie memory log` shows it, `memory undo` takes it back)" if done else ""
    return "; ".join(parts) + undo if parts else None


def _marked(name: str, is_inferred: bool) -> str:
    return f"{name} (inferred from what you said)" if is_inferred else name
