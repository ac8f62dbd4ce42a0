"""Reads a TOML file that anybody may have written, and knows on which line each of its keys stands.

`tomllib` gives values without lines, so the text is scanned a second time, only when an error, a warning or
`reverie settings` asks for a line. Never blocks on a pipe, reads more than `MAX_TOML` or guesses an encoding.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from pathlib import Path
from typing import Any, TypeAlias

from reverie.errors import SettingsError
from reverie.parsing import MAX_TOML, Unparsable, load_toml
from reverie.regular_files import read_head

KeyPath: TypeAlias = tuple[str | int, ...]
"""Where a value stands: table keys as text, places in an array as numbers."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|x([0-9A-Fa-f]{2})|(.))")
_ESCAPED = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "e": "\x1b"}


class TomlFile:
    """One file, parsed. `data` is what `tomllib` made of it; `line(path)` finds a key again."""

    def __init__(self, path: Path, text: str, data: dict[str, Any]) -> None:
        self.path = path
        self.data = data
        self._text = text
        self._lines: dict[KeyPath, int] | None = None

    @classmethod
    def read(cls, path: Path) -> TomlFile | None:
        """The file, or None if there is none. Anything else that stands in the way is a `SettingsError`."""
        raw = _read_bytes(path)
        if raw is None:
            return None
        try:
            # With a byte order mark or without: editors add it, TOML does not know it.
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = raw.count(b"\n", 0, error.start) + 1
            raise SettingsError(f"{path}:{line}: not valid UTF-8 text; save the file as UTF-8.") from error
        return cls(path, text, _parse(path, text))

    def line(self, path: KeyPath) -> int:
        """The line (from 1) of the key at `path`, or of the nearest table around it."""
        if self._lines is None:
            self._lines = key_lines(self._text)
        while path:
            if path in self._lines:
                return self._lines[path]
            path = path[:-1]
        return 1


def _read_bytes(path: Path) -> bytes | None:
    try:
        raw = read_head(path, MAX_TOML + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except IsADirectoryError as error:
        raise SettingsError(f"{path}: not a regular file; settings are read from a TOML file.") from error
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}; fix its permissions or remove it.") from error
    if len(raw) > MAX_TOML:
        raise SettingsError(f"{path}: larger than {MAX_TOML:,} bytes; that is not a file of settings.")
    return raw


def _parse(path: Path, text: str) -> dict[str, Any]:
    try:
        return load_toml(text)
    except Unparsable as error:
        where = f"{path}:{error.line}" if error.line is not None else str(path)
        raise SettingsError(f"{where}: {error}.") from error


def visible(key: str) -> str:
    """A key fit to show: short, and with nothing in it that steers a terminal."""
    shown = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in key[:80])
    return shown if len(key) <= 80 else shown + "…"


def key_lines(text: str) -> dict[KeyPath, int]:
    """The line of every key, table header and array item of a valid TOML text."""
    return _Scan(text).lines


class _Scan:
    """One pass over a text that `tomllib` has accepted: it may assume the grammar and need not report errors."""

    def __init__(self, text: str) -> None:
        self.lines: dict[KeyPath, int] = {}
        self._text = text
        self._at = 0
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        self._last: dict[KeyPath, int] = {}
        self._statements()

    def _statements(self) -> None:
        table: KeyPath = ()
        while self._skip(" \t\r\n"):
            if self._text.startswith("[[", self._at):
                table = self._array_header()
            elif self._text[self._at] == "[":
                self._at += 1
                start = self._at
                table = self._resolve(self._key())
                self._note(table, start, anew=True)
                self._at += 1
            else:
                self._pair(table)

    def _array_header(self) -> KeyPath:
        self._at += 2
        start = self._at
        *parents, name = self._key()
        path = (*self._resolve(parents), name)
        index = self._last[path] = self._last.get(path, -1) + 1
        self._note((*path, index), start, anew=True)
        self._at += 2
        return (*path, index)

    def _resolve(self, keys: list[str]) -> KeyPath:
        """The table a header means: inside an array of tables, the newest one."""
        path: KeyPath = ()
        for key in keys:
            path = (*path, key)
            if path in self._last:
                path = (*path, self._last[path])
        return path

    def _pair(self, table: KeyPath) -> None:
        start = self._at
        path = (*table, *self._key())
        self._note(path, start)
        self._skip(" \t=")
        self._value(path)

    def _note(self, path: KeyPath, start: int, *, anew: bool = False) -> None:
        line = bisect_right(self._breaks, start) + 1
        for end in range(1, len(path)):
            self.lines.setdefault(path[:end], line)
        if anew:
            self.lines[path] = line
        else:
            self.lines.setdefault(path, line)

    def _skip(self, blanks: str) -> bool:
        """Goes on to the next character that is neither blank nor comment; False at the end."""
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == "#":
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            elif char in blanks:
                self._at += 1
            else:
                return True
        return False

    def _key(self) -> list[str]:
        keys: list[str] = []
        while True:
            self._skip(" \t")
            quote = self._text[self._at]
            if quote in "\"'":
                start = self._at + 1
                self._string(quote)
                part = self._text[start : self._at - 1]
                keys.append(_unescape(part) if quote == '"' else part)
            else:
                bare = _BARE.match(self._text, self._at)
                assert bare is not None, "tomllib accepts no other key"
                keys.append(bare[0])
                self._at = bare.end()
            self._skip(" \t")
            if not self._text.startswith(".", self._at):
                return keys
            self._at += 1

    def _string(self, quote: str) -> None:
        """Goes past a string that opens here; `quote` is one quotation mark or three."""
        self._at += len(quote)
        while not self._text.startswith(quote, self._at):
            self._at += 2 if quote[0] == '"' and self._text[self._at] == "\\" else 1
        self._at += len(quote)
        if len(quote) == 3:
            # A text may end in one or two quotation marks of its own before the three that close it.
            while self._text.startswith(quote[0], self._at):
                self._at += 1

    def _value(self, path: KeyPath) -> None:
        text, char = self._text, self._text[self._at]
        if char in "\"'":
            self._string(char * 3 if text.startswith(char * 3, self._at) else char)
        elif char == "[":
            self._at += 1
            index = 0
            while self._skip(" \t\r\n,") and text[self._at] != "]":
                self._note((*path, index), self._at)
                self._value((*path, index))
                index += 1
            self._at += 1
        elif char == "{":
            self._at += 1
            while self._skip(" \t\r\n,") and text[self._at] != "}":
                self._pair(path)
            self._at += 1
        else:
            while self._at < len(text) and text[self._at] not in ",]}#\n":
                self._at += 1


def _unescape(part: str) -> str:
    def one(match: re.Match[str]) -> str:
        short, long, byte, char = match.groups()
        if char is not None:
            return _ESCAPED.get(char, char)
        return chr(int(short or long or byte, 16))

    return _ESCAPE.sub(one, part)
