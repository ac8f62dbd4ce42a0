"""A lock between processes for short work on shared files. The kernel drops it when its holder dies.

One flock on a file that stays in place. A process that does not get it in time gets an error.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from reverie.errors import StorageError
from reverie.storage.atomic import storage_error

_HELD = frozenset({errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES})
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
_FIRST_PAUSE_S = 0.000_5
_LONGEST_PAUSE_S = 0.01


class LockTimeout(StorageError):
    """Another process held the lock for too long; nothing was done."""


@contextmanager
def exclusive(path: Path, *, timeout_s: float, what: str) -> Generator[None]:
    """Holds the lock at `path` during the `with`; the folder must exist. `LockTimeout` says what is busy."""
    with _opened(path) as fd:
        for pause in _pauses(fd, path, timeout_s, what):
            time.sleep(pause)
        yield


@asynccontextmanager
async def exclusive_in_loop(path: Path, *, timeout_s: float, what: str) -> AsyncGenerator[None]:
    """Does the same in an event loop: others run while it waits."""
    import asyncio

    with _opened(path) as fd:
        for pause in _pauses(fd, path, timeout_s, what):
            await asyncio.sleep(pause)
        yield


@contextmanager
def _opened(path: Path) -> Generator[int]:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise storage_error(error, path, "open the lock") from error
    _open_locks.add(fd)
    owner = os.getpid()
    try:
        yield fd
    finally:
        if os.getpid() == owner:
            _open_locks.discard(fd)
            with suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_UN)  # at once, even if a child shares the descriptor
            os.close(fd)


def _pauses(fd: int, path: Path, timeout_s: float, what: str) -> Iterator[float]:
    """Yields the seconds to wait before each next attempt, until the lock is taken."""
    until = time.monotonic() + timeout_s
    pause = _FIRST_PAUSE_S
    while not try_lock(fd, path, fcntl.LOCK_EX, f"keep {what} on a local disk"):
        if time.monotonic() > until:
            raise LockTimeout(
                f"{what[:1].upper()}{what[1:]} is being changed by another process for more than {timeout_s:g} s; "
                "try again, or see who holds it."
            )
        yield pause * (0.5 + os.urandom(1)[0] / 255)  # out of step with others that wait
        pause = min(pause * 2, _LONGEST_PAUSE_S)


def try_lock(fd: int, path: Path, kind: int, instead: str) -> bool:
    """Takes a lock of this kind if it is free. `instead` says what to do on a file system without locks."""
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD:
            return False
        if error.errno in _NO_LOCKS:
            raise StorageError(f"Cannot lock {path}: this file system has no locks; {instead}.") from error
        raise storage_error(error, path, "lock") from error
    return True


_open_locks: set[int] = set()


def _close_all() -> None:
    """Closes the copies of a child forked without exec, or the lock would outlive its holder."""
    for fd in _open_locks:
        with suppress(OSError):
            os.close(fd)
    _open_locks.clear()


os.register_at_fork(after_in_child=_close_all)
