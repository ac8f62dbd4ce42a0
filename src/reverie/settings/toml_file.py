"""Reads a TOML file that anybody may have written, and finds the line of each key.

`tomllib` does not give lines, so the text is parsed a second time when an error, a warning or `reverie settings` needs
one. Never waits for a pipe, reads more than `MAX_TOML` bytes or guesses an encoding.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from reverie.errors import SettingsError
from reverie.parsing import MAX_TOML, Unparsable, load_toml
from reverie.regular_files import read_head

if TYPE_CHECKING:
    from tree_sitter import Node

KeyPath: TypeAlias = tuple[str | int, ...]
"""The path to a value: keys of tables as text, positions in arrays as numbers."""


class TomlFile:
    """One parsed file. `data` is the result of `tomllib`; `line(path)` returns the line of a key."""

    def __init__(self, path: Path, text: str, data: dict[str, Any], size: int) -> None:
        self.path = path
        self.data = data
        self.size = size  # the bytes that were read
        self.text = text
        self._lines: dict[KeyPath, int] | None = None

    @classmethod
    def read(cls, path: Path) -> TomlFile | None:
        """Reads the file; None if there is none. Any other problem is a `SettingsError`."""
        raw = _read_bytes(path)
        if raw is None:
            return None
        try:
            # Some editors add a byte order mark, which TOML does not allow.
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = raw.count(b"\n", 0, error.start) + 1
            raise SettingsError(f"{path}:{line}: not valid UTF-8 text; save the file as UTF-8.") from error
        try:
            return cls(path, text, load_toml(text), len(raw))
        except Unparsable as error:
            where = f"{path}:{error.line}" if error.line is not None else str(path)
            raise SettingsError(f"{where}: {error}.") from error

    def line(self, path: KeyPath) -> int:
        """Returns the line (from 1) of the key at `path`, or of the nearest table around it."""
        if self._lines is None:
            self._lines = find_key_lines(self.text)
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
        raise SettingsError(f"{path}: larger than {MAX_TOML:,} bytes; that is not a settings file.")
    return raw


def format_key(key: str) -> str:
    """Formats a key for display: short, and without control characters."""
    shown = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in key[:80])
    return shown if len(key) <= 80 else shown + "…"


def find_key_lines(text: str) -> dict[KeyPath, int]:
    """Returns the line of every key, table header and array item of a valid TOML text."""
    import tree_sitter_toml
    from tree_sitter import Language, Parser

    scan = _Scan()
    for node in _parts(Parser(Language(tree_sitter_toml.language())).parse(text.encode()).root_node):
        if node.type in ("table", "table_array_element"):
            scan.table(node)
        else:
            scan.pair((), node)
    return scan.lines


class _Scan:
    """Collects the line of each key, and the newest element of each array of tables."""

    def __init__(self) -> None:
        self.lines: dict[KeyPath, int] = {}
        self._last: dict[KeyPath, int] = {}

    def table(self, node: Node) -> None:
        key, *pairs = _parts(node)
        *above, name = _keys(key)
        path: KeyPath = ()
        for one in above:
            path = self._newest((*path, one))
        path = (*path, name)
        if node.type == "table_array_element":
            self._last[path] = self._last.get(path, -1) + 1
        path = self._newest(path)
        self._note(path, key)
        self.lines[path] = key.start_point.row + 1
        for pair in pairs:
            self.pair(path, pair)

    def pair(self, table: KeyPath, node: Node) -> None:
        if node.type != "pair":
            return
        key, *value = _parts(node)
        path = (*table, *_keys(key))
        self._note(path, key)
        for one in value:
            self._value(path, one)

    def _value(self, path: KeyPath, node: Node) -> None:
        for index, inside in enumerate(_parts(node)):
            if node.type == "array":
                self._note((*path, index), inside)
                self._value((*path, index), inside)
            elif node.type == "inline_table":
                self.pair(path, inside)

    def _newest(self, path: KeyPath) -> KeyPath:
        """The table that a header means: in an array of tables, the newest one."""
        return (*path, self._last[path]) if path in self._last else path

    def _note(self, path: KeyPath, node: Node) -> None:
        for end in range(1, len(path) + 1):
            self.lines.setdefault(path[:end], node.start_point.row + 1)


def _parts(node: Node) -> list[Node]:
    return [one for one in node.named_children if one.type != "comment"]


def _keys(node: Node) -> list[str]:
    if node.type == "dotted_key":
        return [key for part in _parts(node) for key in _keys(part)]
    written = (node.text or b"").decode()
    return list(load_toml(f"{written} = 0")) if node.type == "quoted_key" else [written]
