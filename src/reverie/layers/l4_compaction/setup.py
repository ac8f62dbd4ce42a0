"""What a compaction needs: the request for it, places, callbacks, and its numbers. Data only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Literal
from uuid import uuid4

from reverie.layers.l3_session_notes.trigger import NoteNumbers
from reverie.layers.l4_compaction.summary import compact_instructions
from reverie.models.window import scaled
from reverie.quick import dataclass
from reverie.storage.transcript.records import SessionHeader
from reverie.storage.transcript.view import View
from reverie.types import Block

Trigger = Literal["auto", "manual"]
_FIXED = frozenset(
    {"failures", "refill_turns", "refill_rounds", "refill_times", "too_long_tries", "restore_files", "pins_bytes"}
)


@dataclass(frozen=True, slots=True)
class CompactionNumbers:
    """Tokens unless the name says otherwise, for a window of 200,000."""

    summary_tokens: int = 20_000
    failures: int = 3
    refill_turns: int = 3
    refill_rounds: int = 6
    refill_times: int = 3
    too_long_tries: int = 3
    restore_files: int = 5
    restore_file_tokens: int = 5_000
    restore_tokens: int = 50_000
    restore_skill_tokens: int = 5_000
    restore_skills_tokens: int = 25_000
    request_bytes: int = 2_000
    requests_tokens: int = 40_000
    ledger_characters: int = 16_000
    names: int = 300
    last_message_tokens: int = 10_000
    pins_bytes: int = 10_000

    def for_window(self, window: int) -> CompactionNumbers:
        """Returns the numbers for a smaller window: everything except counts and pins shrinks with it."""
        return self._map(lambda number: scaled(number, window))

    def tighter(self, share: float) -> CompactionNumbers:
        """Returns a share of the budgets, for when the result would not fit."""
        return self._map(lambda number: int(number * share))

    def _map(self, change: Callable[[int], int]) -> CompactionNumbers:
        changed = {f.name: max(1, change(getattr(self, f.name))) for f in fields(self) if f.name not in _FIXED}
        return replace(self, **changed)


@dataclass(frozen=True, slots=True)
class CompactionRequest:
    """Which compaction is wanted. `from_` and `up_to` name a message; `reactive`: the server refused the prompt."""

    trigger: Trigger
    instructions: str = ""
    from_: str | None = None
    up_to: str | None = None
    reactive: bool = False


def _read_instructions(view: View) -> str:
    return compact_instructions(view.header.reminder) if view.header is not None else ""


@dataclass(frozen=True, slots=True)
class CompactionSetup:
    """The places, numbers and callbacks of a session that a compaction needs."""

    cwd: Path
    home: Path
    transcript: Path
    requests: Path
    notes: Path
    template: Path
    render_header: Callable[[SessionHeader], SessionHeader]
    numbers: Callable[[], CompactionNumbers] = CompactionNumbers
    note_numbers: Callable[[], NoteNumbers] = NoteNumbers
    code_notes: Callable[[], bool] = lambda: True
    """Whether code keeps the notes where no model has (`notes.cadence`)."""
    is_on: Callable[[str], bool] = lambda _flag: True
    auto_on: Callable[[], bool] = lambda: True
    instructions: Callable[[View], str] = _read_instructions
    """Reads what the instruction files want of a summary. The header has them, so no file is read again."""
    leave_out: Callable[[Path], bool] = lambda _path: False
    attachments: Callable[[], Sequence[Block]] = tuple
    """Returns what only the session can list, such as the kinds of agents."""
    discovered: Callable[[], Sequence[str]] = tuple
    """Returns the tools whose definitions the model has loaded; the boundary names them."""
    new_id: Callable[[], str] = lambda: str(uuid4())
