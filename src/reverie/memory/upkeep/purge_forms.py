"""A secret in all its forms on disk, to find and replace it: plain, escaped, encoded, line by line. Pure text work. For
an encoded secret the whole encoded run is replaced, because the rest would still reveal it."""

from __future__ import annotations

import base64
import html
import json
import re
import string
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, Final, cast
from urllib.parse import quote, quote_plus

from reverie.errors import UserError
from reverie.parsing import RECORD_DEPTH, load_json
from reverie.quick import dataclass

PURGED: Final = "[purged]"
PURGED_NAME: Final = "purged"
LEAST_LENGTH: Final = 4
"""Shorter texts occur everywhere."""
_LEAST_ENCODED: Final = 6
_LEAST_LINE: Final = 16
_LEAST_NAME: Final = 10
_MOST_VALUES: Final = 1_000
_ENCODED: Final = frozenset(string.ascii_letters + string.digits + "+/_-")
_ENCODED_END: Final = re.compile(r"[A-Za-z0-9+/_=-]*")


@dataclass(frozen=True, slots=True, eq=False)
class PurgeTarget:
    """What to purge: a text, or everything that a pattern matches."""

    text: str = ""
    pattern: re.Pattern[str] | None = None

    @classmethod
    def of_text(cls, text: str) -> PurgeTarget:
        """This text; `UserError` if it is too short."""
        bare = text.strip("\r\n")
        if len(bare.strip()) < LEAST_LENGTH:
            raise UserError(f"Give at least {LEAST_LENGTH} characters to purge: a shorter text occurs everywhere.")
        return cls(text=bare)

    @classmethod
    def of_pattern(cls, pattern: str) -> PurgeTarget:
        """All matches of a regular expression; `UserError` if it is invalid or matches an empty text."""
        try:
            compiled = re.compile(pattern)
        except re.error as error:
            raise UserError(f"{pattern[:60]!r} is not a regular expression: {error}; correct it.") from error
        if compiled.search(""):
            raise UserError("This pattern matches an empty text, so it would match everywhere; make it more specific.")
        return cls(pattern=compiled)

    def find_in(self, text: str) -> set[str]:
        """The values to look for: the text itself, or the matches of the pattern in `text`."""
        if self.pattern is None:
            return {self.text}
        return {match[0] for match in self.pattern.finditer(text) if len(match[0].strip()) >= LEAST_LENGTH}


class SecretForms:
    """Values in all their forms, to search for and to replace."""

    def __init__(self, values: Iterable[str]) -> None:
        self.values = sorted(set(values), key=len, reverse=True)
        if len(self.values) > _MOST_VALUES:
            raise UserError(f"The pattern matches {len(self.values)} different texts; make it more specific.")

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        plain: dict[str, None] = {}
        runs: dict[str, None] = {}
        for value in self.values:
            plain.update(dict.fromkeys(_plain_forms(value)))
            runs.update(dict.fromkeys(_base64_cores(value)))
        parts = [re.escape(form) for form in sorted(plain, key=len, reverse=True)]
        for value in self.values:  # words, or a few characters: only as a part of a name that we made
            for name in map(re.escape, _as_names(value, _LEAST_NAME if _is_prose(value) else _LEAST_ENCODED)):
                parts.append(rf"(?<=_){name}(?![^\W_])|(?<![^\W_]){name}(?=_|\.md\b)")
        if runs:
            cores = "|".join(re.escape(core) for core in sorted(runs, key=len, reverse=True))
            parts.append(rf"(?P<core>{cores})")
        return re.compile("|".join(parts)) if parts else None

    @property
    def spellings(self) -> set[str]:
        """Every form of the values, except for the base64 runs around them."""
        cores = (core for value in self.values for core in _base64_cores(value))
        return {form for value in self.values for form in _plain_forms(value)} | set(cores)

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Where the values are, with the whole run around an encoded one; linear in the length of the text."""
        spans: list[tuple[int, int]] = []
        for match in self._pattern.finditer(text) if self._pattern else ():
            start, stop, taken = *match.span(), spans[-1][1] if spans else 0
            if match.lastgroup == "core":
                while start > taken and text[start - 1] in _ENCODED:
                    start -= 1
                behind = _ENCODED_END.match(text, stop)
                stop = behind.end() if behind else stop
            if start < taken:
                spans[-1] = (spans[-1][0], max(taken, stop))
            else:
                spans.append((start, stop))
        return spans

    def count(self, text: str) -> int:
        """How often the values occur in the text."""
        return len(self._spans(text))

    def replace(self, text: str) -> str:
        """The text with each value replaced by a mark."""
        out, at = list[str](), 0
        for start, stop in self._spans(text):
            out += (text[at:start], PURGED)
            at = stop
        return "".join((*out, text[at:]))

    def rename(self, path: str) -> str:
        """A relative path with each value replaced by a word that a name can hold."""
        return "/".join(map(self._rename_part, path.split("/")))

    def _rename_part(self, name: str) -> str:
        return self.replace(name).replace(PURGED, PURGED_NAME)

    def replace_in_line(self, line: str) -> str:
        """A line with each value replaced; in JSON even where strings are escaped in an unusual way."""
        out = self.replace(line)
        try:
            value: Any = load_json(out, depth=RECORD_DEPTH)
        except ValueError:
            return out
        if not any(self.count(text) for text in _strings(value)):
            return out
        compact = '": ' not in out and '", "' not in out
        return json.dumps(self._walk(value), ensure_ascii=out.isascii(), separators=(",", ":") if compact else None)

    def count_in_line(self, line: str) -> int:
        """How often the values occur in the line or, if not there, in its JSON strings."""
        found = self.count(line)
        if found:
            return found
        if "\\" not in line:
            return 0
        try:
            return sum(self.count(text) for text in _strings(load_json(line, depth=RECORD_DEPTH)))
        except ValueError:
            return 0

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.replace(value)
        if isinstance(value, list):
            return [self._walk(one) for one in cast("list[Any]", value)]
        if isinstance(value, dict):
            return {self.replace(key): self._walk(one) for key, one in cast("dict[str, Any]", value).items()}
        return value


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in cast("list[Any]", value):
            yield from _strings(one)
    elif isinstance(value, dict):
        for key, one in cast("dict[str, Any]", value).items():
            yield key
            yield from _strings(one)


def _as_names(value: str, least: int = _LEAST_NAME) -> Iterator[str]:
    """The value as a file name or heading spells it: lower case, other characters left out."""
    for small in {value.lower(), unicodedata.normalize("NFC", value).casefold()}:
        words = re.findall(r"[^\W_]+", small)
        if sum(map(len, words)) >= least:
            yield from dict.fromkeys(between.join(words) for between in "_- ")


def _is_prose(value: str) -> bool:
    """Whether it consists of ordinary words, which also occur where nobody means the value."""
    words = re.findall(r"[^\W_]+", value)
    return all(word.isalpha() and word in (word.lower(), word.upper(), word.title()) for word in words)


def _plain_forms(value: str) -> Iterator[str]:
    if "\n" not in value:
        yield from (name for name in _as_names(value) if not _is_prose(value) or "_" in name or "-" in name)
    bodies = [value]
    if "\n" in value:  # a key block: tools show it line by line, with numbers in front
        bodies += [
            line.strip() for line in value.splitlines() if len(line.strip()) >= _LEAST_LINE and "-----" not in line
        ]
        bodies.append(value.replace("\r\n", "\n").replace("\n", "\r\n"))
    for body in bodies:
        yield body
        for ascii_only in (False, True):
            escaped = json.dumps(body, ensure_ascii=ascii_only)[1:-1]
            yield escaped
            yield json.dumps(escaped, ensure_ascii=ascii_only)[1:-1]
            yield escaped.replace("/", "\\/")
        yield html.escape(body)
        if len(body) >= _LEAST_ENCODED:
            for encoded in (quote(body, safe=""), quote(body), quote_plus(body)):
                yield encoded
                yield re.sub(r"%[0-9A-F]{2}", lambda match: match[0].lower(), encoded)
            digits = body.encode("utf-8", "replace").hex()
            yield digits
            yield digits.upper()


def _base64_cores(value: str) -> Iterator[str]:
    """The parts of base64 text that are the same wherever the value begins inside the encoded text."""
    data = value.encode("utf-8", "replace")
    if len(data) < _LEAST_ENCODED:
        return
    for lead in range(3):
        encoded = base64.b64encode(b"\0" * lead + data).decode().rstrip("=")
        first = -(-lead * 8 // 6)
        whole = (lead + len(data)) * 8 // 6
        core = encoded[first:whole]
        if len(core) >= _LEAST_ENCODED:
            yield core
            yield core.replace("+", "-").replace("/", "_")
