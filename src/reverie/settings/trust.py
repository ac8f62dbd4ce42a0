"""Reads which folders the user trusts, from `<home>/trust.json`: one entry per folder, by its real path.

An entry holds one digest per file, of the parts that can act. A folder is trusted while all digests stay the same.
Folders above or below do not matter. `reverie trust` writes the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

from reverie.parsing import load_json
from reverie.quick import dataclass
from reverie.settings.reach import Risk, names_program

FILE = "trust.json"
COMMITTED = ".reverie/settings.toml"
LOCAL = ".reverie/settings.local.toml"
LOCAL_FILES = (LOCAL, ".claude/settings.local.json")
SETTINGS_FILES = (COMMITTED, ".claude/settings.json", *LOCAL_FILES)
_MAX_BYTES = 4_000_000
_NAMES_FILES = ("catalogue.files", "model.")
SERVERS = "mcpServers."
"""The keys of parts that are MCP servers begin with this."""

NOT_TRUSTED = "you have not trusted this folder"
CHANGED = "what can act here has changed since you trusted this folder"
COMMITTED_NEVER = "a committed file may not set it"


@dataclass(frozen=True, slots=True)
class PartCheck:
    """The digest of a part, with the files that it runs or names."""

    digest: str
    unchecked: tuple[str, ...] = ()
    """Per command: why a change of its files may not be noticed; empty if it is noticed."""


@dataclass(frozen=True, slots=True)
class ActingPart:
    """One value in a folder's file that can act: it runs, spends, sends, weakens a guard or moves data."""

    folder: Path
    """The real path of the folder."""
    file: str
    """The path of the file in the folder."""
    line: int
    key: str
    value: object
    """The value from TOML or YAML; None if it must not be shown."""
    risk: Risk
    look: Callable[[], PartCheck] = field(compare=False, repr=False)
    """Reads the files that it runs or names: only when needed, because a stranger may have chosen them."""
    ignored: str = ""
    """The reason why it does not count; empty if it counts."""

    @property
    def digest(self) -> str:
        return self.look().digest

    @property
    def unchecked(self) -> tuple[str, ...]:
        return self.look().unchecked

    @property
    def where(self) -> str:
        return f"{self.folder / self.file}:{self.line}"

    @property
    def can_be_trusted(self) -> bool:
        return self.ignored != COMMITTED_NEVER


@dataclass(frozen=True, slots=True)
class TrustBook:
    """The decisions of the user about folders. `problem` is one sentence if the file cannot be used."""

    trusted: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    declined: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    problem: str = ""

    @classmethod
    def read(cls, home: Path) -> TrustBook:
        """Reads the book of this home; it is empty if there is no file, or if others can write it."""
        path = home / FILE
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return cls()
        except OSError as error:
            return cls(problem=f"{path}: cannot be read ({error.strerror}), so no folder is trusted.")
        with os.fdopen(fd, "rb") as file:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or found.st_uid not in (os.getuid(), 0) or found.st_mode & 0o022:
                return cls(problem=f"{path}: others can write it, so no folder is trusted; run `chmod 600 {path}`.")
            raw = file.read(_MAX_BYTES)
        try:
            data = cast("dict[str, Any]", load_json(raw))
            return cls(_read_entries(data["trusted"]), _read_entries(data["declined"]))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return cls(problem=f"{path}: damaged, so no folder is trusted; remove it and run `reverie trust` again.")

    def knows(self, *folders: Path) -> bool:
        """Whether any of these folders was ever trusted. If not, their content does not matter."""
        return any(str(folder) in self.trusted for folder in folders)

    def state(self, folder: Path, found: Mapping[str, str], root: Path | None = None) -> str:
        """Returns why this folder is not trusted with these digests per file; empty if it is trusted.

        `root`: the repository of a worktree. Parts that are trusted there and the same here are trusted here.
        """
        own = self.trusted.get(str(folder))
        if own is not None and _agree(own, found):
            return ""
        shared = self.trusted.get(str(root)) if root is not None and root != folder else None
        if shared is not None and _agree(
            shared, {name: one for name, one in found.items() if one or name not in LOCAL_FILES}
        ):
            return ""
        return NOT_TRUSTED if own is None and shared is None else CHANGED

    def was_declined(self, parts: Iterable[ActingPart]) -> bool:
        """Whether the user declined exactly these parts."""
        by_folder = digest_parts(parts)
        return all(_agree(self.declined.get(folder, {}), files) for folder, files in by_folder.items())

    def to_json(self) -> bytes:
        data = {"version": 1, "trusted": self.trusted, "declined": self.declined}
        return (json.dumps(data, indent=1, sort_keys=True) + "\n").encode()


def _read_entries(data: Any) -> dict[str, dict[str, str]]:
    return {str(folder): {str(name): str(one) for name, one in files.items()} for folder, files in data.items()}


def _agree(kept: Mapping[str, str], found: Mapping[str, str]) -> bool:
    return all(kept.get(name, "") == one for name, one in found.items())


def digest_parts(parts: Iterable[ActingPart]) -> dict[str, dict[str, str]]:
    """Returns one digest per folder and file, of all its parts that can act."""
    collected: dict[str, dict[str, list[str]]] = {}
    for part in parts:
        if part.can_be_trusted:
            collected.setdefault(str(part.folder), {}).setdefault(part.file, []).append(part.digest)
    return {
        folder: {name: _hash("\n".join(sorted(several)).encode()) for name, several in files.items()}
        for folder, files in collected.items()
    }


def mark_parts(parts: Iterable[ActingPart], book: TrustBook, folder: Path, root: Path) -> list[ActingPart]:
    """Returns the parts of one file of this folder, each with the reason why it does not count."""
    found = list(parts)
    state = book.state(folder, digest_parts(found)[str(folder)], root)
    return [replace(part, ignored=state) for part in found]


def make_check(key: str, value: object, folder: Path) -> Callable[[], PartCheck]:
    """Returns a check of one part that runs once, when needed: key, value, and the files that it runs or names."""
    return cache(lambda: _check_part(key, value, folder))


def _check_part(key: str, value: object, folder: Path) -> PartCheck:
    content = [key, json.dumps(value, sort_keys=True, default=str)]
    unchecked: tuple[str, ...] = ()
    commands = _list_commands(key, value)
    if commands:
        from reverie.settings.scripts import explain_unchecked, list_run_files

        files, complete = list_run_files(commands, folder)
        content += files
        otherwise = "" if complete else "this folder has too many files to look at all of them"
        unchecked = tuple(explain_unchecked(command, folder) or otherwise for command in commands)
    elif key.startswith(_NAMES_FILES):
        from reverie.settings.scripts import list_named_files

        content += list_named_files(_list_texts(value), folder)
    return PartCheck(_hash("\0".join(content).encode("utf-8", "surrogatepass")), unchecked)


def _list_commands(key: str, value: object) -> list[str]:
    """Returns the commands that a part runs, each as one text."""
    if key.startswith(SERVERS):
        entry = cast("Mapping[str, Any]", value)
        words = [entry.get("command"), *cast("list[object]", entry.get("args") or ())]
        return [shlex.join(map(str, words))] if entry.get("command") else []
    if key != "run" and not key.startswith("hooks.") and not names_program(value):
        return []
    return [value] if isinstance(value, str) else [_command(item) for item in cast("list[object]", value)]


def _command(item: object) -> str:
    return str(cast("Mapping[str, object]", item).get("command", "")) if isinstance(item, Mapping) else ""


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _list_texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in cast("Mapping[str, object]", value).values():
            yield from _list_texts(item)
    elif isinstance(value, list | tuple):
        for item in cast("list[object]", value):
            yield from _list_texts(item)
