"""What the web view is about: the home, its projects and their sessions. Finds and opens; never changes anything.

A project is a folder below `projects/` in the home; its name is the name of that folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import field
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from reverie.errors import ReverieError
from reverie.paths import Places, slug
from reverie.quick import dataclass
from reverie.settings import Settings, load_settings
from reverie.web.visit import NotFound

if TYPE_CHECKING:
    from reverie.memory.opening import OpenedMemory
    from reverie.storage.transcript.sessions import SessionInfo

T = TypeVar("T")
_MOST_ASKED = 20
"""Sessions that are asked for the working folder of a project."""


@dataclass(frozen=True, slots=True)
class Project:
    """One project. `folder` is where its sessions worked; None if nothing says so."""

    name: str
    path: Path
    folder: Path | None

    @property
    def label(self) -> str:
        return str(self.folder) if self.folder is not None else self.name


@dataclass(eq=False, slots=True)
class Site:
    """The home that is shown, and the folder in which `reverie web` was started."""

    cwd: Path
    settings: Settings
    read_only: bool = False
    derived: dict[type, Any] = field(default_factory=dict[type, Any], init=False)
    """What pages have read and may use again, by type; it can be deleted at any time."""
    _folders: dict[str, tuple[int, Path | None]] = field(default_factory=dict[str, tuple[int, Path | None]], init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    @classmethod
    def open(cls, cwd: Path, *, read_only: bool = False) -> Site:
        return cls(Path(os.path.realpath(cwd)), load_settings(cwd), read_only)

    @property
    def places(self) -> Places:
        """The places of the folder in which the server was started."""
        return Places.of(self.cwd, self.settings)

    def keep(self, kind: type[T], make: Callable[[], T]) -> T:
        """The one object of this kind that lives as long as the server, such as a table or a running job."""
        with self._lock:
            if kind not in self.derived:
                self.derived[kind] = make()
            return self.derived[kind]

    def projects(self) -> list[Project]:
        """All projects with sessions or memories, by name."""
        try:
            found = sorted(entry.name for entry in os.scandir(self.places.projects) if entry.is_dir())
        except OSError:
            found = list[str]()
        return [self.project(name) for name in found]

    def project(self, name: str) -> Project:
        """One project; `NotFound` if there is none of this name. The project of the start folder always exists."""
        path = self.places.projects / name
        if "/" in name or name in ("", ".", "..") or "\0" in name:
            raise NotFound(f"There is no project {name[:80]!r}.")
        if not is_folder(path) and name not in (slug(self.cwd), slug(self.places.root)):
            raise NotFound(f"There is no project {name[:80]!r}.")
        return Project(name, path, self._folder_of(name, path))

    @property
    def here(self) -> Project:
        """The project whose memory belongs to the start folder."""
        return self.project(slug(self.places.root))

    def memory_of(self, project: Project) -> OpenedMemory:
        """The memory of a project, as a command in its folder opens it."""
        from reverie.memory.opening import log_refusals, open_memory

        # A path that has the same name as the project: all that the memory of an unknown folder depends on.
        folder = project.folder or Path("/" + project.name.removeprefix("-"))
        settings = self.settings_in(folder)
        places = Places.of(folder, settings)
        return open_memory(settings, places, report=log_refusals(places))

    def settings_in(self, folder: Path) -> Settings:
        """The settings of a command in this folder; ours, if it is gone."""
        return load_settings(folder) if is_folder(folder) else self.settings

    def sessions(self, project: Project | None = None) -> Iterator[SessionInfo]:
        """Sessions of one project or of all, the last used first within a project."""
        from reverie.storage.transcript.sessions import list_sessions

        for one in [project] if project is not None else self.projects():
            yield from list_sessions(one.path)

    def session(self, id: str) -> SessionInfo:
        """One session by its whole id; `NotFound` if there is none."""
        from reverie.paths import check_session_id
        from reverie.storage.transcript.sessions import describe

        try:
            name = f"{check_session_id(id)}.jsonl"
        except ReverieError:
            raise NotFound(f"There is no session {id[:80]!r}.") from None
        for project in self.projects():
            if (path := project.path / name).is_file() and (found := describe(path)) is not None:
                return found
        raise NotFound(f"There is no session {id[:80]!r}.")

    def _folder_of(self, name: str, path: Path) -> Path | None:
        found = next((one for one in (self.cwd, self.places.root) if slug(one) == name), None)
        if found is not None:
            return found
        try:
            changed = path.stat().st_mtime_ns
        except OSError:
            return None
        with self._lock:
            known = self._folders.get(name)
        if known is None or (known[1] is None and known[0] != changed):
            known = (changed, _recorded(path, name))
            with self._lock:
                self._folders[name] = known
        return known[1]


def is_folder(path: Path) -> bool:
    """Whether a path that somebody else wrote is a folder. A name that no file can have is none, not an error."""
    return os.path.isdir(path)  # noqa: PTH112


def _recorded(path: Path, name: str) -> Path | None:
    """The working folder that a session of the project names. Imported sessions may name folders of others."""
    from reverie.storage.transcript.sessions import describe

    for transcript in islice(path.glob("*.jsonl"), _MOST_ASKED):
        info = describe(transcript)
        if info is not None and info.cwd and slug(Path(info.cwd)) == name:
            return Path(info.cwd)
    return None
