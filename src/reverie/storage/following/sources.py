"""What is remembered about followed files: the sources that the user named, and how far each file is copied.

One small file per folder of session files, so that a pass over unchanged files reads few of them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from reverie.parsing import RECORD_DEPTH, load_json
from reverie.paths import Places
from reverie.regular_files import LARGEST, read_regular
from reverie.storage.atomic import make_private_dir, write_atomic
from reverie.storage.locks import exclusive
from reverie.storage.transcript.session_files import is_session_name
from reverie.types import JsonObject

_WAIT_S = 30.0
_NO_SESSIONS = {"subagents", "tool-results", "memory", "memories", "plugins", "file-history"}
"""Folders of agents with files that models, pages and other people write: a session file there could be forged."""
_INDEX = "MEMORY.md"


class _StateFile:
    """A JSON object on disk. What cannot be read is empty: the work is then done again, and changes nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> JsonObject:
        try:
            found: Any = load_json(read_regular(self._path, LARGEST), depth=RECORD_DEPTH)
        except (OSError, ValueError):
            return {}
        return cast(JsonObject, found) if isinstance(found, dict) else {}

    def save(self, content: JsonObject) -> None:
        write_atomic(self._path, json.dumps(content, separators=(",", ":")).encode() + b"\n", fsync=False)

    @contextmanager
    def locked(self) -> Generator[None]:
        make_private_dir(self._path.parent)
        with exclusive(self._path.with_suffix(".lock"), timeout_s=_WAIT_S, what="the list of followed files"):
            yield


class Sources(_StateFile):
    """The files and folders that `reverie sessions follow` was given."""

    def __init__(self, places: Places) -> None:
        super().__init__(places.followed / "sources.json")

    def list(self) -> list[Path]:
        """Returns the sources in the order in which they were added."""
        found = self.load().get("sources")
        return [Path(str(one)) for one in cast("list[object]", found)] if isinstance(found, list) else []

    def add(self, paths: list[Path]) -> None:
        """Remembers the paths; known ones stay as they are."""
        known = self.list()
        if set(paths) <= set(known):
            return
        with self.locked():
            self._keep([*self.list(), *paths])

    def remove(self, path: Path) -> bool:
        """Forgets a source; returns whether it was one. Copied sessions stay."""
        with self.locked():
            known = self.list()
            if path in known:
                self._keep([one for one in known if one != path])
            return path in known

    def _keep(self, paths: list[Path]) -> None:
        self.save({"sources": list(dict.fromkeys(map(str, paths)))})


class FolderState(_StateFile):
    """How far the session files of one folder are copied, by file name."""

    def __init__(self, places: Places, folder: Path) -> None:
        self._folder = folder
        name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:24]
        super().__init__(_folders(places) / f"{name}.json")

    def files(self) -> dict[str, JsonObject]:
        found = self.load().get("files")
        return cast("dict[str, JsonObject]", found) if isinstance(found, dict) else {}

    def keep(self, files: dict[str, JsonObject]) -> None:
        self.save({"folder": str(self._folder), "files": files})


def walk_folders(top: Path, *, without: Path) -> Iterator[tuple[Path, list[os.DirEntry[str]] | OSError]]:
    """Yields each folder with its session files, or with the error of a folder that cannot be read.

    Links to folders are followed, but each folder is looked at once. The folder `without` is left out, and so
    are folders without sessions of the user: those of one session, of a memory, of plug-ins.
    """
    top = Path(os.path.abspath(top))  # noqa: PTH100 (links stay)
    waiting, visited = [top], set[tuple[int, int]]()
    left_out = os.path.realpath(without)
    while waiting:
        folder = waiting.pop()
        try:
            found = folder.stat()
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            yield folder, error
            continue
        if (found.st_dev, found.st_ino) in visited or os.path.realpath(folder) == left_out:
            continue
        visited.add((found.st_dev, found.st_ino))
        folders = {entry.name for entry in entries if _is_folder(entry)}
        names = {entry.name for entry in entries}
        if _INDEX in names and folder != top:
            continue
        of_sessions = {name for name in folders if f"{name}.jsonl" in names or is_session_name(Path(name))}
        waiting += [folder / name for name in sorted(folders - _NO_SESSIONS - of_sessions, reverse=True)]
        files = [entry for entry in entries if entry.name.endswith(".jsonl") and entry.name not in folders]
        yield folder, [entry for entry in files if not entry.name.startswith("agent-")]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def all_entries(places: Places) -> Iterator[JsonObject]:
    """Yields what is known about every followed file."""
    for _, entry in _all_files(places):
        yield entry


def sources_of(places: Places, projects: Collection[Path]) -> list[Path]:
    """Returns the session files of other agents whose copies are in these folders."""
    found = [(path, places.home / str(entry.get("target"))) for path, entry in _all_files(places)]
    return [path for path, copy in found if copy.parent in projects]


def _all_files(places: Places) -> Iterator[tuple[Path, JsonObject]]:
    for path in sorted(_folders(places).glob("*.json")):
        state = _StateFile(path).load()
        found, folder = state.get("files"), Path(str(state.get("folder") or "/"))
        for name, entry in cast("dict[str, JsonObject]", found).items() if isinstance(found, dict) else ():
            yield folder / name, entry


def _folders(places: Places) -> Path:
    return places.followed / "folders"
