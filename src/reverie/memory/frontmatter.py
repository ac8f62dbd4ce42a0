"""The head of a topic file: read as YAML, changed line by line, so that all other bytes stay the same. A YAML emitter
would lose comments, quoting and line ends. A fast path reads plain `key: value` lines, PyYAML the rest; a head that is
not YAML is still read, with a problem. It never runs a YAML tag and never opens a file."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from typing import Any, cast

from reverie.parsing import Unparsable, load_yaml
from reverie.quick import dataclass
from reverie.text.patterns import late

_LINES = late(r"[^\n]*\n|[^\n]+")
_FENCE = late(r"---[ \t]*\r?\n?")
_KEY = late(r"([A-Za-z_][\w.-]*)[ \t]*:(?=[ \t\r\n]|$)")
_NESTED_KEY = late(r"([ ]+)([A-Za-z_][\w.-]*)[ \t]*:(?=[ \t\r\n]|$)")
_COMMENT_OR_BLANK = late(r"[ \t]*(?:#[^\n]*)?\r?\n?")
_DOUBLE = late(r'"((?:[^"\\]++|\\.)*+)"')
_SINGLE = late(r"'((?:[^']++|'')*+)'")
# A plain scalar that every YAML reader reads as this text: no indicator in front, no `: ` or ` #` inside.
_PLAIN = late(r"(?![-?:,\[\]{}#&*!|>'\"%@`])(?:[^\x00-\x1f\x7f-\x9f\ufeff\ud800-\udfff:#]++|:(?=[^\s])|(?<=[^\s])#)++")
# Plain text that other readers would read as a number, a date, a boolean or null.
_TYPED = late(
    r"(?ix) true|false|yes|no|on|off|y|n|null|~ | [-+]?[\d._,:]+(?:e[-+]?\d+)? | 0[xo][\da-f_]+ | [-+]?\.(?:inf|nan)"
    r"| \d{4}-\d\d?-\d\d?(?:[Tt ].*)? | <<|="
)
_VALUE = late(
    r"""(?x) (?P<gap>[ \t]*)
    (?P<value> "(?:[^"\\]++|\\.)*+" | '(?:[^']++|'')*+'
        | [^\s#](?:[^ \t\r\n]++|[ \t]++(?!\#|\r?\n?\Z))*+ | )
    (?P<rest>[ \t]*(?:(?<=[ \t])\#[^\r\n]*)?) (?P<end>\r?\n?) \Z"""
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "e": "\x1b", "a": "\a", "b": "\b", "v": "\v", "f": "\f"}
_ESCAPED = late(r"\\(x[\da-fA-F]{2}|u[\da-fA-F]{4}|U[\da-fA-F]{8}|.)")
_UNPRINTABLE = late(r"[\x7f-\x9f\u2028\u2029\ufeff]")
_KNOWN = ("name", "description", "type", "trust")


@dataclass(frozen=True, slots=True)
class _Span:
    """The lines [first, last) of one field in the block; `path` is its key and the keys above it."""

    path: tuple[str, ...]
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Frontmatter:
    """A parsed text. `before + "".join(lines) + after + body` is the text itself, byte for byte."""

    before: str
    """Byte order mark and opening fence; only the mark if there is no frontmatter."""
    lines: tuple[str, ...]
    after: str
    """The closing fence; empty if it is missing."""
    body: str
    values: Mapping[str, str] = field(default_factory=dict[str, str])
    """Each value as text; nested keys as `metadata.type`."""
    problems: tuple[str, ...] = ()

    @property
    def present(self) -> bool:
        return "-" in self.before

    @property
    def text(self) -> str:
        return self.before + "".join(self.lines) + self.after + self.body

    @property
    def newline(self) -> str:
        return "\r\n" if "\r\n" in self.text[:4096] else "\n"

    def key_of(self, key: str) -> str:
        """The key as it is used here: itself, or one level down in `metadata`, where some writers put it."""
        nested = f"metadata.{key}"
        return nested if key not in self.values and nested in self.values else key

    def with_value(self, key: str, value: str | None) -> Frontmatter:
        """Sets one field (None: removes it) and changes no other line, but adds a missing fence."""
        path = tuple(self.key_of(key).split("."))
        block = self if self.present and self.after else self._with_fences()
        lines = list(block.lines)
        spans = [span for span in _spans(lines) if span.path == path]
        if value is None:
            for span in reversed(spans):
                del lines[span.first : span.last]
        elif spans:  # of two equal keys the last one counts
            span = spans[-1]
            lines[span.first : span.last] = [_with_value(lines[span.first : span.last], value)]
        else:
            lines.insert(_place_for(key, lines), f"{key}: {quote_scalar(value)}{block.newline}")
        return split(block.before + "".join(lines) + block.after + block.body)

    def repair(self) -> Frontmatter:
        """Quotes every field that is not valid YAML, so that every reader understands it."""
        if not self.problems or not self.lines:
            return self
        block = self if self.after else self._with_fences()
        lines = list(block.lines)
        for number, line in enumerate(lines):
            known = _without_colon(line)
            if known:
                lines[number] = f"{known[0]}: {quote_scalar(known[1])}{_end(line) or block.newline}"
        fixed = split(block.before + "".join(lines) + block.after + block.body)
        if fixed.problems:
            done = set[str]()
            for span in reversed(_spans(lines)):
                key = span.path[0]
                if len(span.path) == 1 and (value := fixed.values.get(key)):
                    # Of equal keys only the last one counts: the others go, or a long value is written many times.
                    parts = [] if key in done else [_with_value(lines[span.first : span.last], value)]
                    lines[span.first : span.last] = parts
                    done.add(key)
            fixed = split(block.before + "".join(lines) + block.after + block.body)
        return fixed

    def _with_fences(self) -> Frontmatter:
        end = self.newline
        if not self.present:
            gap = "" if self.body.startswith(("\n", "\r\n")) or not self.body else end
            return Frontmatter(f"{self.before}---{end}", (), f"---{end}", gap + self.body)
        lines = tuple(line if line.endswith("\n") else line + end for line in self.lines)
        before = self.before if self.before.endswith("\n") else self.before + end
        return Frontmatter(before, lines, f"---{end}", self.body, self.values)


def split(text: str) -> Frontmatter:
    """Parses a topic file, or the beginning of one. It never fails: problems are listed in `problems`."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    lines = _LINES.findall(text[len(mark) :])
    if not lines or not _FENCE.fullmatch(lines[0]):
        return Frontmatter(mark, (), "", text[len(mark) :])
    before, lines = mark + lines[0], lines[1:]
    close = next((number for number, line in enumerate(lines) if _FENCE.fullmatch(line)), None)
    if close is not None:
        block = tuple(lines[:close])
        values, problems = _read(block)
        return Frontmatter(before, block, lines[close], "".join(lines[close + 1 :]), values, problems)
    length = _length_of_open_block(lines)
    if not length:  # a horizontal rule, not a head
        return Frontmatter(mark, (), "", text[len(mark) :])
    block = tuple(lines[:length])
    values, problems = _read(block)
    unclosed = "the frontmatter has no closing `---`"
    return Frontmatter(before, block, "", "".join(lines[length:]), values, (unclosed, *problems))


def quote_scalar(value: str, style: str = "") -> str:
    """`value` as a YAML scalar on one line: plain where that is safe, in the given quotes if they can hold it."""
    if style == "'" and not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]", value):
        return "'" + value.replace("'", "''") + "'"
    if style != '"' and value == value.strip() and _PLAIN.fullmatch(value) and not _TYPED.fullmatch(value):
        return value
    text = json.dumps(value, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _length_of_open_block(lines: list[str]) -> int:
    """The number of lines of an unclosed head: up to the first blank line, or the first that is not a field."""
    for number, line in enumerate(lines):
        is_field = _KEY.match(line) or _without_colon(line) or line.lstrip(" \t").startswith("#")
        is_continued = number and line[:1] in " \t"
        if not line.strip() or not (is_field or is_continued):
            return number
    return len(lines)


def _without_colon(line: str) -> tuple[str, str] | None:
    """A known field without its colon: `type reference`."""
    key, _, value = line.strip().partition(" ")
    return (key, value.strip()) if key in _KNOWN and value.strip() and not value.lstrip().startswith(":") else None


def _spans(lines: list[str] | tuple[str, ...]) -> list[_Span]:
    """Every field with its lines, and the fields of nested mappings, one level down."""
    found: list[_Span] = []
    tops = [number for number, line in enumerate(lines) if _KEY.match(line)]
    for at, first in enumerate(tops):
        last = tops[at + 1] if at + 1 < len(tops) else len(lines)
        # Blank lines and comments before the next field belong to neither, unless an indented line follows them.
        while last > first + 1 and (
            _COMMENT_OR_BLANK.fullmatch(lines[last - 1]) or not lines[last - 1].startswith((" ", "\t", "- "))
        ):
            last -= 1
        key = cast(re.Match[str], _KEY.match(lines[first]))[1]
        found.append(_Span((key,), first, last))
        if not lines[first][len(key) :].strip().removeprefix(":").strip():
            found += _nested(lines, key, first + 1, last)
    return found


def _nested(lines: list[str] | tuple[str, ...], above: str, first: int, last: int) -> list[_Span]:
    starts = [(number, match) for number in range(first, last) if (match := _NESTED_KEY.match(lines[number]))]
    depth = min((len(match[1]) for _, match in starts), default=0)
    starts = [(number, match) for number, match in starts if len(match[1]) == depth]
    ends = [*(number for number, _ in starts[1:]), last]
    return [_Span((above, match[2]), number, ends[at]) for at, (number, match) in enumerate(starts)]


def _with_value(lines: list[str], value: str) -> str:
    """The field's first line with another value; key, indentation, quotes, comment and line end stay."""
    key = cast(re.Match[str], _NESTED_KEY.match(lines[0]) or _KEY.match(lines[0]))[0]
    found = _VALUE.match(lines[0][len(key) :]) if len(lines) == 1 else None
    if found is None:
        return f"{key} {quote_scalar(value)}{_end(lines[0])}"
    style = found["value"][:1] if found["value"][:1] in ("'", '"') and len(found["value"]) > 1 else ""
    return f"{key}{found['gap'] or ' '}{quote_scalar(value, style)}{found['rest']}{found['end']}"


def _end(line: str) -> str:
    return "\r\n" if line.endswith("\r\n") else "\n" if line.endswith("\n") else ""


def _place_for(key: str, lines: list[str]) -> int:
    """Where to insert a field: after the field that usually precedes it; unknown fields go to the end."""
    spans = _spans(lines)
    for name in reversed(_KNOWN[: _KNOWN.index(key)] if key in _KNOWN else ()):
        for span in spans:
            if span.path == (name,):
                return span.last
    return spans[0].first if spans and key in _KNOWN else len(lines)


def _read(lines: tuple[str, ...]) -> tuple[dict[str, str], tuple[str, ...]]:
    values = _read_fast(lines)
    return (values, ()) if values is not None else _read_yaml(lines)


def _read_fast(lines: tuple[str, ...]) -> dict[str, str] | None:
    """The values if every line is a plain `key: value`; None if a YAML reader must decide."""
    values: dict[str, str] = {}
    for line in lines:
        if _COMMENT_OR_BLANK.fullmatch(line) and "\t" not in line:
            continue
        key = _KEY.match(line)
        if key is None or key[1] in values or "\t" in line or line[key.end() - 2 : key.end() - 1] == " ":
            return None
        found = line[key.end() :].rstrip("\r\n").strip(" ")
        if _PLAIN.fullmatch(found):
            values[key[1]] = found
        elif len(found) > 1 and found[0] == found[-1] == '"' and _DOUBLE.fullmatch(found) and "\\" not in found:
            values[key[1]] = found[1:-1]
        elif len(found) > 1 and found[0] == found[-1] == "'" and _SINGLE.fullmatch(found):
            values[key[1]] = found[1:-1].replace("''", "'")
        else:
            return None
    return values


def _read_yaml(lines: tuple[str, ...]) -> tuple[dict[str, str], tuple[str, ...]]:
    try:
        loaded = load_yaml("".join(lines))
    except Unparsable as error:
        where = f"line {error.line + 1}" if error.line is not None else "somewhere"
        return _read_leniently(lines), (f"the frontmatter is not valid YAML ({where}: {error})",)
    if loaded is None or loaded == "":
        return {}, ()
    if not isinstance(loaded, dict):
        return _read_leniently(lines), ("the frontmatter is not a list of `key: value` lines",)
    values = _flatten(cast(dict[Any, Any], loaded))
    keys = Counter(span.path[0] for span in _spans(lines) if len(span.path) == 1)
    twice = sorted(key for key, times in keys.items() if times > 1)
    return values, tuple(f"the frontmatter has `{key}` twice; the last one counts" for key in twice)


def _flatten(loaded: dict[Any, Any], above: str = "") -> dict[str, str]:
    values: dict[str, str] = {}
    for key, value in loaded.items():
        name = f"{above}{key}"
        if isinstance(value, str):
            values[name] = "" if value == "~" else value
        elif isinstance(value, list):
            values[name] = ", ".join(item for item in cast(list[Any], value) if isinstance(item, str))
        elif isinstance(value, dict) and not above:
            values |= _flatten(cast(dict[Any, Any], value), f"{name}.")
    return values


def _read_leniently(lines: tuple[str, ...]) -> dict[str, str]:
    """The text after each key, without quotes, continuation lines joined."""
    values: dict[str, str] = {}
    for span in _spans(lines):
        first = lines[span.first]
        key = cast(re.Match[str], _NESTED_KEY.match(first) or _KEY.match(first))
        parts = [first[key.end() :], *lines[span.first + 1 : span.last]]
        if len(span.path) == 1 and len(parts) > 1 and any(_NESTED_KEY.match(part) for part in parts[1:]):
            parts = parts[:1]
        values[".".join(span.path)] = _strip_quotes(" ".join(part.strip() for part in parts).strip())
    for line in lines:
        known = _without_colon(line)
        if known:
            values.setdefault(*known)
    return values


def _strip_quotes(text: str) -> str:
    if _DOUBLE.fullmatch(text):
        return _ESCAPED.sub(_unescape, text[1:-1])
    if _SINGLE.fullmatch(text):
        return text[1:-1].replace("''", "'")
    return text


def _unescape(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] in "xuU" and len(code) > 1 and int(code[1:], 16) < 0x110000:
        return chr(int(code[1:], 16))
    return _ESCAPES.get(code, code)
