"""The copy that a dream works on: the dream uses the real paths, and every one of them is mapped to the copy.

Made before the dream begins, with the times of the files, and removed afterwards. The first state is remembered, so
that the result can be compared and merged. Nothing here writes to the memory directory.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from reverie.layers.l6_dreaming.lock import is_alive
from reverie.quick import dataclass
from reverie.regular_files import read_regular
from reverie.storage.atomic import make_private_dir, storage_error, write_atomic

LARGEST_FILE: Final = 16_000_000
"""Bytes; a larger file is not a memory."""


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """A changed file. None: it was not there, or is gone (an empty file counts as gone)."""

    name: str
    before: bytes | None
    after: bytes | None


class MemoryCopy:
    """A copy of one memory directory. Create it with `make`, delete it with `remove`."""

    def __init__(self, root: Path, folder: Path, base: dict[str, bytes]) -> None:
        self.root = root
        self.folder = folder
        self.base = base
        """Every `.md` file of the first state, by relative path."""

    @classmethod
    def make(cls, root: Path, parent: Path) -> MemoryCopy:
        """Copies the files of `root` (none if it does not exist) to a new folder below `parent`."""
        sweep(parent)
        real = Path(os.path.realpath(root))
        folder = Path(os.path.realpath(parent)) / f"{os.getpid()}-{secrets.token_hex(4)}" / real.name
        make_private_dir(folder)
        base: dict[str, bytes] = {}
        try:
            _copy(real, folder, "", base)
        except OSError as error:
            shutil.rmtree(folder.parent, ignore_errors=True)
            raise storage_error(error, real, "copy the memory directory") from error
        return cls(real, folder, base)

    def map_path(self, path: Path) -> Path:
        """Maps a path to the copy if it is inside the memory directory, however it is spelled."""
        real = Path(os.path.realpath(path))
        return self.folder / real.relative_to(self.root) if real.is_relative_to(self.root) else path

    def shown(self, text: str) -> str:
        """Replaces the paths of the copy in a text by the real ones."""
        return text.replace(str(self.folder), str(self.root))

    def name_of(self, path: Path) -> str | None:
        """Returns the relative path of a file inside the memory directory; None if it is elsewhere."""
        real = Path(os.path.realpath(path))
        inside = real.is_relative_to(self.root) and real != self.root
        return real.relative_to(self.root).as_posix() if inside else None

    def read(self, name: str) -> bytes | None:
        """Returns the current content of a file in the copy."""
        try:
            return read_regular(self.folder / name)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except OSError as error:
            raise storage_error(error, self.folder / name, "read") from error

    def write(self, name: str, data: bytes | None) -> None:
        """Writes a file of the copy, or removes it."""
        path = self.folder / name
        if data is None:
            path.unlink(missing_ok=True)
        else:
            make_private_dir(path.parent)
            write_atomic(path, data, fsync=False)

    def files(self) -> dict[str, bytes]:
        """Returns every `.md` file of the copy."""
        found: dict[str, bytes] = {}
        for path in sorted(self.folder.rglob("*.md")):
            name = path.relative_to(self.folder).as_posix()
            if any(part.startswith(".") for part in name.split("/")) or path.is_symlink() or not path.is_file():
                continue
            data = self.read(name)
            if data is not None:
                found[name] = data
        return found

    def changes(self) -> tuple[CopiedFile, ...]:
        """Returns what differs from the first state, by name."""
        now = {name: data for name, data in self.files().items() if data.strip() or self.base.get(name) == data}
        names = sorted(self.base.keys() | now.keys())
        return tuple(
            CopiedFile(name, self.base.get(name), now.get(name))
            for name in names
            if self.base.get(name) != now.get(name)
        )

    def restore(self) -> None:
        """Restores the first state, for a dream that starts again."""
        for one in self.changes():
            self.write(one.name, one.before)

    def remove(self) -> None:
        shutil.rmtree(self.folder.parent, ignore_errors=True)


def sweep(parent: Path) -> int:
    """Removes copies whose process is gone. Returns how many."""
    swept = 0
    with suppress(OSError):
        for folder in list(parent.iterdir()):
            pid = folder.name.partition("-")[0]
            if pid.isdigit() and not is_alive(int(pid)):
                shutil.rmtree(folder, ignore_errors=True)
                swept += 1
    return swept


def _copy(source: Path, target: Path, above: str, base: dict[str, bytes]) -> None:
    try:
        entries = list(os.scandir(source))
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.is_symlink():
            continue
        name, place = above + entry.name, target / entry.name
        if entry.is_dir():
            place.mkdir(mode=0o700)
            _copy(Path(entry.path), place, f"{name}/", base)
            continue
        try:
            status = entry.stat()
            if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_FILE:
                continue
            data = read_regular(Path(entry.path))
        except FileNotFoundError:
            continue  # removed meanwhile
        place.write_bytes(data)
        os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))
        if name.endswith(".md"):
            base[name] = data
