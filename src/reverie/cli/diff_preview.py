"""What a permission question shows of the call it asks about: the whole command, the whole change, every input.

Nothing is cut: long lines are wrapped, long blanks are counted, and what cannot be seen is named. What is more than a
screen's history is shown page by page. Reads the file the call names, never writes.
"""

from __future__ import annotations

import difflib
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import cast

from reverie.cli.output import Paint, exact, width
from reverie.regular_files import read_regular_text
from reverie.types import Json, JsonObject

PAGE_LINES = 1_000
_MOST_BYTES = 1_000_000
_BLANKS = re.compile(r"[ \t]{40,}")
_EMPTY_LINES = 10
_ON = "↪ "  # goes on from the line above
_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"))
_DRAWN_AS_NOTHING = re.compile(r"[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")


class Pages:
    """The lines of a preview, a page at a time, so that the beginning is not gone when the end is there."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = list(lines)

    @property
    def left(self) -> int:
        """How many lines have not been shown. While there are any, the answer can only be no."""
        return len(self._lines)

    def next(self) -> list[str]:
        shown, self._lines = self._lines[:PAGE_LINES], self._lines[PAGE_LINES:]
        return shown


def preview(tool: str, given: Json, cwd: Path, paint: Paint, columns: int) -> list[str]:
    """The lines to show before the question: all of them."""
    if not isinstance(given, dict):
        return text_lines(str(given), columns)
    call = cast(JsonObject, given)
    match tool:
        case "Bash":
            lines = text_lines(str(call.get("command", "")), columns)
            return [paint.bold(line) for line in lines]
        case "Write":
            return list(_coloured(_text(cwd, call) or "", str(call.get("content", "")), paint, columns))
        case "Edit":
            old, new = str(call.get("old_string", "")), str(call.get("new_string", ""))
            before = _text(cwd, call)
            if before is None or old not in before:
                return list(_coloured(old, new, paint, columns))
            count = -1 if call.get("replace_all") else 1
            return list(_coloured(before, before.replace(old, new, count), paint, columns))
        case _:
            values = {
                key: value if isinstance(value, str) else json.dumps(counted(value)) for key, value in call.items()
            }
            return [line for key, value in values.items() for line in text_lines(f"{key}: {value}", columns)]


def visible(line: str) -> str:
    """One line with nothing in it that cannot be seen: hidden characters are named, long blanks counted."""
    return _BLANKS.sub(_count, exact(_with_names(line))).replace("\t", "    ")


def counted(value: object) -> object:
    """A value that is about to be shown as JSON, where some of it would be escapes: as `visible`, line breaks apart."""
    if isinstance(value, str):
        lines = [line for empty, group in groupby(value.split("\n"), _is_empty) for line in _short(empty, list(group))]
        return _BLANKS.sub(_count, _with_names("\n".join(lines)))
    if isinstance(value, dict):
        return {counted(key): counted(item) for key, item in cast("dict[object, object]", value).items()}
    if isinstance(value, list):
        return [counted(item) for item in cast("list[object]", value)]
    return value


def _is_empty(line: str) -> bool:
    return not line.strip(" \t")


def _short(empty: bool, lines: list[str]) -> list[str]:
    """Lines of one kind; many empty ones are one line that counts them."""
    return [f"⟨{len(lines):,} empty lines⟩"] if empty and len(lines) >= _EMPTY_LINES else lines


def _with_names(text: str) -> str:
    return text if text.isascii() else "".join(f"<U+{ord(char):04X}>" if _is_unseen(char) else char for char in text)


def _is_unseen(char: str) -> bool:
    return not char.isascii() and (unicodedata.category(char) in _UNSEEN or _DRAWN_AS_NOTHING.match(char) is not None)


def _count(found: re.Match[str]) -> str:
    blanks = found[0]
    parts = [f"{blanks.count(char):,} {name}" for char, name in ((" ", "spaces"), ("\t", "tabs")) if char in blanks]
    return f"⟨{' and '.join(parts)}⟩"


def text_lines(text: str, columns: int) -> list[str]:
    """A text of several lines, whole and within the width; a long stretch of empty ones is counted."""
    shown: list[str] = []
    for empty, group in groupby(text.split("\n"), _is_empty):
        for line in _short(empty, list(group)):
            shown += [""] if _is_empty(line) else _wrapped(visible(line), columns)
    while shown and not shown[-1]:
        shown.pop()
    return shown


def _wrapped(text: str, columns: int) -> Iterator[str]:
    """The text in pieces that fit the width; each but the first is marked as going on."""
    room, piece, used = columns, list[str](), 0
    for char in text:
        wide = width(char)
        if used + wide > room and piece:
            yield "".join(piece)
            piece, used = [_ON], len(_ON)
        piece.append(char)
        used += wide
    yield "".join(piece)


def _text(cwd: Path, call: JsonObject) -> str | None:
    try:
        path = cwd / Path(str(call.get("file_path", ""))).expanduser()
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return None
        return read_regular_text(path, errors="replace")
    except (OSError, RuntimeError, ValueError):  # it cannot be read: the call itself will say why
        return None


def _coloured(before: str, after: str, paint: Paint, columns: int) -> Iterator[str]:
    """The change as numbered lines, taken and put."""
    # By line feed alone: what else ends a line for Python is text in a file, and is shown.
    old, new = before.removesuffix("\n").split("\n"), after.removesuffix("\n").split("\n")
    old, new = ([] if not before else old), ([] if not after else new)
    for (mark, _, empty), group in groupby(_changes(old, new), lambda one: (one[0], one[1], _is_empty(one[3]))):
        rows = list(group)
        if empty and len(rows) >= _EMPTY_LINES:
            rows = [(mark, 0, rows[0][2], f"⟨{len(rows):,} empty lines⟩")]
        for _, _, number, text in rows:
            first, *rest = _wrapped(visible(text), max(10, columns - 7))
            match mark:
                case "+":
                    yield paint.dim(f"{number:>4} ") + paint.good(f"+ {first}")
                    yield from (" " * 5 + paint.good(f"+ {more}") for more in rest)
                case "-":
                    yield from ("     " + paint.bad(f"- {text}") for text in (first, *rest))
                case _:
                    yield paint.dim(f"{number:>4}   {first}")
                    yield from (paint.dim(f"       {more}") for more in rest)


def _changes(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, int, int, str]]:
    """Each line that is taken, put or kept around them: its mark, its place among the changes, its number, its text."""
    place = number = 0
    for line in difflib.unified_diff(old, new, n=2, lineterm=""):
        if line.startswith(("---", "+++")) and not place:
            continue
        if line.startswith("@@"):
            place += 1
            number = max(1, int(line.split("+")[1].split(",")[0].split(" ")[0]))
            continue
        yield line[0], place, number, line[1:]
        number += line[0] != "-"
