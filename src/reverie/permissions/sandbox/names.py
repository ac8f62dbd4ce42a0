"""Finds the files of a project and of the home that matter because of their names: those that hold secrets, and those
that a program obeys later.

The names are kept, with the time of change of each folder; only folders that changed are read again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import field
from pathlib import Path

from reverie.errors import ReverieError
from reverie.permissions.obeyed_files import is_obeyed_entry, is_page_for_agents
from reverie.permissions.sensitive import is_sensitive_name, is_sensitive_place, may_be_sensitive
from reverie.quick import dataclass

MOST_NAMES = 500_000
HOME_DEPTH = 3
_FRESH_NS = 2_000_000_000
"""A folder that changed less than this before it was read may change again without another time."""
_NOT_ENTERED = frozenset({"node_modules", "site-packages", "__pycache__", ".tox", ".nox", "objects", ".hypothesis"})
_AGENTS = (".reverie", ".claude", ".codex", ".gemini")
_SYSTEM = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d"),
    *("/etc/ssl/private", "/etc/krb5.keytab", "/run/secrets", "/var/run/secrets", "/proc/kcore"),
)


class TooManyNames(ReverieError):
    """A project has more files than are looked at."""


@dataclass(slots=True)
class _Folder:
    """What was found in one folder when it was read."""

    changed: int
    read_at: int
    secrets: tuple[str, ...]
    obeyed: tuple[str, ...]
    folders: tuple[str, ...]
    names: int


@dataclass(slots=True, eq=False)
class NamedFiles:
    """The names below one folder. `depth` limits how deep; a folder that is not entered counts by its own name."""

    top: str
    depth: int = 1_000
    skipped: Callable[[str], bool] = lambda _path: False
    exempt: frozenset[str] = frozenset()
    """Folders that have the name of a secret and hold source code."""
    _folders: dict[str, _Folder] = field(default_factory=dict[str, _Folder])

    def find(self) -> tuple[frozenset[str], frozenset[str]]:
        """Returns the paths that hold secrets, and those that are obeyed. Raises TooManyNames."""
        secrets, obeyed, seen = set[str](), set[str](), dict[str, _Folder]()
        waiting = [(self.top, 0)]
        total = 0
        while waiting:
            path, depth = waiting.pop()
            folder = self._read(path)
            if folder is None:
                continue
            seen[path] = folder
            total += folder.names
            if total > MOST_NAMES:
                raise TooManyNames(f"{self.top} has more than {MOST_NAMES:,} files.")
            secrets.update(folder.secrets)
            obeyed.update(folder.obeyed)
            if depth < self.depth:
                waiting += [(below, depth + 1) for below in folder.folders]
        self._folders = seen
        return frozenset(secrets), frozenset(obeyed)

    def _read(self, path: str) -> _Folder | None:
        try:
            changed = os.stat(path, follow_symlinks=False).st_mtime_ns
            known = self._folders.get(path)
            if known is not None and known.changed == changed and known.read_at - changed > _FRESH_NS:
                return known
            read_at = time.time_ns()
            return self._scan(path, changed, read_at)
        except OSError:
            return None

    def _scan(self, path: str, changed: int, read_at: int) -> _Folder:
        secrets, obeyed, folders, names = list[str](), list[str](), list[str](), 0
        above = path.rpartition("/")[2]
        at_top = path == self.top
        with os.scandir(path) as entries:
            for entry in entries:
                names += 1
                if self.skipped(entry.path):
                    continue
                if entry.path not in self.exempt and self._is_secret(entry):
                    secrets.append(entry.path)
                    continue
                if is_obeyed_entry(above, entry.name) or (at_top and is_page_for_agents(entry.name)):
                    obeyed.append(entry.path)
                if entry.name not in _NOT_ENTERED and entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
        return _Folder(changed, read_at, tuple(secrets), tuple(obeyed), tuple(folders), names)

    @staticmethod
    def _is_secret(entry: os.DirEntry[str]) -> bool:
        # A quick test of the name first: most files of a tree end here.
        return may_be_sensitive(entry.name) and (is_sensitive_name(entry.name) or is_sensitive_place(Path(entry.path)))


def find_linked(project: str, secrets: Iterable[str]) -> frozenset[str]:
    """Other names in the project of files that hold secrets (hard links)."""
    wanted = set[tuple[int, int]]()
    for path in secrets:
        try:
            status = os.stat(path, follow_symlinks=False)
        except OSError:
            continue
        if status.st_nlink > 1 and not os.path.isdir(path):
            wanted.add((status.st_dev, status.st_ino))
    if not wanted:
        return frozenset()
    linked = set[str]()
    for folder, folders, names in os.walk(project):
        folders[:] = [name for name in folders if name not in _NOT_ENTERED]
        for name in names:
            path = os.path.join(folder, name)
            try:
                status = os.stat(path, follow_symlinks=False)
            except OSError:
                continue
            if (status.st_dev, status.st_ino) in wanted:
                linked.add(path)
    return frozenset(linked)


def system_secrets() -> frozenset[str]:
    """Files of the machine and of agents that hold secrets."""
    home = os.path.realpath(Path.home())
    return frozenset(os.path.realpath(path) for path in (*_SYSTEM, *(f"{home}/{name}" for name in _AGENTS)))
