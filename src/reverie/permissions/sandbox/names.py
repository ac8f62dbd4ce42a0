"""Finds the files of a project and of the home that matter because of their names: those that hold secrets, and those
that a program obeys later.

The names are kept, with the time of change of each folder; only folders that changed are read again.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import TypeAlias

from reverie.errors import ReverieError
from reverie.permissions.obeyed_files import is_obeyed_entry, is_page_for_agents
from reverie.permissions.sensitive import is_sensitive_name, is_sensitive_place, may_be_sensitive
from reverie.quick import dataclass

MOST_NAMES = 500_000
HOME_DEPTH = 3
_FRESH_NS = 2_000_000_000
"""A folder that changed less than this before it was read may change again without another time."""
_MOST_LOOKED_AT = 2_000
_NOT_ENTERED = frozenset({"node_modules", "site-packages", "__pycache__", ".tox", ".nox", "objects", ".hypothesis"})
_AGENTS = (".reverie", ".claude", ".codex", ".gemini")
_SYSTEM = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d"),
    *("/etc/ssl/private", "/etc/krb5.keytab", "/run/secrets", "/var/run/secrets"),
)


class TooManyNames(ReverieError):
    """A project has more files than are looked at."""


@dataclass(slots=True)
class _Folder:
    """What was found in one folder when it was read."""

    changed: tuple[int, int, int]
    """Its device, number, and time of change, which nobody can set."""
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
    reads: int = 0
    """How many folders were read until now: the same number means that nothing has changed."""
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
            status = os.lstat(path)
            changed = (status.st_dev, status.st_ino, status.st_ctime_ns)
            known = self._folders.get(path)
            if known is not None and known.changed == changed and known.read_at - changed[2] > _FRESH_NS:
                return known
            read_at = time.time_ns()
            self.reads += 1
            return self._scan(path, changed, read_at)
        except OSError:
            return None

    def _scan(self, path: str, changed: tuple[int, int, int], read_at: int) -> _Folder:
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


@dataclass(slots=True, eq=False)
class MovedSecrets:
    """Finds secrets of one project under other names: hard links, and files that moved with a folder above them."""

    top: str
    _known: dict[str, _Identity] = field(default_factory=dict[str, tuple[int, ...]])
    """Where each secret was; also those that were found under a name which says nothing."""
    _linked: frozenset[str] = frozenset()
    _state: object = None

    def find(self, secrets: Iterable[str], others: Iterable[str], state: object) -> frozenset[str]:
        """Returns more paths to hide. `others`: secrets outside the project; `state` changes if a folder changes."""
        secrets = frozenset(secrets)
        seen, several = dict[str, _Identity](), set[tuple[int, ...]]()
        for path in (*secrets, *self._linked):
            if (status := _status(path)) is not None:
                seen[path] = _identity(status)
        for path in _files_of((*secrets, *others)):
            if (status := _status(path)) is not None and status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
                several.add((*_identity(status), status.st_ctime_ns))
        places = set(seen.values())
        lost = set(self._known.values()) - places
        # What was found before is looked for again when something changed: it may have moved once more.
        wanted = lost | {identity[:-1] for identity in several} | {seen[path] for path in self._linked if path in seen}
        state = (state, frozenset(several), frozenset(wanted))
        if state != self._state:
            self._state = state
            self._linked = (self._walk(wanted) if wanted else frozenset()) - secrets
        self._known = {path: seen[path] for path in secrets if path in seen}
        for path in self._linked:
            if (status := _status(path)) is not None:
                self._known[path] = _identity(status)
        return self._linked

    def _walk(self, wanted: set[tuple[int, ...]]) -> frozenset[str]:
        found, waiting = set[str](), [self.top]
        while waiting:
            try:
                entries = list(os.scandir(waiting.pop()))
            except OSError:
                continue
            for entry in entries:
                status = _status(entry.path)
                if status is not None and _identity(status) in wanted:
                    found.add(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
        return frozenset(found)


_Identity: TypeAlias = tuple[int, ...]


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _identity(status: os.stat_result) -> _Identity:
    """A file keeps it when it moves; a new file with the number of an old one has another time."""
    return status.st_dev, status.st_ino, 0 if stat.S_ISDIR(status.st_mode) else status.st_mtime_ns


def _files_of(secrets: Iterable[str]) -> Iterator[str]:
    """The files among these paths, and those in the folders among them."""
    left = _MOST_LOOKED_AT
    for secret in secrets:
        yield secret
        for folder, _, names in os.walk(secret):
            yield from (os.path.join(folder, name) for name in names)
            left -= len(names)
            if left < 0:
                return


def system_secrets() -> frozenset[str]:
    """Files of the machine and of agents that hold secrets."""
    home = os.path.realpath(Path.home())
    named = frozenset(os.path.realpath(path) for path in (*_SYSTEM, *(f"{home}/{name}" for name in _AGENTS)))
    return named | _private_settings() if os.geteuid() == 0 else named


@cache
def _private_settings() -> frozenset[str]:
    """Files of the system that only root may read. A command of root is root's, without what makes root powerful."""
    found = set[str]()
    for folder, folders, names in os.walk("/etc"):
        for name in (*folders, *names):
            path = os.path.join(folder, name)
            status = _status(path)
            if status is not None and not stat.S_ISLNK(status.st_mode) and not status.st_mode & 0o004:
                found.add(path)
        folders[:] = [name for name in folders if os.path.join(folder, name) not in found]
    return frozenset(found)
