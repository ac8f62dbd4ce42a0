"""Recorded sessions cut where they were compacted: what was said before, what came after, and how much room there was.

A session that was never compacted but is long is cut where its context first held a given number of tokens. Reads
Claude Code's transcripts, ours and pi's; never writes, and never shows a writer anything from behind the cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from reverie.errors import UserError
from reverie.lab.scratch import recordings
from reverie.models.calibration import Calibrator
from reverie.models.features import measure_blocks
from reverie.storage.transcript.chain import conversation
from reverie.storage.transcript.file import read_records
from reverie.storage.transcript.pi_sessions import is_pi_session, read_pi_session
from reverie.storage.transcript.records import CompactBoundary, from_record
from reverie.storage.transcript.view import Entry, View
from reverie.types import Record, TextBlock

SIMULATED_AT = 100_000
"""Tokens at which a long session without a compaction is cut."""

UNKNOWN_ROOM = 9_000
"""The budget where no recording says one: about the median of recorded compactions."""

_ENOUGH_AFTER = 5
"""Calls behind a simulated cut; fewer say nothing about what was needed."""

_ECHO = 8
"""Records behind a boundary among which its summary stands."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One compaction. `summary` is the recording's own (None: simulated); `room` is the budget in tokens."""

    session: str
    before: tuple[Entry, ...]
    after: tuple[Entry, ...]
    summary: str | None
    room: int
    cwd: str
    calibrator: Calibrator

    def tokens(self, text: str) -> int:
        """Tokens of a text by what this session's responses had taught up to here."""
        if not text:
            return 0
        return round(max(0.0, self.calibrator.estimate(measure_blocks((TextBlock(text),)))))


def load_moments(paths: Sequence[Path], simulated_at: int = SIMULATED_AT) -> list[Moment]:
    """Every compaction of these files, and of the *.jsonl in these folders. UserError if there is none."""
    found = [moment for path in recordings(paths) for moment in _moments(path, simulated_at)]
    if not found:
        shown = ", ".join(map(str, paths)) or "nothing"
        raise UserError(
            f"No session in {shown} was compacted or reached {simulated_at:,} tokens; name longer ones or lower --at."
        )
    rooms = [moment.room for moment in found if moment.summary is not None and moment.room > 0]
    usual = round(median(rooms)) if rooms else UNKNOWN_ROOM
    return [moment if moment.room > 0 else replace(moment, room=usual) for moment in found]


def _moments(path: Path, simulated_at: int) -> list[Moment]:
    records = conversation(read_pi_session(path) if is_pi_session(path) else read_records(path).records)
    cuts = [at for at, record in enumerate(records) if isinstance(from_record(record), CompactBoundary)]
    if cuts:
        return [_real(path.stem, records, at) for at in cuts]
    found = _simulated(path.stem, records, simulated_at)
    return [found] if found is not None else []


def _real(name: str, records: list[Record], at: int) -> Moment:
    following = records[at : at + _ECHO]
    texts = [r.message.text for r in following if r.message is not None and r.data.get("isCompactSummary")]
    room = _first_prompt(records[at:]) - _first_prompt(records)
    view = View.of(records[:at])
    before, after = tuple(view.history), _said(records[at:])
    return Moment(name, before, after, "\n".join(texts), room, _cwd(records[:at]), view.meter.calibrator)


def _simulated(name: str, records: list[Record], tokens: int) -> Moment | None:
    view = View()
    for at, record in enumerate(records):
        view.apply(record)
        if view.meter.tokens >= tokens and not view.open_calls:
            after = _said(records[at + 1 :])
            if sum(len(entry.message.tool_uses) for entry in after) < _ENOUGH_AFTER:
                return None
            return Moment(name, tuple(view.history), after, None, 0, _cwd(records), view.meter.calibrator)
    return None


def _said(records: Sequence[Record]) -> tuple[Entry, ...]:
    """What was said and done in these records, summaries left out."""
    return tuple(View.of(records).history)


def _first_prompt(records: Sequence[Record]) -> int:
    """The size of the first prompt among these records, as the API reported it; 0 if none did."""
    for record in records:
        usage = record.message.usage if record.message is not None else None
        if usage is not None and usage.prompt:
            return usage.prompt
    return 0


def _cwd(records: Sequence[Record]) -> str:
    return next((cwd for record in records if isinstance(cwd := record.data.get("cwd"), str) and cwd), "")
