"""The lock of dreaming: who dreams now, and when a dream last succeeded.

Other programs share the meaning of `<memory>/.consolidate-lock`: its body is the holder's PID, its mtime the last
success or, while it is held, when it was taken. A file next to it keeps the mtime from before, so that it can be
restored; a kernel lock on that file makes every step exclusive. Reading the time of the last dream is one stat.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from reverie.errors import ReverieError
from reverie.moments import past_time
from reverie.parsing import load_json
from reverie.quick import dataclass
from reverie.regular_files import open_regular, read_head
from reverie.storage.atomic import make_private_dir, storage_error
from reverie.storage.locks import exclusive

NAME: Final = ".consolidate-lock"
SIDE: Final = ".consolidate-lock.previous"
RULE_S: Final = 3_600.0
"""After this time a holder loses the lock, even if it is alive."""
_WAIT_S: Final = 10.0
_LARGEST_BODY: Final = 4_096
_NS: Final = 1_000_000_000


class LockLost(ReverieError):
    """Somebody else has the lock now, or its time is over: nothing may land any more."""


@dataclass(frozen=True, slots=True)
class LockState:
    """The lock at one moment."""

    pid: int | None
    """The PID in the file, alive or not; None if there is none."""
    held: bool
    mtime: float | None
    """None: there is no file, and no dream ever succeeded."""
    last_success: float | None
    """None if never, or if the time is in the future."""
    ahead: bool = False
    """The time of the file is in the future; the next dream corrects it."""

    @property
    def stale(self) -> bool:
        """The holder died or took too long. `recover` cleans up."""
        return self.pid is not None and not self.held


@dataclass(frozen=True, slots=True)
class _Side:
    token: str
    pid: int
    previous_ns: int | None


class ConsolidationLock:
    """The lock of one memory directory. Does not create files before it is taken."""

    def __init__(self, memory: Path, *, rule_s: float = RULE_S) -> None:
        self.path = memory / NAME
        self._side = memory / SIDE
        self._rule_s = rule_s

    def mtime(self) -> float | None:
        """Returns the last success, or when the lock was taken; None: no file. One stat. May be in the future."""
        try:
            return self.path.stat().st_mtime
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_error(error, self.path, "look at") from error

    def state(self, now: float) -> LockState:
        """Returns who holds it. Reads without a lock, so it may be a moment old."""
        body, mtime_ns = self._read()
        if mtime_ns is None:
            return LockState(None, False, None, None)
        mtime = mtime_ns / _NS
        if body == b"":
            last = past_time(mtime, now)
            return LockState(None, False, mtime, last, ahead=last is None)
        pid = _pid(body)
        side = self._read_side()
        own = side is not None and side.pid == pid
        previous = side.previous_ns if side is not None and own else mtime_ns
        last = None if previous is None else past_time(previous / _NS, now)
        taken = past_time(mtime, now)  # a future time was not written by a holder, even if its PID is in use
        held = taken is not None and now - taken < self._rule_s and is_alive(pid)
        return LockState(pid or 0, held, mtime, last, ahead=taken is None)

    def take(self, now: float) -> Holding | None:
        """Takes the lock; None if somebody holds it. Recovers a stale one first."""
        make_private_dir(self.path.parent)
        with self._alone():
            self._recover(now)
            if self.state(now).pid is not None:
                return None
            _, previous_ns = self._read()
            token = secrets.token_hex(8)
            # In this order: a process that dies in between leaves a free lock with its old mtime.
            self._write_side(_Side(token, os.getpid(), previous_ns))
            self._put(str(os.getpid()).encode(), int(now * _NS))
        return Holding(self, token)

    def recover(self, now: float) -> bool:
        """Cleans up after a dead or late holder and restores the last success. Returns whether there was anything."""
        if not self.state(now).stale and not self._find_leftovers():
            return False
        with self._alone():
            return self._recover(now)

    def _find_leftovers(self) -> list[Path]:
        """Returns temporary files of a process that was killed in `_put`."""
        return list(self.path.parent.glob(f"{NAME}.*.tmp"))

    def _recover(self, now: float) -> bool:
        state = self.state(now)
        if not state.stale:
            return False
        side = self._read_side()
        if side is not None and side.pid == state.pid:
            self._restore(side.previous_ns)
        else:  # another program took it and did not keep the time before: use its mtime
            _, mtime_ns = self._read()
            self._restore(mtime_ns)
        return True

    def _restore(self, previous_ns: int | None) -> None:
        if previous_ns is None:
            self.path.unlink(missing_ok=True)
        else:
            self._put(b"", previous_ns)

    @contextmanager
    def _alone(self) -> Generator[None]:
        try:
            with exclusive(self._side, timeout_s=_WAIT_S, what="the lock of dreaming"):
                for left in self._find_leftovers():
                    left.unlink(missing_ok=True)
                yield
        except OSError as error:
            raise storage_error(error, self.path, "write") from error

    def _put(self, body: bytes, mtime_ns: int) -> None:
        """Writes body and time in one step, so that a reader or a kill never meets one without the other."""
        temporary = self.path.with_name(f"{NAME}.{secrets.token_hex(6)}.tmp")
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            try:
                os.write(fd, body)
                os.utime(fd, ns=(mtime_ns, mtime_ns))
            finally:
                os.close(fd)
            temporary.replace(self.path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def _read(self) -> tuple[bytes, int | None]:
        try:
            with os.fdopen(open_regular(self.path), "rb") as file:
                return file.read(_LARGEST_BODY).strip(), os.fstat(file.fileno()).st_mtime_ns
        except FileNotFoundError:
            return b"", None
        except OSError as error:
            raise storage_error(error, self.path, "read") from error

    def _read_side(self) -> _Side | None:
        try:
            raw: Any = load_json(read_head(self._side, _LARGEST_BODY))
        except (OSError, ValueError):
            return None
        match raw:
            case {"token": str() as token, "pid": int() as pid, "previous_ns": int() | None as previous}:
                return _Side(token, pid, previous)
            case _:
                return None

    def _write_side(self, side: _Side) -> None:
        """Writes in place, because the file carries the kernel lock. A torn write is harmless: then nobody holds it."""
        body = json.dumps({"token": side.token, "pid": side.pid, "previous_ns": side.previous_ns}).encode()
        fd = os.open(self._side, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.ftruncate(fd, 0)
            os.pwrite(fd, body, 0)
        finally:
            os.close(fd)

    def holds(self, token: str, now: float) -> bool:
        """Returns whether the owner of this token still has the lock."""
        side, state = self._read_side(), self.state(now)
        return side is not None and side.token == token and state.held and state.pid == side.pid

    @contextmanager
    def held_by(self, token: str, now: float) -> Generator[None]:
        """Holds the lock for a moment, so that nobody else gets it; `LockLost` if it is not held."""
        with self._alone():
            if not self.holds(token, now):
                raise LockLost("The lock of dreaming was lost before the result could land, so nothing was changed.")
            yield

    def finish(self, token: str, now: float, *, success: bool) -> bool:
        """Releases the lock if it is still held: with the time of success, or with the time from before."""
        with self._alone():
            side, state = self._read_side(), self.state(now)
            if side is None or side.token != token or state.pid != side.pid:
                return False  # somebody else has it now
            if success:
                self._put(b"", int(now * _NS))
            else:
                self._restore(side.previous_ns)
            return True


@dataclass(frozen=True, slots=True)
class Holding:
    """The lock while this process holds it, until `succeed` or `give_back`."""

    lock: ConsolidationLock
    token: str

    def landing(self, now: float) -> AbstractContextManager[None]:
        """Used around the landing: raises `LockLost`, or keeps others from taking the lock meanwhile."""
        return self.lock.held_by(self.token, now)

    def succeed(self, now: float) -> bool:
        """Releases the lock after a success. False if it was lost."""
        return self.lock.finish(self.token, now, success=True)

    def give_back(self, now: float) -> bool:
        """Releases the lock after a failure. False if it was lost."""
        return self.lock.finish(self.token, now, success=False)


def _pid(body: bytes) -> int | None:
    with suppress(ValueError):
        number = int(body)
        if 0 < number < 2**31:
            return number
    return None


def is_alive(pid: int | None) -> bool:
    """Returns whether this process runs. A zombie does not."""
    if pid is None:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    try:
        status = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return True  # no such file system here
    return status.rpartition(b")")[2].split()[:1] not in ([b"Z"], [b"X"])
