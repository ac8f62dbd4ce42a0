"""What an Edit or Write call changes: the file, its text before and after. For front ends that show a change.

It reads the file that the call names, and never writes.
"""

from __future__ import annotations

from pathlib import Path

from reverie.quick import dataclass
from reverie.regular_files import read_regular_text
from reverie.types import JsonObject

_MOST_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one file: two whole texts, or two parts. `before` is None for a new file."""

    path: Path
    before: str | None
    after: str


def find_change(tool: str, given: JsonObject, cwd: Path, *, made: bool = False, alone: bool = False) -> Change | None:
    """Returns what a call of Edit or Write changes; None for other tools.

    `made`: it may have been made already. `alone`: only what the call itself says, without reading the file.
    """
    path = _find_path(cwd, given)
    text = None if alone else _read_file(path)
    if tool == "Write":
        return Change(path, text, str(given.get("content", "")))
    if tool != "Edit":
        return None
    old, new = str(given.get("old_string", "")), str(given.get("new_string", ""))
    if made and text is not None and old not in text and new and text.count(new) == 1:
        return Change(path, text.replace(new, old), text)
    if text is None or not old or old not in text:
        return Change(path, old, new)
    return Change(path, text, text.replace(old, new, -1 if given.get("replace_all") else 1))


def _read_file(path: Path) -> str | None:
    """Returns the text of a file; None if it is missing, too large or cannot be read."""
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return None
        return read_regular_text(path, errors="replace")
    except (OSError, ValueError):  # it cannot be read: the call itself will say why
        return None


def _find_path(cwd: Path, given: JsonObject) -> Path:
    named = Path(str(given.get("file_path", "")))
    try:
        return cwd / named.expanduser()
    except RuntimeError:  # `~somebody`, and there is no such user
        return cwd / named
