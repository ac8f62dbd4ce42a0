"""Runs one hook command within limits: its own process group, limited output and a time limit.

At the limit, or when the turn is cancelled, the whole group is killed. The output is not parsed here.
"""

# Not with asyncio's subprocesses: if they are cancelled during the start, they can hang (seen on Python 3.11), and they
# kill the shell but not its children. Here the start is one blocking call of a millisecond or two.

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

KEPT_BYTES = 1_000_000  # per stream; the rest is read and dropped, so that the command can go on
_PIPES_GRACE_S = 0.3  # after the command ended: a process it left behind may keep the pipes open
_DEATH_GRACE_S = 5.0  # SIGKILL cannot be refused, but a process in the kernel may die late


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command. `exit_code` is None if it was killed at the time limit; `cut`: it printed more."""

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    cut: bool


async def run_command(
    command: str, *, stdin: bytes, cwd: Path, env: Mapping[str, str], timeout_s: float
) -> CommandResult:
    """Runs `command` in `/bin/sh`. Raises OSError if it cannot start. Processes it leaves behind may continue."""
    process = _start(command, cwd, env)
    exited = _watch(process)
    talk = _Pipes(process)
    try:
        await talk.begin(stdin)
        in_time = await _within(timeout_s, exited)
        if in_time:
            await _within(_PIPES_GRACE_S, talk.over)
    finally:
        try:
            if not exited.is_set():
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                await _within(_DEATH_GRACE_S, exited)
        finally:
            talk.end()
    stdout, stderr = talk.printed
    cut = stdout.cut or stderr.cut
    return CommandResult(process.returncode if in_time else None, bytes(stdout.kept), bytes(stderr.kept), cut)


def _start(command: str, cwd: Path, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["/bin/sh", "-c", command],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env=dict(env),
        start_new_session=True,
    )


def _watch(process: subprocess.Popen[bytes]) -> asyncio.Event:
    """Returns an event that is set when the process ends. A thread waits for it, which works on every POSIX system."""
    loop, exited = asyncio.get_running_loop(), asyncio.Event()

    def wait() -> None:
        process.wait()
        with suppress(RuntimeError):  # the loop ended first
            loop.call_soon_threadsafe(exited.set)

    threading.Thread(target=wait, name=f"hook-{process.pid}", daemon=True).start()
    return exited


async def _within(seconds: float, event: asyncio.Event) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


class _Pipes:
    """The three pipes of a process: its input, and the start of its output."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        pipes = cast("tuple[IO[bytes], IO[bytes], IO[bytes]]", (process.stdin, process.stdout, process.stderr))
        self.over = asyncio.Event()
        self.printed = (_OutputBuffer(self._lost), _OutputBuffer(self._lost))
        self._stdin, *self._outputs = pipes
        self._readers: list[asyncio.ReadTransport] = []
        self._rest = memoryview(b"")

    async def begin(self, stdin: bytes) -> None:
        loop = asyncio.get_running_loop()
        for printed, pipe in zip(self.printed, self._outputs, strict=True):
            self._readers.append((await loop.connect_read_pipe(lambda printed=printed: printed, pipe))[0])
        self._rest = memoryview(stdin)
        os.set_blocking(self._stdin.fileno(), False)
        loop.add_writer(self._stdin.fileno(), self._write)

    def end(self) -> None:
        """Closes the pipes, even if other processes still hold the other ends."""
        self._stop_writing()
        for reader in self._readers:
            reader.close()
        for pipe in self._outputs:
            pipe.close()

    def _write(self) -> None:
        """Writes as much as the pipe accepts. A command does not have to read its input."""
        try:
            self._rest = self._rest[os.write(self._stdin.fileno(), self._rest) :]
        except (BlockingIOError, InterruptedError):
            return
        except OSError:  # it closed its end
            self._rest = memoryview(b"")
        if not self._rest:
            self._stop_writing()

    def _stop_writing(self) -> None:
        if not self._stdin.closed:
            asyncio.get_running_loop().remove_writer(self._stdin.fileno())
            self._stdin.close()

    def _lost(self) -> None:
        if all(printed.lost for printed in self.printed):
            self.over.set()


class _OutputBuffer(asyncio.Protocol):
    """Keeps the start of one stream and drops the rest."""

    def __init__(self, on_lost: Callable[[], None]) -> None:
        self.kept = bytearray()
        self.cut = False
        self.lost = False
        self._on_lost = on_lost

    def data_received(self, data: bytes) -> None:
        room = KEPT_BYTES - len(self.kept)
        self.kept += data[:room]
        self.cut = self.cut or len(data) > room

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self._on_lost()
