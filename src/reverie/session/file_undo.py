"""Takes back what commands of a turn changed in the files of a project: a snapshot before the first one, and `restore`.

The transcript names each snapshot, so that a resumed session can restore it. What the user allowed outside of the
sandbox, and the repository of git itself, are not in it.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

from reverie.errors import ReverieError, UserError
from reverie.permissions.obeyed_links import find_project
from reverie.permissions.rules import Profile
from reverie.permissions.sandbox.sandboxes import Sandboxes
from reverie.quick import dataclass
from reverie.storage.transcript.records import FileSnapshot, from_record
from reverie.storage.transcript.session_log import SessionLog
from reverie.tools.snapshots import ProjectSnapshots, RestoredFiles


@dataclass(slots=True, eq=False)
class FileUndo:
    """The snapshots of one session; `store` is its folder, None if the session is not stored."""

    log: SessionLog
    store: Path | None
    sandboxes: Sandboxes
    _turn: str = ""
    _kept: dict[Path, str | None] = field(default_factory=dict[Path, "str | None"], init=False)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def begin_turn(self) -> None:
        self._turn = uuid.uuid4().hex
        self._kept.clear()

    async def keep(self, cwd: Path) -> str | None:
        """Takes the snapshot of this turn, if there is none yet; returns why it cannot."""
        async with self._lock:
            project = find_project(cwd)
            if project not in self._kept:
                self._kept[project] = await self._take(project)
            return self._kept[project]

    async def _take(self, project: Path) -> str | None:
        try:
            tree = await asyncio.to_thread(lambda: self._snapshots(project).take())
        except ReverieError as error:
            return str(error)
        self.log.append(FileSnapshot(str(project), tree, self._turn))
        return None

    async def changes(self) -> RestoredFiles:
        """What `restore` would write back and remove; raises UserError if there is nothing."""
        return (await asyncio.to_thread(self._find))[1]

    async def restore(self) -> RestoredFiles:
        """Makes the files as they were before the last turn in which a command could change them, if anything differs.
        A second call takes this back. Raises UserError if there is nothing to restore."""
        async with self._lock:
            kept, _ = await asyncio.to_thread(self._find)
            snapshots = self._snapshots(Path(kept.project))
            done = await asyncio.to_thread(snapshots.restore, kept.tree)
            self.log.append(FileSnapshot(kept.project, done.before, uuid.uuid4().hex))
            return done

    def _find(self) -> tuple[FileSnapshot, RestoredFiles]:
        """The newest snapshot that differs from the files, and how."""
        for kept in self._newest_first():
            changes = self._snapshots(Path(kept.project)).compare(kept.tree)
            if changes.written or changes.removed:
                return kept, changes
        raise UserError("No command of this session changed files that could be restored.")

    def _newest_first(self) -> Iterator[FileSnapshot]:
        for record in reversed(self.log.records):
            if isinstance(kept := from_record(record), FileSnapshot) and Path(kept.project).is_dir():
                yield kept

    def _snapshots(self, project: Path) -> ProjectSnapshots:
        if self.store is None:
            raise UserError("This session is not stored, so files cannot be kept for an undo.")
        hidden = self.sandboxes.at(project).make_view(Profile.READ_ONLY).hidden
        name = uuid.uuid5(uuid.NAMESPACE_URL, str(project)).hex
        return ProjectSnapshots(project, self.store / name, hidden)
