"""The only place that parses JSON, YAML and TOML. The text may come from anybody, so size and depth are limited.

All errors become `Unparsable`, which is also a `ValueError`. It opens no file, runs no YAML tag and builds only plain
data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, cast

from reverie.errors import UserError

MAX_DEPTH = 64  # the most nested lists and mappings in a tool's input, a hook's answer or a file
RECORD_DEPTH = 100  # the same for a whole record or request, which contains such a value
MAX_JSON = 64 * 1024 * 1024
"""The most characters (or bytes) of one JSON text: a record of a transcript may contain images."""
MAX_YAML = 65_536  # the most characters of one YAML text, and of the texts of its aliases
MAX_TOML = 262_144
LONGEST_MESSAGE = 20_000
"""The most characters of a message that count as the user's own words: nobody types more at once."""
LONGEST_SENTENCE = 2_000
"""The longest sentence in characters. The time of checks on sentences may grow with the square of this."""

_AT_LINE = re.compile(r"\(at line (\d+)")
_TOML_PART = r"""(?:(?<![\w-])[\w-]++|"(?:[^"\\\n]|\\.){0,200}+"|'[^'\n]{0,200}+')"""
# tomllib needs 20 seconds for one key of 32,000 parts, so such a key is found first.
_DEEP_TOML_KEY = re.compile(rf"{_TOML_PART}(?:[ \t]*+\.[ \t]*+{_TOML_PART}){{{MAX_DEPTH}}}")
_DECODER = json.JSONDecoder()


class Unparsable(UserError, ValueError):
    """A text is not valid, or too large or too deep; `line` (from 1) if it is known."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def load_json(text: str | bytes | bytearray, *, depth: int = MAX_DEPTH) -> Any:
    """Parses one JSON text."""
    _check_size(len(text), MAX_JSON)
    try:
        value = json.loads(text)
    except RecursionError:
        raise _too_deep(depth) from None
    except UnicodeDecodeError as error:
        raise Unparsable(f"not UTF-8 at byte {error.start}") from error
    except ValueError as error:
        raise Unparsable(str(error), getattr(error, "lineno", None)) from error
    openings = text.count("[") + text.count("{") if isinstance(text, str) else text.count(b"[") + text.count(b"{")
    if openings > depth:
        _check_depth(value, depth)
    return value


def load_json_values(text: str, *, depth: int = RECORD_DEPTH) -> Iterator[Any]:
    """Yields the values of a text with several records, one after the other."""
    _check_size(len(text), MAX_JSON)
    at = 0
    may_be_deep = text.count("[") + text.count("{") > depth
    while at < len(text):
        try:
            value, at = _DECODER.raw_decode(text, at)
        except RecursionError:
            raise _too_deep(depth) from None
        except ValueError as error:
            raise Unparsable(str(error), getattr(error, "lineno", None)) from error
        if may_be_deep:
            _check_depth(value, depth)
        yield value
        while at < len(text) and text[at].isspace():
            at += 1


def load_toml(text: str) -> dict[str, Any]:
    """Parses a TOML text."""
    import tomllib

    _check_size(len(text), MAX_TOML)
    found = _DEEP_TOML_KEY.search(text)
    if found:
        raise _too_deep(MAX_DEPTH, text.count("\n", 0, found.start()) + 1)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = _AT_LINE.search(str(error))
        what = str(error).split(" (at ")[0]
        raise Unparsable(f"not valid TOML: {what}", int(at[1]) if at else text.count("\n") + 1) from error
    except RecursionError:
        raise _too_deep(MAX_DEPTH) from None
    except ValueError as error:
        # tomllib passes on errors of int() and datetime(): a number of 5,000 digits, the 30th of February.
        raise Unparsable(f"holds a value that cannot be read: {error}") from error
    _check_depth(data, MAX_DEPTH)
    return data


def load_yaml(text: str) -> Any:
    """Parses a YAML text from events, without recursion. Every scalar stays text: no dates, booleans or tags."""
    import yaml

    _check_size(len(text), MAX_YAML)
    loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        return _build_yaml(cast(Any, yaml).parse(text, Loader=loader))
    except yaml.YAMLError as error:
        mark: Any = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or str(error)
        raise Unparsable(str(what), mark.line + 1 if mark is not None else None) from error
    except UnicodeEncodeError as error:
        raise Unparsable("holds half of a surrogate pair") from error


def _build_yaml(events: Any) -> Any:
    """Builds one value from YAML events. An alias may only name a text: nested lists of aliases grow without end."""
    above: list[tuple[Any, str | None]] = [([], None)]  # the open lists and mappings, each with its next key
    texts, spread = dict[str, str](), 0
    for event in events:
        line = event.start_mark.line + 1
        match type(event).__name__:
            case "ScalarEvent":
                value = event.value
                texts |= {event.anchor: value} if event.anchor is not None else {}
            case "AliasEvent":
                if event.anchor not in texts:
                    raise Unparsable(f"the alias {event.anchor[:40]!r} does not stand for a text", line)
                value = texts[event.anchor]
                spread += len(value)
                if spread > MAX_YAML:
                    raise Unparsable(f"its aliases stand for more than {MAX_YAML:,} characters", line)
            case "SequenceStartEvent" | "MappingStartEvent":
                if len(above) > MAX_DEPTH:
                    raise _too_deep(MAX_DEPTH, line)
                above.append((list[Any]() if type(event).__name__ == "SequenceStartEvent" else dict[str, Any](), None))
                continue
            case "SequenceEndEvent" | "MappingEndEvent":
                value = above.pop()[0]
            case "DocumentStartEvent" if above[0][0]:
                raise Unparsable("a second document begins", line)
            case _:
                continue
        holder, key = above[-1]
        if isinstance(holder, list):
            cast("list[Any]", holder).append(value)
        elif key is not None:
            holder[key] = value
            above[-1] = (holder, None)
        elif isinstance(value, str):
            above[-1] = (holder, value)
        else:
            raise Unparsable("a key is a list or a mapping", line)
    return above[0][0][0] if above[0][0] else None


def split_long(text: str, most: int = LONGEST_SENTENCE) -> Iterator[str]:
    """Yields the text in pieces of limited length, cut at blanks where possible."""
    at = 0
    while len(text) - at > most:
        blank = text.rfind(" ", at + most // 2, at + most)
        end = blank if blank > 0 else at + most
        yield text[at:end]
        at = end
    yield text[at:]


def _too_deep(most: int, line: int | None = None) -> Unparsable:
    return Unparsable(f"nested deeper than {most} levels", line)


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise Unparsable(f"larger than {most:,} characters")


def _check_depth(value: Any, most: int) -> None:
    level: list[Any] = [value] if isinstance(value, (dict, list)) else []
    for _ in range(most):
        inner: list[Any] = []
        for one in level:
            parts = cast("dict[str, Any]", one).values() if isinstance(one, dict) else one
            inner += [part for part in parts if isinstance(part, (dict, list))]
        if not inner:
            return
        level = inner
    raise _too_deep(most)
