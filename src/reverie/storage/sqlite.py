"""Opens SQLite files that only their user can read, whatever the umask. What SQLite makes beside a file (`-wal`,
`-shm`) gets the mode of the file."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import suppress
from pathlib import Path

from reverie.errors import StorageError
from reverie.storage.atomic import create_exclusive


def connect(path: Path, timeout_s: float) -> sqlite3.Connection:
    """A connection in autocommit mode, for several threads. Raises `sqlite3.Error`."""
    try:
        # Never opened here: closing it would end the locks that other connections of this process have on it.
        if not create_exclusive(path, b"", fsync=False):
            for name in (path, f"{path}-wal", f"{path}-shm"):
                _make_private(Path(name))
    except StorageError as error:
        raise sqlite3.OperationalError(str(error)) from error
    return sqlite3.connect(path, timeout=timeout_s, isolation_level=None, check_same_thread=False)


def _make_private(path: Path) -> None:
    """For files of versions that left this to the umask."""
    with suppress(OSError):
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode) and mode & 0o077:
            path.chmod(0o600)
