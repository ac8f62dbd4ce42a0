"""The versions of a memory directory, read once and continued when there are new ones. Reads only.

A large directory with a long history takes a while, so a page reads for a limited time and says if there is more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from reverie.layers.l6_dreaming.proposal import ProposedChange
from reverie.memory.directory import MemoryDirectory
from reverie.memory.topic_file import decode
from reverie.memory.upkeep.undo import UndoConflict, plan_undo
from reverie.regular_files import read_regular
from reverie.storage.history.versions import Version
from reverie.web.memories.kept import Kept
from reverie.web.site import Site

LONGEST: Final = 1.5
"""Seconds that a page looks for older versions."""
A_LITTLE: Final = 0.05
"""The same for a page that is about many memory directories."""


class VersionBook:
    """The versions of one memory directory, the newest first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._versions: list[Version] = []
        self._next: str | None = None
        self._head: str | None = None

    def read(
        self,
        directory: MemoryDirectory,
        wanted: Callable[[Version], bool],
        most: int,
        *,
        start: int = 0,
        seconds: float = LONGEST,
    ) -> tuple[list[Version], bool]:
        """The wanted versions from `start` on, at most `most`; whether there may be more."""
        history, until = directory.history, time.monotonic() + seconds
        found: list[Version] = []
        with self._lock:
            self._catch_up(directory)
            at = skipped = 0
            while len(found) <= most:
                if at == len(self._versions):
                    if self._next is None:
                        return found[:most], len(found) > most
                    if time.monotonic() > until:
                        return found[:most], True
                    version = history.version(self._next)
                    self._versions.append(version)
                    self._next = version.parent
                version = self._versions[at]
                at += 1
                if wanted(version):
                    skipped += 1
                    if skipped > start:
                        found.append(version)
        return found[:most], True

    def _catch_up(self, directory: MemoryDirectory) -> None:
        head = directory.history.head()
        if head == self._head:
            return
        known = {version.id: at for at, version in enumerate(self._versions)}
        new: list[Version] = []
        at = head
        while self._versions and at is not None and at not in known and len(new) < 200:
            new.append(version := directory.history.version(at))
            at = version.parent
        if self._versions and at is not None and at in known:
            self._versions = [*new, *self._versions[known[at] :]]
        else:  # a purge gave every version a new name, or many were made
            self._versions, self._next = [], head
        self._head = head


def book_of(site: Site, directory: MemoryDirectory) -> VersionBook:
    """The versions of a memory directory, kept between visits."""
    return Kept.of(site).books.setdefault(directory.root, VersionBook())


def preview_undo(directory: MemoryDirectory, version: Version) -> tuple[list[ProposedChange], str]:
    """What an undo of this version would change now, and why it cannot be undone, if so."""

    def now(name: str) -> bytes | None:
        try:
            return read_regular(directory.root / name)
        except OSError:
            return None

    try:
        writes = plan_undo(directory.history, version, now)
    except UndoConflict as error:
        return [], str(error)
    changes: list[ProposedChange] = []
    for name, data in writes.items():
        present = now(name)
        if present != data:
            before, after = (None if one is None else decode(one) for one in (present, data))
            changes.append(ProposedChange(name, before, after, ""))
    return changes, ""
