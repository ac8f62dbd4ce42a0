"""Finds all processes of a command, by its session and its output pipe, and ends them together.

A process group is not enough: `timeout` and job control make new groups but stay in the session, and `setsid` leaves
the session but keeps the pipe.
"""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from reverie.quick import dataclass

_GRACE_SECONDS = 1.0
_KILL_SECONDS = 5.0
_KILL_ROUNDS = 20
_POLL_SECONDS = 0.02
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class ProcessFamily:
    """The processes of one command: its session (the shell's id) and the pipe they write to (device and inode)."""

    session: int
    pipe: tuple[int, int]

    def living(self) -> list[int]:
        """Returns the processes that have not ended; zombies do not count."""
        return [pid for pid, session in _list_processes() if session == self.session or _writes_to(pid, self.pipe)]

    async def end(self) -> None:
        """Ends all of them: with SIGTERM, then with SIGKILL. A second cancellation goes to SIGKILL at once."""
        try:
            self._signal(signal.SIGTERM)
            if await self._gone(_GRACE_SECONDS):
                return
        finally:
            _kill(self.living)
        await self._gone(_KILL_SECONDS)  # a process that hangs in the kernel cannot be ended

    def _signal(self, number: signal.Signals) -> None:
        for pid in self.living():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    async def _gone(self, seconds: float) -> bool:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while self.living():
            if loop.time() >= deadline:
                return False
            await asyncio.sleep(_POLL_SECONDS)
        return True


def end_marked(variable: bytes) -> None:
    """Kills the processes that were started with this variable (`NAME=value`), of any session. Linux only."""
    _kill(lambda: [pid for pid, _ in _list_processes() if _has_variable(pid, variable)])


def _kill(find: Callable[[], Iterable[int]]) -> None:
    """Kills what is found until nothing new is: one of them may have started another in the meantime."""
    killed = set[int]()
    for _ in range(_KILL_ROUNDS):
        found = [pid for pid in find() if pid not in killed]
        if not found:
            return
        for pid in found:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        killed.update(found)


def _has_variable(pid: int, variable: bytes) -> bool:
    with suppress(OSError):
        return pid != os.getpid() and variable in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    return False


def _list_processes() -> Iterator[tuple[int, int]]:
    if (_PROC / "self" / "stat").exists():
        for entry in os.scandir(_PROC):
            if entry.name.isdigit():
                with suppress(OSError, ValueError, IndexError):
                    # `pid (name) state ppid group session …`; the name may hold anything, even `)`.
                    fields = Path(entry.path, "stat").read_bytes().rpartition(b")")[2].split()
                    if fields[0] not in (b"Z", b"X"):
                        yield int(entry.name), int(fields[3])
        return
    listed = subprocess.run(["ps", "-A", "-o", "pid=,stat="], capture_output=True, text=True, check=False).stdout
    for line in listed.splitlines():
        pid, _, state = line.strip().partition(" ")
        if pid.isdigit() and not state.strip().startswith("Z"):
            with suppress(OSError):
                yield int(pid), os.getsid(int(pid))


def _writes_to(pid: int, pipe: tuple[int, int]) -> bool:
    """Whether the process holds the writing end of a pipe. Linux only."""
    with suppress(OSError):
        for entry in os.scandir(_PROC / str(pid) / "fd"):
            with suppress(OSError):
                target = entry.stat()
                if (target.st_dev, target.st_ino) == pipe and entry.stat(follow_symlinks=False).st_mode & stat.S_IWUSR:
                    return True
    return False
