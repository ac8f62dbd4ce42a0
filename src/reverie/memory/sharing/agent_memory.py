"""The memory of one kind of agent: where it lives by scope, what its agent is told of it, and snapshots to begin from.

A memory directory like the main one (inside check, write gate, history, index); nothing is recalled from it and nothing
is extracted into it. A snapshot is copied where there is no memory yet, and never over one by itself.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
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
from reverie.moments import happened, parsed
from reverie.parsing import load_json
from reverie.paths import Places
from reverie.permissions.memory_paths import PermissionRefused, is_inside
from reverie.prompts import render
from reverie.regular_files import read_regular
from reverie.storage.atomic import make_private_dir, storage_error, write_atomic

SNAPSHOT_MARK = "snapshot.json"
"""In a snapshot: when it was made. In a memory, hidden: which one was taken in or passed over last."""
_TAKEN = ".snapshot.json"
_SNAPSHOTS = ".reverie/agent-memory-snapshots"
_MAX_FILES = 500
_MAX_BYTES = 5_000_000


class Scope(StrEnum):
    """For whom an agent's memory holds."""

    USER = "user"
    PROJECT = "project"
    LOCAL = "local"


_MEANS = {
    Scope.USER: "scope_user.md",
    Scope.PROJECT: "scope_project.md",
    Scope.LOCAL: "scope_local.md",
}


@dataclass(frozen=True, slots=True)
class AgentMemoryPlace:
    """Where a kind of agent keeps its memory, and where a snapshot of it would lie."""

    kind: str
    scope: Scope
    folder: Path
    snapshot: Path

    @classmethod
    def of(cls, places: Places, kind: str, scope: Scope) -> AgentMemoryPlace:
        """Raises UserError for a kind that cannot be a folder's name, or a folder that leads out of the repository."""
        match scope:
            case Scope.USER:
                folder = places.agent_memory_user(kind)
            case Scope.PROJECT:
                folder = places.agent_memory_project(kind)
            case Scope.LOCAL:
                folder = places.agent_memory_local(kind)
        if scope is not Scope.USER and places.remote_memory is None and not is_inside(str(folder), places.root):
            raise UserError(f"{folder} leads out of {places.root}; replace it by a folder.")
        snapshot = places.root / _SNAPSHOTS / folder.name
        return cls(kind, scope, folder, snapshot)


def agent_memory_folders(places: Places) -> list[Path]:
    """The memories of agents that there are, of every kind and scope."""
    above = [getter("kind").parent for getter in (places.agent_memory_user, places.agent_memory_project)]
    above.append(places.agent_memory_local("kind").parent)
    return sorted(
        folder
        for top in above
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
        """What its agent is told: where it is, what the scope means, how to save, and its index, capped.

        The folder is made before the text says that it is there.
        """
        self.prepare()
        index = ""
        with suppress(UserError, StorageError):
            index = load_index(self.directory.index()).text
        means = render("reverie.memory", _MEANS[self.place.scope])
        values = {
            "directory": str(self.root),
            "scope": means,
            "index": index or "(It is empty: nothing was saved yet.)",
        }
        return render("reverie.memory", "agent_memory.md", values)

    def prepare(self) -> None:
        """Makes the folder, and keeps what is not for colleagues out of their repository."""
        make_private_dir(self.root)
        match self.place.scope:
            case Scope.PROJECT:
                _ignore(self.root.parent, "*-history.git/\n**/.*\n!.gitignore\n")
            case Scope.LOCAL:
                _ignore(self.root.parent, "*\n")
            case Scope.USER:
                pass

    # -- snapshots --------------------------------------------------------------------------------------------------

    def newer_snapshot(self) -> datetime | None:
        """When the snapshot was made that this memory has neither begun from nor passed over; None if there is none."""
        made = _stamp(self.place.snapshot / SNAPSHOT_MARK)
        seen = _stamp(self.root / _TAKEN)
        if made is None or made == seen:
            return None
        # A mark of a day to come, from a machine with a wrong clock, must not hide all that follow.
        is_new = seen is None or made > seen or happened(seen.timestamp(), time.time()) is None
        return made if is_new else None

    @property
    def is_empty(self) -> bool:
        return not self.directory.names() and not self.directory.exists(INDEX)

    def take_snapshot(self, why: str) -> int:
        """Puts the snapshot's files into the memory, as one version; how many changed. Files it does not have stay."""
        files = self._snapshot_files()
        if not files:
            raise self._no_snapshot()
        changes = [Change(name, text) for name, text in files.items() if self._text(name) != text]
        if changes:
            self.directory.transaction(changes, WriteInfo(Writer.IMPORT, why))
        self.pass_over()
        return len(changes)

    def pass_over(self) -> None:
        """The snapshot as it is now is not spoken of again."""
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
        """Writes this memory where colleagues begin from it; how many files it has."""
        names = [*self.directory.names(), *([INDEX] if self.directory.exists(INDEX) else [])]
        if not names:
            raise UserError(f"The memory of {self.place.kind} is empty: there is nothing to make a snapshot of.")
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
        """The Markdown files of the snapshot; links, and what leads out of it, are left alone."""
        root, found, size = self.place.snapshot, dict[str, str](), 0
        for folder, folders, files in os.walk(root):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(files):
                path = Path(folder) / name
                if (
                    not name.endswith(".md")
                    or name.startswith(".")
                    or path.is_symlink()
                    or not is_inside(str(path), root)
                ):
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
        with suppress(StorageError):  # a repository that cannot be written to: nothing will be committed from it
            write_atomic(path, text.encode())


def _stamp(path: Path) -> datetime | None:
    """The time in a mark; None if there is none, or it cannot be read."""
    try:
        raw: Any = load_json(read_regular(path))
        return parsed(cast("dict[str, Any]", raw)["made"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
