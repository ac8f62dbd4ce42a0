"""Recorded sessions, cut where they were compacted: the entries before, those after, and the room for a summary.

A long session without a compaction is cut where its context first reaches a number of tokens. Reads transcripts of
Claude Code, pi and Reverie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from reverie.errors import UserError
from reverie.lab.recordings import find_recordings
from reverie.models.calibration import Calibrator
from reverie.models.features import measure_blocks
from reverie.quick import dataclass
from reverie.storage.transcript.chain import conversation
from reverie.storage.transcript.records import CompactBoundary, from_record
from reverie.storage.transcript.session_files import read_session
from reverie.storage.transcript.view import Entry, View
from reverie.types import Record, TextBlock

SIMULATED_AT = 100_000
"""Tokens at which a long session without a compaction is cut."""

UNKNOWN_ROOM = 9_000
"""The budget if no recording has one: about the median of recorded compactions."""

_ENOUGH_AFTER = 5
"""The least calls after a simulated cut; fewer do not show what was needed."""

_SUMMARY_WITHIN = 8
"""The summary is among this many records after a boundary."""


@dataclass(frozen=True, slots=True)
class CompactionMoment:
    """One compaction. `summary` is from the recording (None: simulated); `room` is the budget in tokens."""

    session: str
    before: tuple[Entry, ...]
    after: tuple[Entry, ...]
    summary: str | None
    room: int
    cwd: str
    calibrator: Calibrator

    def tokens(self, text: str) -> int:
        """Tokens of a text, by the calibration of this session up to here."""
        if not text:
            return 0
        return round(max(0.0, self.calibrator.estimate(measure_blocks((TextBlock(text),)))))


def load_moments(paths: Sequence[Path], simulated_at: int = SIMULATED_AT) -> list[CompactionMoment]:
    """Every compaction in these files and folders (*.jsonl). UserError if there is none."""
    found = [moment for path in find_recordings(paths) for moment in _moments(path, simulated_at)]
    if not found:
        shown = ", ".join(map(str, paths)) or "nothing"
        raise UserError(
            f"No session in {shown} was compacted or reached {simulated_at:,} tokens; name longer ones or lower --at."
        )
    rooms = [moment.room for moment in found if moment.summary is not None and moment.room > 0]
    usual = round(median(rooms)) if rooms else UNKNOWN_ROOM
    return [moment if moment.room > 0 else replace(moment, room=usual) for moment in found]


def _moments(path: Path, simulated_at: int) -> list[CompactionMoment]:
    records = conversation(read_session(path).records)
    cuts = [at for at, record in enumerate(records) if isinstance(from_record(record), CompactBoundary)]
    if cuts:
        return [_real(path.stem, records, at) for at in cuts]
    found = _simulate(path.stem, records, simulated_at)
    return [found] if found is not None else []


def _real(name: str, records: list[Record], at: int) -> CompactionMoment:
    following = records[at : at + _SUMMARY_WITHIN]
    texts = [r.message.text for r in following if r.message is not None and r.data.get("isCompactSummary")]
    room = _first_prompt(records[at:]) - _first_prompt(records)
    view = View.of(records[:at])
    before, after = tuple(view.history), tuple(View.of(records[at:]).history)
    return CompactionMoment(name, before, after, "\n".join(texts), room, _cwd(records[:at]), view.meter.calibrator)


def _simulate(name: str, records: list[Record], tokens: int) -> CompactionMoment | None:
    view = View()
    for at, record in enumerate(records):
        view.apply(record)
        if view.meter.tokens >= tokens and not view.open_calls:
            after = tuple(View.of(records[at + 1 :]).history)
            if sum(len(entry.message.tool_uses) for entry in after) < _ENOUGH_AFTER:
                return None
            return CompactionMoment(name, tuple(view.history), after, None, 0, _cwd(records), view.meter.calibrator)
    return None


def _first_prompt(records: Sequence[Record]) -> int:
    """The size of the first prompt that the API reported in these records; 0 if there is none."""
    for record in records:
        usage = record.message.usage if record.message is not None else None
        if usage is not None and usage.prompt:
            return usage.prompt
    return 0


def _cwd(records: Sequence[Record]) -> str:
    return next((cwd for record in records if isinstance(cwd := record.data.get("cwd"), str) and cwd), "")
