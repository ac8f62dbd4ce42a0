"""Runs the command of a hook or the program of a model within limits: its own session, limited output, a time limit.

At the limit, or when the turn is cancelled, all its processes are ended. The output is not parsed here.
"""

# Not with asyncio's subprocesses: if they are cancelled during the start, they can hang (seen on Python 3.11), and they
# kill the shell but not its children. Here the start is one blocking call of a millisecond or two.

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

from reverie.quick import dataclass
from reverie.runtime.agent_above import mark_environment, mark_words
from reverie.runtime.process_family import ProcessFamily

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
    command: str | Sequence[str],
    *,
    stdin: bytes,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float,
    kept_bytes: int = KEPT_BYTES,
    to_the_end: bool = True,
) -> CommandResult:
    """Runs words as they are, or a text in `/bin/sh`; neither is the user. Raises OSError if it cannot start.

    `to_the_end`: it may print more than is kept, and processes that it leaves behind may continue. Otherwise too much
    output ends it, and none of its processes is left when this returns.
    """
    words = mark_words(["/bin/sh", "-c", command] if isinstance(command, str) else command)
    process = _start(words, cwd, mark_environment(env))
    exited, stopped = asyncio.Event(), asyncio.Event()
    _watch(process, exited, stopped)
    talk = _Pipes(process, kept_bytes, on_cut=_nothing if to_the_end else stopped.set)
    family = None if to_the_end else talk.find_family()
    try:
        await talk.begin(stdin)
        in_time = await _within(timeout_s, stopped)
        if exited.is_set():
            await _within(_PIPES_GRACE_S, talk.over)
    finally:
        try:
            if family is not None:
                await family.end()
            elif not exited.is_set():
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
            await _within(_DEATH_GRACE_S, exited)
        finally:
            talk.end()
    stdout, stderr = talk.printed
    cut = stdout.cut or stderr.cut
    return CommandResult(process.returncode if in_time else None, bytes(stdout.kept), bytes(stderr.kept), cut)


def _nothing() -> None:
    pass


def _start(words: Sequence[str], cwd: Path, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        words,
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env=dict(env),
        start_new_session=True,
    )


def _watch(process: subprocess.Popen[bytes], *ended: asyncio.Event) -> None:
    """Sets the events when the process ends. A thread waits for it, which works on every POSIX system."""
    loop = asyncio.get_running_loop()

    def tell() -> None:
        for event in ended:
            event.set()

    def wait() -> None:
        process.wait()
        with suppress(RuntimeError):  # the loop ended first
            loop.call_soon_threadsafe(tell)

    threading.Thread(target=wait, name=f"hook-{process.pid}", daemon=True).start()


async def _within(seconds: float, event: asyncio.Event) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


class _Pipes:
    """The three pipes of a process: its input, and the start of its output."""

    def __init__(self, process: subprocess.Popen[bytes], kept_bytes: int, on_cut: Callable[[], None]) -> None:
        pipes = cast("tuple[IO[bytes], IO[bytes], IO[bytes]]", (process.stdin, process.stdout, process.stderr))
        self.over = asyncio.Event()
        self.printed = (
            _OutputBuffer(kept_bytes, self._lost, on_cut),
            _OutputBuffer(kept_bytes, self._lost, on_cut),
        )
        self._pid = process.pid
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

    def find_family(self) -> ProcessFamily:
        """Returns the processes that belong to the command now and later."""
        pipe = os.fstat(self._outputs[0].fileno())
        return ProcessFamily(self._pid, (pipe.st_dev, pipe.st_ino))

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

    def __init__(self, most: int, on_lost: Callable[[], None], on_cut: Callable[[], None]) -> None:
        self.kept = bytearray()
        self.cut = False
        self.lost = False
        self._most = most
        self._on_lost = on_lost
        self._on_cut = on_cut

    def data_received(self, data: bytes) -> None:
        room = self._most - len(self.kept)
        self.kept += data[:room]
        if len(data) > room:
            self.cut = True
            self._on_cut()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self._on_lost()
