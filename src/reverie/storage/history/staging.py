"""Files written in full beside their place, moved there later in one step: the first half of a change of many files.

All that can run out of space happens while staging; landing is one rename. A staged file that a crash left behind is
known by its name, and whoever holds the folder's lock may clear it away.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from reverie.storage.atomic import flush_folder, make_private_dir, storage_error, write_new

LEFT_BEHIND = re.compile(r"\.reverie-[0-9a-f]{16}\.tmp")
"""What a staged file is called; in a folder of people's own nothing else may be cleared away."""


class Staged:
    """One file waiting to land at `path`. Raises StorageError; what is at `path` stands until `land`."""

    def __init__(self, path: Path, data: bytes, *, mode: int = 0o600) -> None:
        self.path = path
        self._temporary = path.with_name(f".reverie-{os.urandom(8).hex()}.tmp")
        make_private_dir(path.parent)
        try:
            write_new(self._temporary, data, mode, fsync=True)
        except OSError as error:
            raise storage_error(error, path, "write") from error

    def land(self) -> None:
        """Moves the file to its place. Durable once the folder is flushed (`flush_where_possible`)."""
        try:
            self._temporary.replace(self.path)
        except OSError as error:
            raise storage_error(error, self.path, "write") from error

    def discard(self) -> None:
        """Takes the waiting file away; nothing if it has landed."""
        with suppress(OSError):
            self._temporary.unlink()


def flush_where_possible(folder: Path) -> None:
    """Makes renames and removals in a folder survive a power cut, where the file system can."""
    with suppress(OSError):
        flush_folder(folder)
