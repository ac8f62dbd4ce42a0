"""What a permission question shows about a tool call: the whole command, the whole change, every input.

Nothing is cut: long lines are wrapped, long blanks are counted and invisible characters are named. A long preview is
shown page by page. Reads the file that the call names; never writes.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import cast

from reverie.cli.output import Paint, exact
from reverie.text.columns import width
from reverie.text.line_diff import LineMatcher
from reverie.tools.changes import find_change
from reverie.types import Json, JsonObject

PAGE_LINES = 1_000
_BLANKS = re.compile(r"[ \t]{40,}")
_WORD = re.compile(r"\w+")
_LIKE_LATIN = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC")
_EMPTY_LINES = 10
_ON = "↪ "  # continues the line above
_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"))
_DRAWN_AS_NOTHING = re.compile(r"[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")


class Pages:
    """The lines of a preview, one page at a time, so that the beginning does not scroll away."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = list(lines)

    @property
    def left(self) -> int:
        """How many lines were not shown yet. Until it is 0, the only possible answer is no."""
        return len(self._lines)

    def next(self) -> list[str]:
        shown, self._lines = self._lines[:PAGE_LINES], self._lines[PAGE_LINES:]
        return shown


def preview(tool: str, given: Json, cwd: Path, paint: Paint, columns: int) -> list[str]:
    """All lines to show before the question."""
    if not isinstance(given, dict):
        return text_lines(str(given), columns)
    call = cast(JsonObject, given)
    match tool:
        case "Bash":
            lines = text_lines(_name_look_alikes(str(call.get("command", ""))), columns)
            return [paint.bold(line) for line in lines]
        case "Write" | "Edit":
            return _show_change(tool, call, cwd, paint, columns)
        case _:
            values = {
                key: value if isinstance(value, str) else json.dumps(count_blanks(value)) for key, value in call.items()
            }
            return [line for key, value in values.items() for line in text_lines(f"{key}: {value}", columns)]


def change_made(given: JsonObject, cwd: Path, paint: Paint, columns: int) -> list[str]:
    """The lines of an Edit that may have been made already."""
    return _show_change("Edit", given, cwd, paint, columns, made=True)


def _show_change(
    tool: str, given: JsonObject, cwd: Path, paint: Paint, columns: int, *, made: bool = False
) -> list[str]:
    change = find_change(tool, given, cwd, made=made)
    return [] if change is None else list(_diff_lines(change.before or "", change.after, paint, columns))


def make_visible(line: str) -> str:
    """One line in which hidden characters are named and long blanks are counted."""
    return _BLANKS.sub(_describe_blanks, exact(_name_hidden(line))).replace("\t", "    ")


def count_blanks(value: object) -> object:
    """The same for a value that is shown as JSON: line breaks stay, JSON escapes them."""
    if isinstance(value, str):
        return _BLANKS.sub(_describe_blanks, _name_hidden("\n".join(_short_lines(value))))
    if isinstance(value, dict):
        return {count_blanks(key): count_blanks(item) for key, item in cast("dict[object, object]", value).items()}
    if isinstance(value, list):
        return [count_blanks(item) for item in cast("list[object]", value)]
    return value


def _is_empty(line: str) -> bool:
    return not line.strip(" \t")


def _short_lines(text: str) -> Iterator[str]:
    """The lines of a text; many empty lines become one line that counts them."""
    for empty, group in groupby(text.split("\n"), _is_empty):
        lines = list(group)
        yield from [f"⟨{len(lines):,} empty lines⟩"] if empty and len(lines) >= _EMPTY_LINES else lines


def _name_hidden(text: str) -> str:
    return text if text.isascii() else "".join(_name_if(_is_hidden(char), char) for char in text)


def _name_look_alikes(command: str) -> str:
    """Names letters that look like other letters: `bu<U+0456>ld.sh` is not the script that the user knows."""
    if command.isascii():
        return command
    named = _WORD.sub(_name_foreign, command)
    return "".join(_name_if(_is_another_form(char), char) for char in named)


def _name_foreign(word: re.Match[str]) -> str:
    is_latin = any(char.isascii() and char.isalpha() for char in word[0])
    return "".join(_name_if(_is_foreign(char), char) for char in word[0]) if is_latin else word[0]


def _name_if(doubtful: bool, char: str) -> str:
    return f"<U+{ord(char):04X}>" if doubtful else char


def _is_foreign(char: str) -> bool:
    return not char.isascii() and unicodedata.name(char, "").startswith(_LIKE_LATIN)


def _is_another_form(char: str) -> bool:
    """Whether it is drawn like a letter, a digit or a slash of ASCII."""
    if char.isascii():
        return False
    plain = unicodedata.normalize("NFKC", char)
    return char in "\u2044\u2215\u29f8" or (plain.isascii() and (plain.isalnum() or plain in "/.-_"))


def _is_hidden(char: str) -> bool:
    return not char.isascii() and (unicodedata.category(char) in _HIDDEN or _DRAWN_AS_NOTHING.match(char) is not None)


def _describe_blanks(found: re.Match[str]) -> str:
    blanks = found[0]
    parts = [f"{blanks.count(char):,} {name}" for char, name in ((" ", "spaces"), ("\t", "tabs")) if char in blanks]
    return f"⟨{' and '.join(parts)}⟩"


def text_lines(text: str, columns: int) -> list[str]:
    """The whole text in lines that fit the width; many empty lines become one line that counts them."""
    shown: list[str] = []
    for line in _short_lines(text):
        shown += [""] if _is_empty(line) else _wrap(make_visible(line), columns)
    while shown and not shown[-1]:
        shown.pop()
    return shown


def _wrap(text: str, columns: int) -> Iterator[str]:
    room, piece, used = columns, list[str](), 0
    for char in text:
        wide = width(char)
        if used + wide > room and piece:
            yield "".join(piece)
            piece, used = [_ON], len(_ON)
        piece.append(char)
        used += wide
    yield "".join(piece)


def _diff_lines(before: str, after: str, paint: Paint, columns: int) -> Iterator[str]:
    """The change as numbered lines, removed and added."""
    # Only a line feed ends a line here. Other separators that Python knows are text, and are shown.
    old, new = before.removesuffix("\n").split("\n"), after.removesuffix("\n").split("\n")
    old, new = ([] if not before else old), ([] if not after else new)
    for (mark, _, empty), group in groupby(_changes(old, new), lambda one: (one[0], one[1], _is_empty(one[3]))):
        rows = list(group)
        if empty and len(rows) >= _EMPTY_LINES:
            rows = [(mark, 0, rows[0][2], f"⟨{len(rows):,} empty lines⟩")]
        for _, _, number, text in rows:
            first, *rest = _wrap(make_visible(text), max(10, columns - 7))
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
    """Each line of the diff: its mark, the number of its hunk, its line number, its text."""
    for place, group in enumerate(LineMatcher(old, new).get_grouped_opcodes(2)):
        for tag, i1, i2, j1, j2 in group:
            if tag != "equal":
                yield from (("-", place, j1 + 1, line) for line in old[i1:i2])
            for number, line in enumerate(new[j1:j2], j1 + 1):
                yield " " if tag == "equal" else "+", place, number, line
