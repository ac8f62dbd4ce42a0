"""The memory of one kind of agent: its place by scope, its section of the prompt, and snapshots to begin from. It is a
memory directory like the main one, but without recall and extraction. A snapshot is copied only if there is no memory
yet."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from reverie.errors import StorageError, UserError
from reverie.memory.changes import Change, Gate, WriteInfo, Writer
from reverie.memory.directory import MemoryDirectory
from reverie.memory.index import load_index
from reverie.memory.taxonomy import INDEX
from reverie.memory.topic_file import decode
from reverie.moments import parse_time, past_time
from reverie.parsing import load_json
from reverie.paths import Places
from reverie.permissions.memory_paths import PermissionRefused, is_inside
from reverie.prompts import render
from reverie.quick import dataclass
from reverie.regular_files import read_regular
from reverie.storage.atomic import make_private_dir, storage_error, write_atomic

SNAPSHOT_MARK = "snapshot.json"
"""In a snapshot: when it was made. Hidden in a memory: the last snapshot that was used or skipped."""
_TAKEN = ".snapshot.json"
_SNAPSHOTS = ".reverie/agent-memory-snapshots"
_MAX_FILES = 500
_MAX_BYTES = 5_000_000


class AgentMemoryScope(StrEnum):
    """Who shares an agent's memory."""

    USER = "user"
    PROJECT = "project"
    LOCAL = "local"


_MEANS = {
    AgentMemoryScope.USER: "scope_user.md",
    AgentMemoryScope.PROJECT: "scope_project.md",
    AgentMemoryScope.LOCAL: "scope_local.md",
}
_GETTERS = (Places.agent_memory_user, Places.agent_memory_project, Places.agent_memory_local)


@dataclass(frozen=True, slots=True)
class AgentMemoryPlace:
    """The folder of a kind of agent's memory, and the folder of its snapshot."""

    kind: str
    scope: AgentMemoryScope
    folder: Path
    snapshot: Path

    @classmethod
    def of(cls, places: Places, kind: str, scope: AgentMemoryScope) -> AgentMemoryPlace:
        """`UserError` for a kind that cannot be a folder name, or a folder outside the repository."""
        folder = dict(zip(AgentMemoryScope, _GETTERS, strict=True))[scope](places, kind)
        if (
            scope is not AgentMemoryScope.USER
            and places.remote_memory is None
            and not is_inside(str(folder), places.root)
        ):
            raise UserError(f"{folder} leads out of {places.root}; replace it by a folder.")
        return cls(kind, scope, folder, places.root / _SNAPSHOTS / folder.name)


def agent_memory_folders(places: Places) -> list[Path]:
    """The existing memories of agents, of every kind and scope."""
    return sorted(
        folder
        for top in (getter(places, "kind").parent for getter in _GETTERS)
        if top.is_dir()
        for folder in top.iterdir()
        if folder.is_dir() and not folder.is_symlink() and not folder.name.endswith(".git")
    )


def snapshot_files(places: Places) -> list[Path]:
    """The files of all snapshots in the repository."""
    return sorted((places.root / _SNAPSHOTS).glob("*/**/*.md"))


class AgentMemory:
    """The memory of one kind of agent. `gate` judges every write, as for the main memory."""

    def __init__(self, place: AgentMemoryPlace, gate: Callable[[Path], Gate]) -> None:
        self.place = place
        self.directory = MemoryDirectory.open(place.folder, gate=gate(place.folder))

    @property
    def root(self) -> Path:
        return self.directory.root

    def section(self) -> str:
        """The section of the agent's prompt: its folder (made if missing), the scope, how to save, and its index."""
        self.prepare()
        index = ""
        with suppress(UserError, StorageError):
            index = load_index(self.directory.index()).text
        scope = render("reverie.memory", _MEANS[self.place.scope])
        values = {
            "directory": str(self.root),
            "scope": scope,
            "index": index or "(It is empty: nothing was saved yet.)",
        }
        return render("reverie.memory", "agent_memory.md", values)

    def prepare(self) -> None:
        """Makes the folder, and keeps private files out of the repository."""
        make_private_dir(self.root)
        if self.place.scope is AgentMemoryScope.PROJECT:
            _ignore(self.root.parent, "*-history.git/\n**/.*\n!.gitignore\n")
        elif self.place.scope is AgentMemoryScope.LOCAL:
            _ignore(self.root.parent, "*\n")

    def newer_snapshot(self) -> datetime | None:
        """When the snapshot was made, if this memory has neither used nor skipped it; else None."""
        made = _stamp(self.place.snapshot / SNAPSHOT_MARK)
        seen = _stamp(self.root / _TAKEN)
        if made is None or made == seen:
            return None
        # A mark in the future, from a machine with a wrong clock, must not hide all later snapshots.
        is_new = seen is None or made > seen or past_time(seen.timestamp(), time.time()) is None
        return made if is_new else None

    @property
    def is_empty(self) -> bool:
        return not self.directory.names() and not self.directory.exists(INDEX)

    def take_snapshot(self, why: str) -> int:
        """Copies the snapshot's files into the memory, as one version; returns how many changed. Other files stay."""
        files = self._snapshot_files()
        if not files:
            raise self._no_snapshot()
        changes = [Change(name, text) for name, text in files.items() if self._text(name) != text]
        if changes:
            self.directory.transaction(changes, WriteInfo(Writer.IMPORT, why))
        self.pass_over()
        return len(changes)

    def pass_over(self) -> None:
        """Skips the present snapshot: it is not mentioned again."""
        made = _stamp(self.place.snapshot / SNAPSHOT_MARK)
        if made is not None:
            make_private_dir(self.root)
            write_atomic(self.root / _TAKEN, json.dumps({"made": made.isoformat()}).encode() + b"\n")
        elif not self._snapshot_files():
            raise self._no_snapshot()

    def _no_snapshot(self) -> UserError:
        return UserError(
            f"There is no snapshot of {self.place.kind}'s memory in {self.place.snapshot}, so there is nothing to take "
            "or keep; `--make` makes one."
        )

    def make_snapshot(self, now: datetime) -> int:
        """Writes this memory as the snapshot for colleagues; returns the number of files."""
        names = [*self.directory.names(), *([INDEX] if self.directory.exists(INDEX) else [])]
        if not names:
            raise UserError(f"The memory of {self.place.kind} is empty: there is nothing for a snapshot.")
        target = self.place.snapshot
        wanted = {name: self.directory.read(name).content for name in names}
        for old in self._snapshot_files():
            if old not in wanted:
                (target / old).unlink(missing_ok=True)
        for name, data in wanted.items():
            make_private_dir((target / name).parent)
            write_atomic(target / name, data)
        stamp = json.dumps({"made": now.astimezone(UTC).isoformat()}).encode() + b"\n"
        write_atomic(target / SNAPSHOT_MARK, stamp)
        write_atomic(self.root / _TAKEN, stamp)
        return len(wanted)

    def _snapshot_files(self) -> dict[str, str]:
        """The Markdown files of the snapshot, without links and paths that lead out of it."""
        root, found, size = self.place.snapshot, dict[str, str](), 0
        for folder, folders, files in os.walk(root):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(files):
                path = Path(folder) / name
                if not name.endswith(".md") or name.startswith(".") or path.is_symlink():
                    continue
                if not is_inside(str(path), root):
                    continue
                try:
                    data = read_regular(path)
                except OSError as error:
                    raise storage_error(error, path, "read the snapshot") from error
                size += len(data)
                if len(found) >= _MAX_FILES or size > _MAX_BYTES:
                    raise UserError(f"{root}: a snapshot holds at most {_MAX_FILES} files and {_MAX_BYTES:,} bytes.")
                found[path.relative_to(root).as_posix()] = decode(data)
        return found

    def _text(self, name: str) -> str | None:
        try:
            return self.directory.read(name).text if self.directory.exists(name) else None
        except PermissionRefused:
            return None


def _ignore(folder: Path, text: str) -> None:
    path = folder / ".gitignore"
    if not os.path.lexists(path):
        with suppress(StorageError):  # nothing is committed from a read-only repository
            write_atomic(path, text.encode())


def _stamp(path: Path) -> datetime | None:
    """The time in a mark; None if it is missing or cannot be read."""
    try:
        raw: Any = load_json(read_regular(path))
        return parse_time(cast("dict[str, Any]", raw)["made"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
