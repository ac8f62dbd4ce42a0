"""Edit: replaces a text that occurs exactly as given, and only once unless `replace_all` is set.

The file must have the same content as when it was read. The rest of the file keeps its bytes, line ends, encoding and
byte order mark. It never guesses a place.
"""

from __future__ import annotations

import re

from reverie.errors import UserError
from reverie.quick import dataclass
from reverie.tools.base import BuiltIn, ReadCache, ToolContext, ToolOutput
from reverie.tools.files import (
    Located,
    Snapshot,
    finish_in_thread,
    is_judged_by_disk,
    load,
    locate,
    locate_open,
    require_unchanged,
    store,
)
from reverie.tools.seen_files import describe_seen_file
from reverie.tools.text_form import TextForm, decode, encode, looks_binary, with_newlines
from reverie.types import JsonObject

_NUMBERED = re.compile(r"\s*\d+\t")
_PROPERTIES: JsonObject = {
    "file_path": {"type": "string", "description": "The file to change"},
    "old_string": {"type": "string", "description": "The text to replace"},
    "new_string": {"type": "string", "description": "The text to put in its place"},
    "replace_all": {"type": "boolean", "description": "Replace every occurrence (default false)"},
}


class Edit(BuiltIn, prompt="edit.md", properties=_PROPERTIES, required=["file_path", "old_string", "new_string"]):
    """The Edit tool."""

    def _foresee(self, given: JsonObject, context: ToolContext) -> None:
        every = bool(given.get("replace_all", False))
        where = locate(given["file_path"], context)
        if is_judged_by_disk(where, context):
            _plan(where, given["old_string"], given["new_string"], every, context.read_cache)

    async def _run(self, given: JsonObject, context: ToolContext) -> ToolOutput:
        old, new, every = given["old_string"], given["new_string"], bool(given.get("replace_all", False))
        known = context.read_cache
        where = await locate_open(given["file_path"], context)
        change = await finish_in_thread(lambda: _plan(where, old, new, every, known))
        saved = await store(where, change.data, change.before, context)
        partial, lines = change.partial, change.lines
        if saved.now is None:
            known.forget(where.key)
            return ToolOutput(saved.note or f"Removed {where.shown}.", structured={"filePath": where.shown})
        seen = saved.now.seen(partial=partial, order=known.next_order())
        known.note(where.key, seen)
        structured: JsonObject = {"filePath": where.shown, "oldString": old, "newString": new, "replaceAll": every}
        structured |= describe_seen_file(seen)
        return ToolOutput(saved.note or f"Changed {where.shown} {_format_places(lines)}.", structured=structured)


@dataclass(frozen=True, slots=True)
class _Change:
    """What an edit would write, in place of which file, at which lines. `partial`: only a part of it was read."""

    data: bytes
    before: Snapshot
    partial: bool
    lines: list[int]


def _plan(where: Located, old: str, new: str, every: bool, known: ReadCache) -> _Change:
    """Works out the change; raises UserError if there cannot be one."""
    if not old:
        raise UserError("old_string is empty: give the text to replace, or use Write for a whole file.")
    if old == new:
        raise UserError("old_string and new_string are the same: there is nothing to change.")
    before = load(where)
    if looks_binary(before.data[:8_192]):
        raise UserError(f"{where.shown} is a binary file: change it with a command in Bash.")
    seen = require_unchanged(where, before, known)
    try:
        text, form = decode(before.data)
    except UserError as error:
        raise UserError(f"{where.shown} cannot be changed: {error}.") from error
    if not form.valid and not new.isascii():
        raise UserError(
            f"{where.shown} is not UTF-8, and new_string has characters beyond ASCII, which would mix encodings: "
            "convert the file first (iconv in Bash)."
        )
    spans = _find(text, old, every)
    if not spans:
        raise UserError(f"old_string does not occur in {where.shown}{_explain_miss(text, old)}")
    if len(spans) > 1 and not every:
        places = ", ".join(str(number) for number in _find_line_numbers(text, spans[:10]))
        raise UserError(
            f"old_string occurs more than once in {where.shown} (lines {places}): add surrounding lines until it is "
            "unique, or set replace_all."
        )
    data = encode(_replace(text, spans, new, form), form)
    return _Change(data, before, seen.partial, _find_line_numbers(text, spans))


def _find(text: str, old: str, every: bool) -> list[tuple[int, int]]:
    """The places of `old`; its line ends match LF and CRLF. Overlaps count, unless all places are replaced."""
    if "\r" not in text:
        found: list[tuple[int, int]] = []
        at = text.find(old)
        while at >= 0:
            found.append((at, at + len(old)))
            at = text.find(old, at + len(old) if every else at + 1)
        return found
    plain = with_newlines(old, "\n")
    pattern = r"\r?\n".join(re.escape(part) for part in plain.split("\n"))
    if every:
        return [match.span() for match in re.finditer(pattern, text)]
    return [match.span(1) for match in re.finditer(f"(?=({pattern}))", text)]


def _replace(text: str, spans: list[tuple[int, int]], new: str, form: TextForm) -> str:
    pieces: list[str] = []
    end = 0
    for start, stop in spans:
        place = text[start:stop]
        # The line end of the replaced text is used; if it has none, the usual one of the file.
        newline = ("\r\n" if "\r\n" in place else "\n") if "\n" in place else form.newline
        pieces += [text[end:start], with_newlines(new, newline) if newline == "\r\n" else new]
        end = stop
    return "".join([*pieces, text[end:]])


def _find_line_numbers(text: str, spans: list[tuple[int, int]]) -> list[int]:
    numbers: list[int] = []
    line, end = 1, 0
    for start, _ in spans:
        line += text.count("\n", end, start)
        end = start
        numbers.append(line)
    return numbers


def _format_places(lines: list[int]) -> str:
    if len(lines) == 1:
        return f"at line {lines[0]}"
    more = f" and {len(lines) - 10} more" if len(lines) > 10 else ""
    return f"in {len(lines)} places (lines {', '.join(map(str, lines[:10]))}{more})"


def _explain_miss(text: str, old: str) -> str:
    lines = [line for line in old.splitlines() if line.strip()]
    if lines and all(_NUMBERED.match(line) for line in lines):
        return ": it begins with the line numbers that Read adds; leave them out."
    first = lines[0].strip() if lines else ""
    for number, line in enumerate(text.split("\n"), 1):
        if first and first in line:
            return f": its first line is like line {number}, but the rest differs; check the indentation and the rest."
    return ": Read the part again and copy it exactly."
