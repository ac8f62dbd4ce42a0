"""The state of a folder without reading all of it: the content of each file by name, size, times and inode.

A file is read only if its stat differs from the note, or if it is too new to be sure. The note can be rebuilt.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from reverie.errors import StorageError
from reverie.quick import dataclass
from reverie.regular_files import LARGEST, read_regular
from reverie.storage.atomic import flush_folder, make_private_dir, storage_error, write_atomic, write_new
from reverie.storage.history.objects import blob_id

_HEADER = "reverie files 1"
_TICK_NS = 20_000_000  # the kernel stamps files with a clock that steps every few milliseconds
_COARSE_NS = 2_000_000_000  # and some file systems keep only seconds

_NOTE_ABOVE = 16  # files read in one look, worth a new note even if no version follows

Stamp = tuple[int, int, int, int]  # inode, size, mtime and ctime in nanoseconds
STATE_FILE = "reverie-files"
"""The file in a history's folder with the noted state of the files; it can be made again."""


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A file in the note."""

    stamp: Stamp
    content: str


class FolderState:
    """The note next to the history. Callers hold the folder's lock."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._loaded: tuple[Stamp, int, dict[str, SeenFile]] | None = None

    def look(self, root: Path, known: Mapping[str, str]) -> tuple[dict[str, SeenFile], int]:
        """Returns every file with its content's name, and the start time. Unreadable files count as in `known`."""
        began = time.time_ns()
        noted_at, noted = self._load()
        found: dict[str, SeenFile] = {}
        read = 0
        for name, path, stamp in walk(root):
            last = noted.get(name)
            if last is not None and last.stamp == stamp and not _too_fresh(stamp, noted_at):
                found[name] = last
                continue
            read += 1
            content = _hash(path)
            if content is None:
                content = known.get(name)
            if content is not None:
                found[name] = SeenFile(stamp, content)
        if read > _NOTE_ABOVE:
            self.save(found, began)
        return found, began

    def save(self, files: Mapping[str, SeenFile], began: int) -> None:
        """Writes the note. A failure does not matter: the next look reads more files."""
        lines = [f"{_HEADER} {began}"]
        lines += [f"{' '.join(map(str, one.stamp))} {one.content} {name}" for name, one in files.items()]
        with suppress(StorageError):
            write_atomic(self._path, os.fsencode("\n".join(lines)), fsync=False)
            status = self._path.stat()
            self._loaded = _stamp(status), began, dict(files)

    def _load(self) -> tuple[int, dict[str, SeenFile]]:
        try:
            stamp = _stamp(self._path.stat())
            if self._loaded is not None and self._loaded[0] == stamp:
                return self._loaded[1], self._loaded[2]
            lines = os.fsdecode(read_regular(self._path, LARGEST)).split("\n")
            header, _, noted_at = lines[0].rpartition(" ")
            if header != _HEADER:
                return 0, {}
            files: dict[str, SeenFile] = {}
            for line in lines[1:]:
                inode, size, mtime, ctime, content, name = line.split(" ", 5)
                files[name] = SeenFile((int(inode), int(size), int(mtime), int(ctime)), content)
        except (OSError, ValueError):
            return 0, {}
        return int(noted_at), files


def walk(root: Path) -> Iterator[tuple[str, str, Stamp]]:
    """Yields name, path and stamp of every visible Markdown file, and removes staged files that a crash left."""
    folders = [("", str(root))]
    while folders:
        above, folder = folders.pop()
        try:
            with os.scandir(folder) as listing:
                entries = list(listing)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise storage_error(error, Path(folder), "read") from error
        for entry in entries:
            name = entry.name
            if name[0] == ".":
                if LEFT_BEHIND.fullmatch(name):
                    with suppress(OSError):
                        Path(entry.path).unlink()
                continue
            if "\n" in name:
                continue
            with suppress(OSError):  # gone meanwhile
                if entry.is_dir(follow_symlinks=False):
                    folders.append((f"{above}{name}/", entry.path))
                elif name.endswith(".md") and entry.is_file(follow_symlinks=False):
                    yield above + name, entry.path, _stamp(entry.stat(follow_symlinks=False))


def see_file(path: Path, content: str) -> SeenFile:
    """Returns the state of a file that has just landed with this content."""
    return SeenFile(_stamp(path.stat()), content)


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _too_fresh(stamp: Stamp, noted_at: int) -> bool:
    latest = max(stamp[2], stamp[3])
    slack = _COARSE_NS if latest % 1_000_000_000 == 0 else _TICK_NS
    return latest > noted_at - slack


def _hash(path: str) -> str | None:
    try:
        return blob_id(read_regular(Path(path)))
    except OSError:
        return None


LEFT_BEHIND = re.compile(r"\.reverie-[0-9a-f]{16}\.tmp")
"""The name of a staged file. In a folder of the user, nothing else may be removed."""


class Staged:
    """One file that waits to land at `path`. Raises StorageError; the old file stays until `land`."""

    def __init__(self, path: Path, data: bytes, *, mode: int = 0o600) -> None:
        self.path = path
        self._temporary = path.with_name(f".reverie-{os.urandom(8).hex()}.tmp")
        make_private_dir(path.parent)
        try:
            write_new(self._temporary, data, mode, fsync=True)
        except OSError as error:
            raise storage_error(error, path, "write") from error

    def land(self) -> None:
        """Moves the file to its place. It is durable after `flush_where_possible`."""
        try:
            self._temporary.replace(self.path)
        except OSError as error:
            raise storage_error(error, self.path, "write") from error

    def discard(self) -> None:
        """Removes the waiting file; does nothing if it has landed."""
        with suppress(OSError):
            self._temporary.unlink()


def flush_where_possible(folder: Path) -> None:
    """Makes renames and removals in a folder durable, where the file system can."""
    with suppress(OSError):
        flush_folder(folder)
