"""Layers 3 and 4 in a replay: the real stage without a disk and without a model.

Code writes notes and summaries in the size of a model's, and the replay bills them as if a model wrote them. Files have
the content that the recording last showed.
"""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import cast

from reverie.lab.replay.recorded import FOLDER, LINE_NUMBER, ReplaySetting
from reverie.layers.base import AskFork, Effect, EffectResult, ReadFile
from reverie.layers.l2_microcompact.economic import Rates
from reverie.layers.l3_session_notes.trigger import ASKED, WRITER, NoteNumbers, is_due, measure_growth, pays, safe_point
from reverie.layers.l3_session_notes.writer import default_template, directive
from reverie.layers.l4_compaction.by_code import Limits, write_notes, write_summary
from reverie.layers.l4_compaction.setup import CompactionNumbers, CompactionSetup
from reverie.layers.l4_compaction.stage import AutoCompact, Compaction
from reverie.models.tokens import PROSE_BYTES
from reverie.models.window import scaled
from reverie.quick import dataclass
from reverie.storage.transcript.records import Cursor
from reverie.storage.transcript.session_log import SessionLog
from reverie.storage.transcript.view import View
from reverie.types import JsonObject, ToolResultBlock, ToolUseBlock

SUMMARY_TOKENS = 3_000
"""The mean length of summaries in recorded sessions."""
LEAST_SUMMARY = 800
"""The least length of a summary, with nine parts."""
DRAFT_TOKENS = 1_000
"""The length of the draft of a summary, which is paid and thrown away."""
UPDATE_TOKENS = 600
"""The length of the edits of one update of the notes."""
LEAST_UPDATE = 150
_REWRITE = 1.1
"""The notes are written again after the conversation has grown by this factor; until then only their size counts."""
NOTES = FOLDER / "summary.md"


def auto_compact(setting: ReplaySetting, when_full: str) -> AutoCompact:
    """The stage of a session; layer 3 is off for a `summary`, and code keeps the notes if they are `economic`."""
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
        code_notes=lambda: when_full == "economic",
        is_on=lambda flag: when_full != "summary" or flag != "compaction.notes",
    )
    return AutoCompact(Compaction(ground))


def summary_tokens(window: int) -> int:
    return max(LEAST_SUMMARY, scaled(SUMMARY_TOKENS, window))


class ReplayNotes:
    """Layer 3: when an update pays, or is due by the reference rule, the prompt for it, and the notes."""

    def __init__(self, setting: ReplaySetting, *, is_economic: bool) -> None:
        self._is_economic = is_economic
        self._limits = setting.limits
        self._rates = Rates.of(setting.facts, setting.header.ttl)
        window = setting.limits.window
        self._numbers = NoteNumbers().for_window(window)
        self._template = default_template()
        self._text, self._entries = self._template, 0
        self.update_tokens = max(LEAST_UPDATE, scaled(UPDATE_TOKENS, window))

    def is_due(self, view: View) -> bool:
        if view.open_calls:
            return False
        if not self._is_economic:
            return is_due(measure_growth(view), self._numbers)
        limits = self._limits
        return pays(view, self._numbers, self._rates, full_at=limits.autocompact, window=limits.window)

    def directive(self) -> str:
        """The prompt of the fork, with the current notes."""
        return directive(self._text, NOTES, self._template, self._numbers)

    def update(self, log: SessionLog) -> None:
        """Moves the cursor, and writes the notes again if they are too old."""
        for writer in (WRITER, ASKED):
            log.append(Cursor(writer, safe_point(log.view)))
        if len(log.view.history) > _REWRITE * self._entries:
            self._write(log.view)

    def read(self, view: View) -> str:
        """The notes for a compaction."""
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
class ReplayDisk:
    """The files of a session, as its recording shows them."""

    _files: dict[Path, str] = field(default_factory=dict[Path, str])

    def record(self, call: ToolUseBlock, result: ToolResultBlock) -> None:
        """Keeps what a call has shown or changed."""
        if result.is_error or not isinstance(cast(object, call.input), dict):
            return
        given = cast(JsonObject, call.input)
        path = Path(str(given.get("file_path", "")))
        match call.name:
            case "Read":
                self._files[path] = LINE_NUMBER.sub("", result.text)
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
            return EffectResult(ok=False, text="it is not in the recording")
        return EffectResult(ok=True, text=text.encode("utf-8", "replace")[: effect.max_bytes].decode("utf-8", "ignore"))


def answer(
    effect: Effect, view: View, disk: ReplayDisk, notes: ReplayNotes | None, *, summary_tokens: int, alone: bool
) -> EffectResult:
    """The result of an effect; for a summary a text by code. `alone`: the new context has nothing else."""
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
