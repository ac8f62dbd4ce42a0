"""Runs one hook command and comes back, whatever the command does.

It gets its own process group, bounded memory for what it prints and a time limit; at the limit, or when the turn is
cancelled, the whole group is killed. Nothing here knows what an answer means, and nothing a command prints is parsed.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

KEPT_BYTES = 1_000_000  # of each stream; the rest is read and thrown away, so that the command is not held up
_PIPES_GRACE_S = 0.3  # after the command ended: a process it left behind may hold the pipes for ever
_DEATH_GRACE_S = 5.0  # SIGKILL cannot be refused, but a process stuck in the kernel dies late


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of a command. `exit_code` is None if it was killed at the time limit; `cut`: it printed more."""

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    cut: bool


async def run_command(command: str, *, stdin: bytes, cwd: Path, env: Mapping[str, str], timeout_s: float) -> Ran:
    """Runs `command` in `/bin/sh`. Raises OSError if it cannot be started; a command's own failure is an exit code.

    Processes it leaves behind on purpose live on after a normal end; at the time limit they die with it.
    """
    loop = asyncio.get_running_loop()
    theirs, ours = os.pipe()
    with os.fdopen(ours, "wb", buffering=0) as inlet:
        try:
            transport, collector = await loop.subprocess_exec(
                _Collector,
                "/bin/sh",
                "-c",
                command,
                stdin=theirs,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=cwd,
                env=dict(env),
                start_new_session=True,
            )
        finally:
            os.close(theirs)
        try:
            feeder, feed = await loop.connect_write_pipe(_Feed, inlet)
            try:
                feeder.write(stdin)
                feeder.close()  # flushes first
                in_time = await _within(timeout_s, collector.exited)
                if in_time:
                    await _within(_PIPES_GRACE_S, collector.closed)
            finally:
                if not feed.lost:  # nobody reads it any more
                    feeder.abort()
        finally:
            try:
                if not collector.exited.is_set():
                    with suppress(ProcessLookupError, PermissionError):
                        os.killpg(transport.get_pid(), signal.SIGKILL)
                    await _within(_DEATH_GRACE_S, collector.exited)
            finally:
                transport.close()
    stdout, stderr = (bytes(collector.kept[fd]) for fd in (1, 2))
    return Ran(transport.get_returncode() if in_time else None, stdout, stderr, collector.cut)


async def _within(seconds: float, event: asyncio.Event) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


class _Feed(asyncio.BaseProtocol):
    """Knows whether the pipe to the command is closed. A command need not read what it is told."""

    def __init__(self) -> None:
        self.lost = False

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True


class _Collector(asyncio.SubprocessProtocol):
    """Keeps the beginning of what is printed and learns when it is over."""

    def __init__(self) -> None:
        self.kept: dict[int, bytearray] = {1: bytearray(), 2: bytearray()}
        self.cut = False
        self.exited = asyncio.Event()
        self.closed = asyncio.Event()
        self._open = {1, 2}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        room = KEPT_BYTES - len(self.kept[fd])
        self.kept[fd] += data[:room]
        self.cut = self.cut or len(data) > room

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open.discard(fd)
        if not self._open:
            self.closed.set()

    def process_exited(self) -> None:
        self.exited.set()
