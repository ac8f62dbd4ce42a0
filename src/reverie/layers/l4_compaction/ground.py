"""What a compaction stands on: what is wanted, where things are, and the numbers as they hold now. Data only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from reverie.layers.l3_session_notes.trigger import NoteNumbers
from reverie.layers.l4_compaction.compose import Trigger
from reverie.layers.l4_compaction.numbers import CompactionNumbers
from reverie.layers.l4_compaction.summary import compact_instructions
from reverie.storage.transcript.records import SessionHeader
from reverie.storage.transcript.view import View
from reverie.types import Block


def _of_instruction_files(view: View) -> str:
    """The header carries the instruction files as they were rendered: no file is read again for it."""
    return compact_instructions(view.header.reminder) if view.header is not None else ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which compaction is wanted. `from_` and `up_to` name a message; `reactive`: the server refused the prompt."""

    trigger: Trigger
    instructions: str = ""
    from_: str | None = None
    up_to: str | None = None
    reactive: bool = False


def _no_blocks() -> Sequence[Block]:
    return ()


@dataclass(frozen=True, slots=True)
class Ground:
    """What a compaction stands on: places, numbers as they hold now, and what only the session can say."""

    cwd: Path
    home: Path
    transcript: Path
    requests: Path
    notes: Path
    template: Path
    render_header: Callable[[SessionHeader], SessionHeader]
    numbers: Callable[[], CompactionNumbers] = CompactionNumbers
    note_numbers: Callable[[], NoteNumbers] = NoteNumbers
    is_on: Callable[[str], bool] = lambda _flag: True
    auto_on: Callable[[], bool] = lambda: True
    instructions: Callable[[View], str] = _of_instruction_files
    """What the instruction files want of a summary."""
    leave_out: Callable[[Path], bool] = lambda _path: False
    attachments: Callable[[], Sequence[Block]] = _no_blocks
    """What only the session can list again, such as the kinds of agents; files, skills and plans are read from disk."""
    new_id: Callable[[], str] = lambda: str(uuid4())
