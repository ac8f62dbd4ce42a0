"""Layer 5 in a running session: after an answer, a fork learns from what is new, and nobody waits for it.

The gates, the state machine and the words are the layer's; this takes them to the session's tasks, fork, memory and
records. What fails here is counted, logged and tried again from the same cursor; it never reaches the conversation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from reverie.agents.fork import ForkPoint, run_fork
from reverie.errors import ReverieError
from reverie.events import Event, Notice
from reverie.layers.l5_extraction.directive import directive
from reverie.layers.l5_extraction.gates import Gate, Turn, stopped_by
from reverie.layers.l5_extraction.notice import notice
from reverie.layers.l5_extraction.own_writes import OwnWrites
from reverie.layers.l5_extraction.span import Span, new_since
from reverie.layers.l5_extraction.state import WRITER, State
from reverie.layers.l5_extraction.writes import Done, MemoryWrites, Source
from reverie.memory.directory import MemoryDirectory
from reverie.memory.scan import scan
from reverie.permissions.background import BackgroundWriter
from reverie.runtime.heartbeat import Heartbeat, run_figures
from reverie.runtime.tasks import Task, TaskHandle, Tasks
from reverie.session.parts import Parts
from reverie.session.stand_in import StandIn
from reverie.storage.transcript.records import Cursor, from_record
from reverie.storage.transcript.session_log import Clock
from reverie.storage.transcript.view import Entry
from reverie.tools.base import Keeper
from reverie.types import JsonObject, Purpose, Usage

SERIAL = "extraction"


class ExtractionFailed(ReverieError):
    """A run came to no good end; its messages are looked at again."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of layer 5 as they hold now."""

    every_turns: int = 1
    max_rounds: int = 5
    run_s: float = 180.0
    most_losses: int = 3


@dataclass(frozen=True, slots=True)
class Learnt:
    """What a run came to. `done`: what became of each topic file. `refused` and `denied`: why other writes were not."""

    done: dict[str, Done]
    refused: tuple[str, ...]
    denied: tuple[str, ...]
    usage: Usage
    rounds: int
    reason: str

    def figures(self) -> JsonObject:
        """What the log and the heartbeat keep of it."""
        return {
            "written": len(self.done),
            "refused": len(self.refused),
            "denied": len(self.denied),
            **run_figures(self.usage, rounds=self.rounds),
        }


def extraction_numbers(parts: Parts) -> Numbers:
    """The settings, and what flags change of them."""
    given, number = parts.settings.extraction, parts.flags.number
    return Numbers(
        every_turns=number("extraction.every_turns", given.every_turns),
        max_rounds=number("extraction.max_rounds", given.max_rounds),
        run_s=number("extraction.run_s", given.run_s),
        most_losses=number("extraction.most_losses", given.most_losses),
    )


async def learn(
    point: ForkPoint,
    span: Span,
    directory: MemoryDirectory,
    numbers: Numbers,
    *,
    session: str,
    today: date,
    keeps_index: bool = True,
    addressed: Path | None = None,
    report: Callable[[str, str], None] = lambda _kind, _reason: None,
    progress: Callable[[str], None] = lambda _text: None,
) -> Learnt:
    """One run over the new messages. `report` is told at once what was denied or refused, and why.

    `addressed`: the path by which the model knows the directory, where `directory` is a copy of it.

    Raises what the model raised, `StorageError` if the disk refused a write, or `ExtractionFailed` if the run came to
    no end.
    """
    await asyncio.to_thread(directory.make)
    found = await asyncio.to_thread(scan, directory.root)
    known_as = addressed or directory.root
    asked = directive(span, found.entries, known_as, rounds=numbers.max_rounds, today=today)
    source = Source(session, span.end or "", span.evidence())
    writes = MemoryWrites(
        directory,
        source,
        keeps_index=keeps_index,
        most_losses=numbers.most_losses,
        report=lambda reason: report("refused", reason),
    )
    permission = BackgroundWriter(known_as, on_denied=lambda tool, reason: report("denied", f"{tool}: {reason}"))

    def in_the_copy(path: Path) -> Path:
        return directory.root / path.relative_to(known_as) if path.is_relative_to(known_as) else path

    def keeper(path: Path) -> Keeper | None:
        return writes.keeper(in_the_copy(path))

    context = replace(point.context, keeper=keeper, map_path=in_the_copy)
    try:
        async with asyncio.timeout(numbers.run_s):
            result = await run_fork(
                replace(point, context=context),
                asked,
                purpose=Purpose.EXTRACTION,
                permission=permission,
                max_rounds=numbers.max_rounds,
                progress=progress,
            )
    except TimeoutError:
        raise ExtractionFailed(f"it took longer than {numbers.run_s:g} s and was ended") from None
    if writes.unstored is not None:
        raise writes.unstored
    if result.reason == "refused":
        raise ExtractionFailed("the model refused to answer")
    if result.reason != "answered" and not writes.done:
        raise ExtractionFailed(f"it came to no end in {result.rounds} rounds and wrote nothing")
    return Learnt(writes.done, tuple(writes.refused), result.denied, result.usage, result.rounds, result.reason)


@dataclass(frozen=True, slots=True)
class Ended:
    """A turn that ended: the conversation as it stood then, whatever happens to it afterwards."""

    point: ForkPoint


class Extractor:
    """One a session. `turn_ended` is all the session calls; it returns at once and raises nothing."""

    def __init__(
        self,
        parts: Parts,
        tasks: Tasks,
        fork_point: Callable[[], ForkPoint],
        *,
        memory: MemoryDirectory | None,
        interactive: bool,
        stand_in: StandIn,
        emit: Callable[[Event], None],
        clock: Clock,
    ) -> None:
        self._parts = parts
        self._tasks = tasks
        self._fork_point = fork_point
        self._memory = memory
        self._interactive = interactive
        self._stand_in = stand_in
        self._emit = emit
        self._clock = clock
        self._state: State[Ended] = State()
        self._task: Task[None] | None = None
        self._heartbeat = Heartbeat(parts.places.heartbeat(WRITER), now=clock)

    def turn_ended(self, *, answered: bool, main_agent: bool = True) -> Gate | None:
        """Looks at a turn of the main conversation that is over; the gate it stopped at, if it did."""
        gate = self._gate(answered, main_agent)
        if gate not in (None, Gate.NOT_ANSWERED, Gate.RUNNING):
            self._heartbeat.stop(gate.value)
        return gate

    def _gate(self, answered: bool, main_agent: bool) -> Gate | None:
        parts = self._parts
        shut = stopped_by(
            Turn(
                answered=answered,
                memory=self._memory is not None,
                main_agent=main_agent,
                remote=parts.settings.remote.enabled,
                interactive=self._interactive,
                daily_log=self._prefix_flag("daily_log"),
                is_on=parts.flags.on,
            )
        )
        if shut is not None:
            return shut
        every = extraction_numbers(parts).every_turns
        if self._task is not None and self._task.info.state.is_over:  # also one that was killed before it began
            self._state = self._state.killed()
            self._task = None
        if self._state.running is not None:
            self._state, _ = self._state.ended(Ended(self._fork_point()))
            return Gate.RUNNING
        span = self._span(parts.log.view.entries)
        if (skipped := self._skips(span)) is not None:
            return skipped
        if not self._state.is_due(every):
            self._state = self._state.waited()
            return Gate.THROTTLE
        if self._stand_in.may_begin(Purpose.EXTRACTION) is not None:
            return Gate.BUDGET
        self._state, start = self._state.ended(Ended(self._fork_point()), every=every)
        assert start is not None
        self._start(start)
        return None

    def _prefix_flag(self, name: str) -> bool:
        """A flag that shapes the prefix, as it was when this conversation's was rendered."""
        header = self._parts.log.view.header
        return header is not None and bool(header.flags.get(name))

    def _span(self, entries: Sequence[Entry]) -> Span:
        return new_since(entries, self._cursors())

    def _cursors(self) -> Iterator[str | None]:
        """How far it has looked, newest first; older ones count where a rewind has taken the newest away."""
        log = self._parts.log
        yield log.view.cursors.get(WRITER)
        for record in reversed(log.records):
            payload = from_record(record)
            if isinstance(payload, Cursor) and payload.writer == WRITER:
                yield payload.uuid

    def _skips(self, span: Span) -> Gate | None:
        """Why there is nothing to do for these messages. What the agent saved itself counts as looked at."""
        memory = self._memory
        assert memory is not None
        if not span.has_person:
            return Gate.NOTHING_NEW
        parts = self._parts
        own = OwnWrites(memory.root, parts.places.cwd, parts.settings.places.user_home)
        if span.wrote_memory(own.is_one):
            self._looked_at(span)
            return Gate.OWN_WRITE
        return None

    def _looked_at(self, span: Span) -> None:
        if span.end is not None:
            self._parts.log.append(Cursor(WRITER, span.end))

    # -- one run --------------------------------------------------------------------------------------------------

    def _start(self, turn: Ended) -> None:
        self._task = self._tasks.start(
            Purpose.EXTRACTION, "learning from the conversation", lambda task: self._work(turn, task), serial=SERIAL
        )

    async def _work(self, turn: Ended, task: TaskHandle) -> None:
        try:
            await self._run(turn, task)
        except asyncio.CancelledError:
            self._state = self._state.killed()
            raise
        except Exception as error:
            self._failed(error)
            self._go_on()
            raise
        self._go_on()

    def _go_on(self) -> None:
        """The run is over: the turn that waited for it, if any, has its own now."""
        self._state, trailing = self._state.over()
        if trailing is not None:
            self._start(trailing)

    async def _run(self, turn: Ended, task: TaskHandle) -> None:
        parts, memory = self._parts, self._memory
        assert memory is not None
        span = self._span(turn.point.conversation.log.view.entries)
        gate = self._skips(span)
        if gate is None and self._stand_in.may_begin(Purpose.EXTRACTION) is not None:
            gate = Gate.BUDGET
        if gate is not None:
            self._heartbeat.stop(gate.value)
            return
        began = self._clock()
        learnt = await self._stand_in.run(
            Purpose.EXTRACTION,
            turn.point,
            lambda point: learn(
                point,
                span,
                memory,
                extraction_numbers(parts),
                session=parts.log.session_id,
                today=began.astimezone().date(),
                keeps_index=not self._prefix_flag("recall.no_index"),
                report=lambda kind, reason: parts.background.write(f"extraction_{kind}", reason=reason),
                progress=task.progress,
            ),
        )
        self._looked_at(span)
        self._tell(learnt, (self._clock() - began).total_seconds())

    def _tell(self, learnt: Learnt, seconds: float) -> None:
        figures = {"seconds": round(seconds, 3), **learnt.figures()}
        self._parts.background.write("extraction_done", files=list(learnt.done), ended=learnt.reason, **figures)
        self._heartbeat.success(**figures)
        text = notice(learnt.done)
        if text is not None:
            self._emit(Notice(text, source="memory"))

    def _failed(self, error: Exception) -> None:
        # What other people's errors say may quote the conversation; the kind is enough.
        said = str(error) if isinstance(error, ReverieError) else f"Unexpected {type(error).__name__}."
        if self._heartbeat.failure(said):
            text = (
                f"learning from the conversation has failed three times in a row: {said} (`reverie doctor` says more)"
            )
            self._emit(Notice(text, "warning", "memory"))
