"""The lease of a session: it shows who has it open, so that no two processes write one transcript.

The lease is a kernel lock (flock) on a small open file; its body says who holds it. The kernel drops the lock when the
holder dies, so a body without a lock means nothing. It never waits for a holder.
"""

# Not with `filelock`: the body is written and read under the same lock (same inode, same descriptor), others can ask
# without taking it, and a command that only asks must start fast. On NFS, Linux turns flock into a byte-range lock of
# the server. It works between machines, where a PID alone means nothing, so the body also has the host's name.

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from reverie.errors import SessionBusy, StorageError
from reverie.parsing import load_json
from reverie.storage.atomic import make_private_dir, storage_error
from reverie.storage.locks import try_lock
from reverie.types import JsonObject

_LARGEST_BODY = 65_536
_BODY_WAIT_S = 1.0  # a holder writes its body microseconds after its lock; others look again for this long
_PAUSE_S = 0.005


class Lease:
    """A lease held by this process. Use `Lease.take`; `release` (or the end of the `with`) gives it back."""

    NAME = "session.lock"  # in the folder of a session

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd: int | None = fd
        self._owner = os.getpid()
        self._started = time.time()
        _open_leases.add(self)

    @staticmethod
    def take(path: Path, *, info: JsonObject) -> Lease:
        """Takes the lease, or raises SessionBusy with the PID of the holder. `info` is shown to others."""
        while True:
            if path.name == Lease.NAME:
                make_private_dir(path.parent)
            try:
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            except OSError as error:
                if isinstance(error, FileNotFoundError) and path.name == Lease.NAME:
                    continue  # its last holder has just removed the folder
                _drop_folder(path)
                raise storage_error(error, path, "open the lease") from error
            kept = False
            try:
                if not _lock(fd, path):
                    body = _body_of_holder(fd, path)
                    if body is not None:
                        raise _busy(path, body)
                elif _is_current(fd, path):  # else its last holder removed it while we opened it: take the new one
                    lease = Lease(path, fd)
                    kept = True
                    try:
                        lease.update(info)
                    except BaseException:
                        lease.release()
                        raise
                    return lease
            finally:
                if not kept:
                    os.close(fd)

    @staticmethod
    def holder(path: Path) -> JsonObject | None:
        """Returns the body of the holder (at least `pid`), or None if nobody holds the lease. Takes nothing."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_error(error, path, "read the lease") from error
        try:
            return None if _try_lock(fd, path, fcntl.LOCK_SH) else _body_of_holder(fd, path)
        finally:
            os.close(fd)

    def update(self, info: JsonObject) -> None:
        """Replaces the body that others see, for instance when the socket listens."""
        if self._fd is None:
            raise ValueError("the lease was released")
        own = {"pid": os.getpid(), "host": os.uname().nodename, "started": self._started}
        body = json.dumps({**info, **own}).encode() + b"\n"
        try:
            # A reader between the two calls finds broken JSON and looks again.
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, body, 0)
        except OSError as error:
            raise storage_error(error, self.path, "write the lease") from error

    def release(self) -> None:
        """Gives the lease back, and removes its file and an empty session folder. Repeating it is harmless."""
        fd, self._fd = self._fd, None
        if fd is None:
            return
        _open_leases.discard(self)
        if os.getpid() == self._owner:
            # Removed while it is still locked: a process that opened it finds the name gone and opens it again.
            with suppress(OSError, StorageError):
                if _is_current(fd, self.path):
                    self.path.unlink()
                    _drop_folder(self.path)
            with suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_UN)  # a child forked without exec may share the descriptor
        os.close(fd)

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _drop_folder(path: Path) -> None:
    if path.name == Lease.NAME:
        with suppress(OSError):  # not empty: the session has more than its lease
            path.parent.rmdir()


def _lock(fd: int, path: Path) -> bool:
    """Takes the lock unless somebody holds it. A short shared lock of somebody who only asks does not count."""
    while not _try_lock(fd, path, fcntl.LOCK_EX):
        if not _try_lock(fd, path, fcntl.LOCK_SH):
            return False
        fcntl.flock(fd, fcntl.LOCK_UN)
        time.sleep(_PAUSE_S * (0.5 + os.urandom(1)[0] / 255))  # two processes must not stay in step
    return True


def _try_lock(fd: int, path: Path, kind: int) -> bool:
    return try_lock(fd, path, kind, "set REVERIE_HOME to a folder on a local disk")


def _is_current(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(fd))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise storage_error(error, path, "read the lease") from error


def _body_of_holder(fd: int, path: Path) -> JsonObject | None:
    """Returns the holder's body; None if it was released. Waits a while for a torn or old body to be replaced."""
    until = time.monotonic() + _BODY_WAIT_S
    body: JsonObject = {}
    while True:
        body = _parse(os.pread(fd, _LARGEST_BODY, 0)) or body
        if body and _may_live(body):
            return body
        if time.monotonic() > until:
            return body or {"pid": 0}
        time.sleep(_PAUSE_S)
        if _try_lock(fd, path, fcntl.LOCK_SH):
            return None


def _parse(raw: bytes) -> JsonObject | None:
    try:
        body: Any = load_json(raw)
    except ValueError:
        return None
    if not isinstance(body, dict) or not isinstance(cast(JsonObject, body).get("pid"), int):
        return None
    return cast(JsonObject, body)


def _may_live(body: JsonObject) -> bool:
    if body.get("host") != os.uname().nodename:
        return True  # on another machine: its processes are not visible here
    try:
        os.kill(body["pid"], 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _busy(path: Path, body: JsonObject) -> SessionBusy:
    pid = int(body["pid"])
    where = "already open in this process" if pid == os.getpid() else "open in another process"
    host = body.get("host")
    on = f" on {host}" if isinstance(host, str) and host != os.uname().nodename else ""
    who = f"PID {pid}{on}" if pid else "its PID is not known"
    name = body.get("session") or path.stem
    return SessionBusy(f"Session {name} is {where} ({who}); continue there, or end that process first.", pid)


_open_leases: set[Lease] = set()


def _release_all() -> None:
    """Releases the copies of a child forked without exec, or a lease would outlive its holder."""
    for lease in list(_open_leases):
        lease.release()


os.register_at_fork(after_in_child=_release_all)
