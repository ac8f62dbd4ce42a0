"""Outputs of tools, shown in a few lines: what is folded away is kept by its number, for /show and Ctrl-O."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from reverie.cli.diff_preview import change_made, preview, text_lines
from reverie.cli.output import Paint, plural
from reverie.cli.screen import STYLE
from reverie.cli.tool_lines import call_text
from reverie.events import Event, ThinkingStreamed, ToolFinished, ToolStarted
from reverie.text.columns import cut, split_wide, width
from reverie.text.patterns import late
from reverie.types import Json, JsonObject

THINKING = "thinking"
"""The title of thinking."""
_KEPT = 50
_PARTS = late(f"({STYLE.pattern}| +)")
_PREVIEW_LINES = 3
_DIFF_LINES = 10


class KeptOutputs:
    """The last outputs by their numbers, which never repeat in a chat."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[str, str]] = {}
        self._count = 0
        self._thought = ""
        self._titles: dict[str, str] = {}

    def keep(self, event: Event, cwd: Path) -> None:
        """Keeps what an event of a turn shows only in short: thinking, and outputs of tools."""
        if isinstance(event, ThinkingStreamed):
            self._thought += event.text
            return
        if self._thought:
            self.add(THINKING, self._thought)
            self._thought = ""
        if isinstance(event, ToolStarted):
            self._titles[event.id] = call_text(event.name, event.input, cwd)
        elif isinstance(event, ToolFinished):
            self.add(self._titles.pop(event.id, event.name), event.text)

    def add(self, title: str, text: str) -> str:
        """Keeps an output and returns its number."""
        self._count += 1
        self._kept[str(self._count)] = (title, text)
        if len(self._kept) > _KEPT:
            del self._kept[next(iter(self._kept))]
        return self.last

    @property
    def last(self) -> str:
        return str(self._count)

    def last_of(self, title: str) -> str:
        """The number of the last output with this title; empty if there is none."""
        return next((number for number in reversed(self._kept) if self._kept[number][0] == title), "")

    @property
    def numbers(self) -> list[str]:
        """Oldest first."""
        return list(self._kept)

    def get(self, number: str) -> tuple[str, str]:
        """What ran, and its whole output."""
        return self._kept[number]


def fold_lines(text: str, number: str, paint: Paint, columns: int, most: int = _PREVIEW_LINES) -> list[str]:
    """The first lines of an output, and how to see the rest."""
    lines = text_lines(text[: 200 * columns], columns)
    if len(lines) <= most + 1 and len(text) <= 200 * columns:
        return [paint.dim(line) for line in lines]
    rest = text.count("\n") + 1 - most
    more = f"… {plural(rest, 'more line')} · " if rest > 0 else "… "
    return [*(paint.dim(line) for line in lines[:most]), paint.dim(cut(f"{more}/show {number}", columns))]


def fold_words(line: str, columns: int) -> list[str]:
    """A line of our own, perhaps with styles, in lines that fit: broken between words, with the same indent."""
    parts = _PARTS.split(line)
    plain = STYLE.sub("", line)
    if width(plain) <= columns:
        return [line]
    indent = " " * min(len(plain) - len(plain.lstrip(" ")), columns // 2)
    lines, now, used, gap = list[str](), "", 0, ""
    for part in parts:
        if STYLE.fullmatch(part):
            now += part
        elif part.isspace():
            gap += part
        else:
            for piece in split_wide(part):
                if used > len(indent) and used + len(gap) + width(piece) > columns:
                    lines.append(now)
                    now, used, gap = indent, len(indent), ""
                now, used, gap = now + gap + piece, used + len(gap) + width(piece), ""
    return [*lines, now]


def change_lines(tool: str, given: Json, cwd: Path, paint: Paint, columns: int) -> list[str]:
    """The beginning of a change to a file; nothing for other calls. An Edit may have been made already."""
    if tool not in ("Edit", "Write") or not isinstance(given, dict):
        return []
    call = cast(JsonObject, given)
    made = change_made(call, cwd, paint, columns) if tool == "Edit" else preview(tool, call, cwd, paint, columns)
    left = len(made) - _DIFF_LINES
    return made if left <= 1 else [*made[:_DIFF_LINES], paint.dim(f"… {plural(left, 'more line')} of the change")]
