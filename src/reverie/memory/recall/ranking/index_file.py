"""Opens the index's SQLite file so that it always opens: shared, versioned, deleted when corrupt. Every user of the
file holds a shared lock next to it; only a process that holds the lock alone may delete it. If that fails, or the disk
fails, the index is in memory for this process. It never raises."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from pathlib import Path

from reverie.quick import dataclass
from reverie.storage.sqlite import connect


@dataclass(slots=True)
class OpenDatabase:
    """An open database; `problem` says why it is in memory, if it is."""

    connection: sqlite3.Connection
    lock: int | None
    problem: str

    def close(self) -> None:
        self.connection.close()
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None


def open_database(
    path: Path | None, schema: str, version: str, busy_ms: int, *, distrust: bool = False
) -> OpenDatabase:
    """The database at `path` with this schema and version, made again where needed; in memory without a path.
    `distrust`: the file at `path` has just failed in use, so it is deleted even if it opens."""
    make = _DatabaseMaker(schema, version, busy_ms)
    if path is None:
        return OpenDatabase(make.opened(None), None, "")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        return make.in_memory(f"{path.parent}: {error.strerror}")
    problem = ""
    try:
        if distrust and not _throw_away(path, lock):
            problem = f"{path}: damaged, and in use by another process"
        else:
            fcntl.flock(lock, fcntl.LOCK_SH)
            return OpenDatabase(make.checked(path), lock, "")
    except sqlite3.OperationalError as error:
        problem = f"{path}: {error}"
    except sqlite3.DatabaseError as error:
        problem = f"{path}: {error}"
        if not distrust and _throw_away(path, lock):
            os.close(lock)
            return open_database(path, schema, version, busy_ms, distrust=True)
    except OSError as error:
        problem = f"{path}: {error.strerror}"
    os.close(lock)
    return make.in_memory(problem)


def _throw_away(path: Path, lock: int) -> bool:
    """Removes the file; false if somebody else has it open."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    return True


@dataclass(frozen=True, slots=True)
class _DatabaseMaker:
    schema: str
    version: str
    busy_ms: int

    def checked(self, path: Path) -> sqlite3.Connection:
        connection = self.opened(path)
        try:
            # Reads the root page of every table, to notice a file that was cut or overwritten at its head.
            for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchall()
        except sqlite3.DatabaseError:
            connection.close()
            raise
        return connection

    def opened(self, path: Path | None) -> sqlite3.Connection:
        if path is None:
            connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        else:
            connection = connect(path, self.busy_ms / 1_000)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA cache_size = -16000")
            if _version(connection) != self.version:
                self._make(connection)
        except sqlite3.DatabaseError:
            connection.close()
            raise
        return connection

    def _make(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        found = _version(connection)
        if found not in ("", self.version):
            raise sqlite3.DatabaseError("made by another version")
        if not found:
            for statement in self.schema.split(";"):
                connection.execute(statement)
            connection.execute("INSERT INTO meta VALUES ('version', ?)", (self.version,))
        connection.execute("COMMIT")

    def in_memory(self, problem: str) -> OpenDatabase:
        return OpenDatabase(self.opened(None), None, problem)


def _version(connection: sqlite3.Connection) -> str:
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
        if connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise sqlite3.DatabaseError("not an index of ours")
        return ""
    row = connection.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
    return str(row[0]) if row else "none"
