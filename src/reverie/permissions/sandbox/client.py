"""Starts commands in the sandbox, for a program with an event loop.

One helper process serves the whole program. It starts with the first command and ends with the program.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import Lock

import reverie
from reverie.errors import ReverieError
from reverie.permissions.sandbox.order import SandboxOrder, SandboxReport
from reverie.quick import dataclass

_START = (
    "import sys; sys.path.insert(0, {place!r}); "
    "from reverie.permissions.sandbox.serving import main; main({fd}, {namespaces})"
)
_MOST_BYTES = 200_000


class SandboxFailed(ReverieError):
    """The command could not be started in the sandbox; it did not run."""


@dataclass(slots=True, eq=False)
class SandboxedCommand:
    """A command that runs. If this object's `end` is called, or the program ends, every process of it is killed."""

    _control: socket.socket
    _report: asyncio.Task[SandboxReport]

    async def wait(self) -> SandboxReport:
        """Waits for the end; no process of the command is left then."""
        return await asyncio.shield(self._report)

    async def end(self) -> SandboxReport:
        """Kills the command, and returns what it tried until then."""
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
        return await self.wait()


class SandboxHelper:
    """The helper process of this program."""

    def __init__(self, *, namespaces: bool) -> None:
        self._namespaces = namespaces
        self._requests: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._lock = Lock()

    async def start(self, order: SandboxOrder, output: int) -> SandboxedCommand:
        """Starts a command; `output` gets what it writes. Raises SandboxFailed if the helper does not run."""
        control = self.send(order, output)
        control.setblocking(False)
        return SandboxedCommand(control, asyncio.ensure_future(_read_report(control)))

    def send(self, order: SandboxOrder, output: int) -> socket.socket:
        """Starts a command; its report comes from the socket. If the socket is closed, the command is killed."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        written = os.memfd_create("order", os.MFD_CLOEXEC)
        try:
            os.write(written, order.encode())
            os.lseek(written, 0, os.SEEK_SET)
            self._send([written, output, theirs.fileno()])
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(written)
        return ours

    def _send(self, descriptors: list[int]) -> None:
        """Sends an order to the helper, which is started again if it has ended."""
        with self._lock:
            for _ in range(2):
                if self._requests is None or self._owner != os.getpid():
                    self._begin()
                assert self._requests is not None
                try:
                    socket.send_fds(self._requests, [b"r"], descriptors)
                    return
                except OSError:
                    self._requests.close()
                    self._requests = None
        raise SandboxFailed("The sandbox for commands could not be started: its helper process ended at once.")

    def _begin(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        place = str(Path(reverie.__file__).resolve().parents[1])
        words = [
            sys.executable,
            "-I",
            "-c",
            _START.format(place=place, fd=theirs.fileno(), namespaces=self._namespaces),
        ]
        try:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                cwd="/",
                env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise SandboxFailed(f"The sandbox for commands could not be started: {error.strerror}.") from error
        finally:
            theirs.close()
        self._requests, self._owner = ours, os.getpid()

    def close(self) -> None:
        """Ends the helper. Commands that run go on until they are ended."""
        with self._lock:
            if self._requests is not None and self._owner == os.getpid():
                self._requests.close()
                self._requests = None
            if self._process is not None and self._owner == os.getpid():
                self._process.wait()
                self._process = None


async def _read_report(control: socket.socket) -> SandboxReport:
    try:
        data = await asyncio.get_running_loop().sock_recv(control, _MOST_BYTES)
    except OSError as error:
        return SandboxReport(None, error=str(error))
    finally:
        control.close()
    return SandboxReport.decode(data) if data else SandboxReport(None, error="its keeper was ended")
