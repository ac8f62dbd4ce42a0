"""Changes single keys of a JSON text and keeps every other byte: order, indentation, line ends, comments.

Who writes to a file of somebody else must not reformat it. The text must be valid JSON with an object in it; comments
and commas at the end, as in the files of editors, may be there. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import TypeAlias, cast

from reverie.parsing import load_json
from reverie.quick import dataclass
from reverie.types import Json, JsonObject

Route: TypeAlias = tuple[str, ...]
"""The keys from the outermost object down to a value."""

_COMMENT = r"//[^\n]*|/\*.*?\*/"
_TOKEN = re.compile(rf'"(?:[^"\\]|\\.)*"|[{{}}\[\]:,]|{_COMMENT}|[^\s{{}}\[\]:,"/]+|/', re.DOTALL)
_SAME_LINE = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/)?")
"""A comment behind a value, on its line."""
_INDENT = re.compile(r"\n([ \t]+)\S")


@dataclass(frozen=True, slots=True)
class _Member:
    key: str
    start: int
    """Where the key begins."""
    value: int
    end: int
    """The end of the value."""


@dataclass(frozen=True, slots=True)
class _Members:
    """An object, or an array: its members have no keys."""

    start: int
    end: int  # after the closing bracket
    members: tuple[_Member, ...]


def without_comments(text: str) -> str:
    """The text as plain JSON of the same length: comments, and commas before a closing bracket, are blank."""
    kept, comma = list(text), -1
    for token in _TOKEN.finditer(text):
        if _is_comment(token):
            kept[token.start() : token.end()] = [one if one in "\r\n" else " " for one in token[0]]
        elif token[0] in "}]" and comma >= 0:
            kept[comma] = " "
            comma = -1
        else:
            comma = token.start() if token[0] == "," else -1
    return "".join(kept)


def _is_comment(token: re.Match[str]) -> bool:
    return token[0].startswith(("//", "/*"))


def _tokens(text: str, start: int) -> Iterator[re.Match[str]]:
    return (token for token in _TOKEN.finditer(text, start) if not _is_comment(token))


def get_value(data: Json, route: Route) -> Json:
    """The value at the end of a route; None if there is none."""
    for key in route:
        if not isinstance(data, dict) or key not in data:
            return None
        data = cast("JsonObject", data)[key]
    return data


def get_items(data: Json, route: Route) -> list[Json]:
    """The items of the array at the end of a route; none if there is no array."""
    found = get_value(data, route)
    return cast("list[Json]", found) if isinstance(found, list) else []


def set_value(text: str, route: Route, value: Json) -> str:
    """The text with this value. Missing objects on the way are added, at the end of those that are there."""
    found = _read(text)
    if not found.members and not _has_comment(text, found):  # nothing says how it should look: on lines
        text = f"{text[: found.start]}{{{_newline(text)}}}{text[found.end :]}"
        found = _read(text)
    for depth, key in enumerate(route):
        member = next((one for one in reversed(found.members) if one.key == key), None)
        if member is None:
            for missing in reversed(route[depth + 1 :]):
                value = {missing: value}
            return _add(text, found, key, value, depth)
        if depth == len(route) - 1:
            return text[: member.value] + _write(value, text, depth + 1) + text[member.end :]
        found = _read(text, member.value)
    return text


def remove_value(text: str, route: Route) -> str:
    """The text without this key, and without the comma and the line that belong to it. It stays as it is without it."""
    while (found := _find(text, route[:-1])) is not None:  # a key may be there twice
        indexes = [index for index, one in enumerate(found.members) if one.key == route[-1]]
        if not indexes:
            break
        text = _cut(text, found, indexes[-1])
    return text


def append_item(text: str, route: Route, item: Json) -> str:
    """The text with one more item at the end of an array, which is made if it is missing."""
    found = _find(text, route)
    if found is None or not found.members:
        return set_value(text, route, [item])
    written = _write(item, text, len(route) + 1)
    gap = _gap(text, found)
    if "\n" not in gap and "\n" in written:  # a new line, as the other items may be on one
        gap = f"{_newline(text)}{_unit(text) * (len(route) + 1)}"
    return _append(text, found, gap, written)


def remove_items(text: str, route: Route, is_unwanted: Callable[[Json], bool]) -> str:
    """The text without some items of an array; the others keep their bytes."""
    while (found := _find(text, route)) is not None:
        unwanted = [
            index for index, one in enumerate(found.members) if is_unwanted(load_json(text[one.value : one.end]))
        ]
        if not unwanted:
            break
        text = _cut(text, found, unwanted[-1])
    return text


def _find(text: str, route: Route) -> _Members | None:
    """The array or object at the end of a route; None if there is none."""
    found = _read(text)
    for key in route:
        member = next((one for one in reversed(found.members) if one.key == key), None)
        if member is None or text[member.value] not in "{[":
            return None
        found = _read(text, member.value)
    return found


def _cut(text: str, found: _Members, index: int) -> str:
    member = found.members[index]
    if len(found.members) == 1:
        inside = _comments_in(text[found.start + 1 : member.start]), _comments_in(text[member.end : found.end - 1])
        return f"{text[: found.start + 1]}{''.join(inside)}{text[found.end - 1 :]}"
    if index == 0:
        after = _comments_in(text[member.end : found.members[1].start])
        return text[: member.start] + after.lstrip() + text[found.members[1].start :]
    before = found.members[index - 1].end
    return text[:before] + _comments_in(text[before : member.start]).rstrip() + text[member.end :]


def _comments_in(between: str) -> str:
    """What is between two members without its comma, if there is a comment; else nothing."""
    tokens = list(_TOKEN.finditer(between))
    if not any(map(_is_comment, tokens)):
        return ""
    comma = next((one.start() for one in tokens if one[0] == ","), None)
    return between if comma is None else between[:comma] + between[comma + 1 :]


def _add(text: str, found: _Members, key: str, value: Json, depth: int) -> str:
    name = json.dumps(key, ensure_ascii=False)
    if found.members:
        between = _gap(text, found)
        line = f"{name}: {_write(value, text, depth + 1)}"
        if "\n" not in between and depth == 0 and "\n" in text.strip():
            between = f"{_newline(text)}{_unit(text)}"
        return _append(text, found, between, line)
    unit, end = _unit(text), _newline(text)
    line = f"{name}: {_write(value, text, depth + 1)}"
    if _has_comment(text, found):
        inside = text[: found.end - 1].rstrip()
        return f"{inside}{end}{unit * (depth + 1)}{line}{end}{unit * depth}{text[found.end - 1 :]}"
    if depth and "\n" not in text.strip():
        return f"{text[: found.start]}{{{line}}}{text[found.end :]}"
    return f"{text[: found.start]}{{{end}{unit * (depth + 1)}{line}{end}{unit * depth}}}{text[found.end :]}"


def _has_comment(text: str, found: _Members) -> bool:
    return any(map(_is_comment, _TOKEN.finditer(text, found.start, found.end)))


def _append(text: str, found: _Members, gap: str, written: str) -> str:
    """The text with one more member behind the last one, and behind a comment that belongs to that."""
    end, comma = found.members[-1].end, ","
    token = next(_tokens(text, end))
    if token[0] == ",":  # the file has a comma at the end
        end, comma = token.end(), ""
    comment = _SAME_LINE.match(text, end)
    place = comment.end() if comment is not None and comment[0].strip() and "\n" in gap else end
    return f"{text[:end]}{comma}{text[end:place]}{gap}{written}{text[place:]}"


def _gap(text: str, found: _Members) -> str:
    """What is in front of a new member: as in front of the last one, without comments."""
    last = found.members[-1]
    begin = found.start + 1 if len(found.members) == 1 else found.members[-2].end
    between = text[begin : last.start]
    if any(map(_is_comment, _TOKEN.finditer(between))):
        line, _, indent = between.rpartition("\n")
        return f"{_newline(text)}{indent}" if line else " "
    return between.partition(",")[2] if len(found.members) > 1 else between or " "


def _write(value: Json, text: str, depth: int) -> str:
    unit = _unit(text)
    if "\n" not in text.strip():
        return json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return f"{_newline(text)}{unit * depth}".join(lines)


def _unit(text: str) -> str:
    found = _INDENT.search(text)
    return found[1] if found else "  "


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _read(text: str, start: int | None = None) -> _Members:
    """The members of the object or array that begins at `start`."""
    if start is None:
        start = next(token.start() for token in _tokens(text, 0) if token[0] == "{")
    tokens = _tokens(text, start)
    is_object = next(tokens)[0] == "{"
    members: list[_Member] = []
    for token in tokens:
        if token[0] in "}]":
            return _Members(start, token.end(), tuple(members))
        if token[0] == ",":
            continue
        key, first = "", token
        if is_object:
            key = str(load_json(token[0]))
            next(tokens)  # the colon
            first = next(tokens)
        members.append(_Member(key, token.start(), first.start(), _end_of(first, tokens)))
    raise ValueError("the object has no end")


def _end_of(first: re.Match[str], tokens: Iterator[re.Match[str]]) -> int:
    depth = int(first[0] in "{[")
    end = first.end()
    while depth:
        token = next(tokens)
        depth += (token[0] in "{[") - (token[0] in "}]")
        end = token.end()
    return end
