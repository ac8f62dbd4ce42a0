"""Layers 3 and 4 in a replay: the real stage on a ground without a disk, and who writes where no model can be asked.

Notes and summaries are written by code, in the size a model's have, so that what they still hold can be looked up; what
a model would have been paid for them is billed by the replay. Files come back as the record last knew them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from reverie.lab.replay.recorded import FOLDER, Setting
from reverie.layers.base import AskFork, Effect, EffectResult, ReadFile
from reverie.layers.l3_session_notes.trigger import WRITER, NoteNumbers, is_due, measure_growth, safe_point
from reverie.layers.l3_session_notes.writer import default_template, directive
from reverie.layers.l4_compaction.by_code import Limits, write_notes, write_summary
from reverie.layers.l4_compaction.setup import CompactionNumbers, CompactionSetup
from reverie.layers.l4_compaction.stage import AutoCompact, Compaction
from reverie.models.tokens import PROSE_BYTES
from reverie.models.window import scaled
from reverie.storage.transcript.records import Cursor
from reverie.storage.transcript.session_log import SessionLog
from reverie.storage.transcript.view import View
from reverie.types import JsonObject, ToolResultBlock, ToolUseBlock

SUMMARY_TOKENS = 3_000
"""The mean length of the summaries that recorded sessions were compacted to."""
LEAST_SUMMARY = 800
"""However small the window: nine parts with something in each."""
DRAFT_TOKENS = 1_000
"""What our summariser thinks in its draft, which is paid and thrown away."""
UPDATE_TOKENS = 600
"""The edits of one update of the notes, with the text each of them looks for: after twenty the notes are full."""
LEAST_UPDATE = 150
_REWRITE = 1.1
"""The text of the notes is written anew once the conversation has grown by this much: only its size counts before."""
NOTES = FOLDER / "summary.md"
_LINE_NUMBER = re.compile(r"^\s*\d+(?:→|\t)", re.MULTILINE)


def auto_compact(setting: Setting, *, notes: bool) -> AutoCompact:
    """The stage as a session has it; without `notes` layer 3 is switched off."""
    window = setting.limits.window
    ground = CompactionSetup(
        cwd=FOLDER,
        home=FOLDER,
        transcript=FOLDER / "session.jsonl",
        requests=FOLDER / "requests",
        notes=NOTES,
        template=FOLDER / "template.md",
        render_header=lambda header: header,
        numbers=lambda: CompactionNumbers().for_window(window),
        note_numbers=lambda: NoteNumbers().for_window(window),
        is_on=lambda flag: notes or flag != "compaction.notes",
    )
    return AutoCompact(Compaction(ground))


def summary_tokens(window: int) -> int:
    return max(LEAST_SUMMARY, scaled(SUMMARY_TOKENS, window))


class Notes:
    """Layer 3: when an update is due, what its writer is told, and what the notes say."""

    def __init__(self, window: int) -> None:
        self._numbers = NoteNumbers().for_window(window)
        self._template = default_template()
        self._text, self._entries = self._template, 0
        self.update_tokens = max(LEAST_UPDATE, scaled(UPDATE_TOKENS, window))

    def is_due(self, view: View) -> bool:
        return not view.open_calls and is_due(measure_growth(view), self._numbers)

    def directive(self) -> str:
        """What the fork is asked; it holds the notes as they are."""
        return directive(self._text, NOTES, self._template, self._numbers)

    def updated(self, log: SessionLog) -> None:
        """An update is through: the cursor moves."""
        log.append(Cursor(WRITER, safe_point(log.view)))
        if len(log.view.history) > _REWRITE * self._entries:
            self._write(log.view)

    def read(self, view: View) -> str:
        """The notes as a compaction finds them."""
        if view.cursors.get(WRITER) is not None:
            self._write(view)
        return self._text

    def _write(self, view: View) -> None:
        numbers = self._numbers
        limits = Limits(total=numbers.total_tokens * PROSE_BYTES, ledger=numbers.section_tokens * PROSE_BYTES)
        names = [entry.uuid for entry in view.history]
        cursor = view.cursors.get(WRITER)
        covered = view.history[: names.index(cursor) + 1] if cursor in names else view.history
        self._text = write_notes(covered, self._template, limits)
        self._entries = len(view.history)


@dataclass(slots=True)
class Disk:
    """The files of a session, as far as its record knows them."""

    _files: dict[Path, str] = field(default_factory=dict[Path, str])

    def called(self, call: ToolUseBlock, result: ToolResultBlock) -> None:
        """Takes in what a call has shown or changed."""
        if result.is_error or not isinstance(cast(object, call.input), dict):
            return
        given = cast(JsonObject, call.input)
        path = Path(str(given.get("file_path", "")))
        match call.name:
            case "Read":
                self._files[path] = _LINE_NUMBER.sub("", result.text)
            case "Write":
                self._files[path] = str(given.get("content", ""))
            case "Edit":
                old, new = str(given.get("old_string", "")), str(given.get("new_string", ""))
                if path in self._files and old:
                    self._files[path] = self._files[path].replace(old, new, 1)
            case _:
                pass

    def read(self, effect: ReadFile) -> EffectResult:
        text = self._files.get(effect.path)
        if text is None:
            return EffectResult(ok=False, text="it is not on record")
        return EffectResult(ok=True, text=text.encode("utf-8", "replace")[: effect.max_bytes].decode("utf-8", "ignore"))


def answer(
    effect: Effect, view: View, disk: Disk, notes: Notes | None, *, summary_tokens: int, alone: bool
) -> EffectResult:
    """What comes of an effect; for a summary a text such as a model would have written. `alone`: nothing else stands
    beside it."""
    match effect:
        case ReadFile(path=path) if path == NOTES:
            return EffectResult(ok=notes is not None, text=notes.read(view) if notes is not None else "")
        case ReadFile():
            return disk.read(effect)
        case AskFork():
            text = write_summary(view.history, Limits.for_tokens(summary_tokens), alone=alone)
            return EffectResult(ok=True, text=f"<summary>{text}</summary>")
        case _:
            return EffectResult(ok=True)
