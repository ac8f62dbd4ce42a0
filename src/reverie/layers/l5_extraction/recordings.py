"""Layer 5 for recorded conversations: the same run, turn by turn, with the dates of the messages.

Nothing is cached, so a run sees only its turn and the one before, with long tool results cut. It uses the same
directory, gate and rules.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, field, replace
from datetime import date, datetime
from pathlib import Path

from reverie import __version__
from reverie.layers.base import Fork
from reverie.layers.l5_extraction.gates import WRITER
from reverie.layers.l5_extraction.learning import ExtractionNumbers, LearningResult, learn
from reverie.layers.l5_extraction.span import MessageSpan, with_short_results
from reverie.memory.directory import MemoryDirectory
from reverie.models.catalogue import Catalogue
from reverie.models.prices import cost
from reverie.models.tokens import PROSE_BYTES
from reverie.moments import local_day
from reverie.quick import dataclass
from reverie.runtime.parts import Parts
from reverie.storage.transcript.chain import conversation
from reverie.storage.transcript.records import Cursor, SessionHeader, from_record
from reverie.storage.transcript.session_files import is_session_name, read_session
from reverie.storage.transcript.session_log import SessionLog
from reverie.storage.transcript.view import Entry, View
from reverie.types import Message, Origin, Record, TextBlock, ThinkingBlock, Usage

_RESULT_CHARACTERS = (1_000, 200, 20)
"""Tool results are cut to the first length; to the next ones only if a turn is too long for the window."""
_SHARE = 0.5
"""The largest share of the window that the turns of one run may fill."""
_NO_ANSWER = "(no answer is recorded)"


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded conversation: its entries in order, and how far a session has learnt from it already."""

    path: Path
    entries: tuple[Entry, ...]
    learnt: str | None = None
    session: str = ""
    """The id of the session; empty if there is none."""
    size: int = 0
    """The size of the file when it was read; 0 if it is not known."""

    @property
    def turns(self) -> list[tuple[int, int]]:
        """The first and last index of each turn; a turn begins with what the user typed."""
        starts = [i for i, entry in enumerate(self.entries) if _begins_turn(entry)]
        return list(zip(starts, [*starts[1:], len(self.entries)], strict=False))

    @property
    def is_answered(self) -> bool:
        """Whether the last thing said is an answer of the agent."""
        last = self.entries[-1].message if self.entries else None
        return last is not None and last.role == "assistant" and not last.tool_uses and bool(last.text.strip())

    def without_open_turn(self) -> Recording:
        """Returns the recording without a last turn that has no answer yet."""
        if self.is_answered or not self.turns:
            return self
        return replace(self, entries=self.entries[: self.turns[-1][0]], size=0)

    def place_of(self, uuid: str | None) -> int:
        """Returns how many entries there are up to this one; 0 if it is not there."""
        if uuid is None:
            return 0
        return next((i + 1 for i, entry in enumerate(self.entries) if entry.uuid == uuid), 0)


def read_recording(path: Path) -> Recording:
    """Reads a transcript of ours, of Claude Code, Codex or pi. `UserError` if there is none."""
    records = read_session(path).records
    size = path.stat().st_size
    view = View.of(conversation(records))
    return Recording(path, tuple(view.history), _cursor(records), session_of(path, records), size)


def session_of(path: Path, records: Sequence[Record]) -> str:
    """Returns the id of the session in a file: the name of the file if it is one, else what the records say, if any."""
    if is_session_name(path):
        return path.stem
    named = (str(record.data["sessionId"]) for record in records if record.data.get("sessionId"))
    return next(filter(str.isprintable, named), "")  # it becomes the name of a file


def _cursor(records: Sequence[Record]) -> str | None:
    cursors = (from_record(record) for record in reversed(records))
    return next((one.uuid for one in cursors if isinstance(one, Cursor) and one.writer == WRITER), None)


def _begins_turn(entry: Entry) -> bool:
    return any(isinstance(b, TextBlock) and b.origin.is_users and b.text.strip() for b in entry.message.content)


@dataclass(eq=False, slots=True)
class Learner:
    """Learns from recorded messages with one model into one memory directory.

    `fork` makes a conversation from a log, `header` its prefix for a day. `addressed` is the path by which the model
    knows the directory, if `memory` is a copy.
    """

    parts: Parts
    memory: MemoryDirectory
    _: KW_ONLY
    fork: Callable[[SessionLog], Fork]
    header: Callable[[date], SessionHeader]
    addressed: Path | None = None
    usage: Usage = field(default_factory=Usage, init=False)
    cost_usd: float = field(default=0.0, init=False)
    """The cost of all runs; 0 if the model has no price."""

    async def learn(
        self,
        entries: Sequence[Entry],
        start: int,
        end: int,
        *,
        today: date | None = None,
        report: Callable[[str, str], None] = lambda _kind, _reason: None,
    ) -> LearningResult:
        """Runs once over the entries from `start` to `end`; the turn before them is shown too."""
        parts = self.parts
        day = today or local_day(entries[end - 1].timestamp) or datetime.now().astimezone().date()
        log, first = part_log(entries, start, end, self.header(day), parts)
        own = list(log.view.entries[first:])
        if own[-1].message.text == _NO_ANSWER:
            own[-1] = replace(own[-1], uuid=None)
        span = MessageSpan(tuple(own), log.view.entries[first - 1] if first else None)
        learnt = await learn(
            self.fork(log),
            span if span.before is None or span.before.message.role == "assistant" else replace(span, before=None),
            self.memory,
            parts.numbers(ExtractionNumbers, "extraction"),
            session=parts.log.session_id,
            today=day,
            older=entries[:start],
            addressed=self.addressed,
            report=report,
        )
        self.usage += learnt.usage
        catalogue = Catalogue.load(parts.settings.catalogue.files)
        self.cost_usd += cost(learnt.usage, catalogue.facts_of_answer(learnt.model, parts.facts))
        return learnt


def part_log(
    entries: Sequence[Entry], start: int, end: int, header: SessionHeader, parts: Parts
) -> tuple[SessionLog, int]:
    """Returns a log in memory of the entries from `start` to `end` and the turn before them, made short enough for the
    window, and the index of its first entry that is not of the turn before."""
    shown_from = next((i for i in range(start - 1, -1, -1) if _begins_turn(entries[i])), start)
    shown, first = _fit_window(entries[shown_from:end], start - shown_from, parts)
    log = SessionLog(None, parts.log.session_id, cwd=parts.places.cwd, version=__version__)
    log.append(header)
    for entry in shown:
        name = entry.uuid or str(uuid.uuid4())
        # The usage of the old response is the size of another context.
        log.append_message(_without_thinking(entry), uuid=name, timestamp=entry.timestamp, uncounted=True)
    if shown[-1].message.role == "user":  # otherwise the directive would be a part of the user's own message
        log.append_message(Message("assistant", (TextBlock(_NO_ANSWER, Origin.CODE),)))
    return log, first


def _fit_window(entries: Sequence[Entry], first: int, parts: Parts) -> tuple[list[Entry], int]:
    room = int(parts.limits.effective * _SHARE) * PROSE_BYTES
    shown = list(entries)
    for characters in _RESULT_CHARACTERS:
        shown = with_short_results(entries, characters)
        if _bytes(shown) <= room:
            return shown, first
    # A turn of hundreds of rounds: messages stay, tool rounds go.
    said = [i for i, entry in enumerate(shown) if not entry.message.tool_uses and not entry.message.tool_results]
    while len(said) > 1 and _bytes([shown[i] for i in said]) > room:
        said.pop(0)
    return [shown[i] for i in said], sum(i < first for i in said)


def _without_thinking(entry: Entry) -> Message:
    """Returns a message without thinking, which is signed for another model."""
    blocks = tuple(block for block in entry.message.content if not isinstance(block, ThinkingBlock))
    return replace(entry.message, content=blocks)


def _bytes(entries: Sequence[Entry]) -> int:
    return sum(
        len(str(block.wire()).encode("utf-8", "replace")) for entry in entries for block in entry.message.content
    )


def spans(talk: Recording, done: int) -> Iterator[tuple[int, int]]:
    """Yields the first and last index of the turns that begin at or after the first `done` entries."""
    yield from ((start, end) for start, end in talk.turns if start >= done)
