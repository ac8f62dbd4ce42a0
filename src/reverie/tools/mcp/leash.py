"""Ends the MCP servers of a session when the session dies, even by kill -9.

`python -m reverie.tools.mcp.leash FD MARK` is a process beside the session. FD is the reading end of a pipe that only
the session holds open; lines on it name process groups, `-` before one that has ended. At its end, these groups and all
processes with the variable MARK are killed: some leave their group, and some start without our variables.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import uuid
from contextlib import suppress
from itertools import count

from reverie.runtime.process_family import end_marked

VARIABLE = "REVERIE_MCP_OWNER"


class Leash:
    """The session's end of the pipe. The process starts with the first server."""

    def __init__(self) -> None:
        self.mark = uuid.uuid4().hex
        self.numbers = count(1)
        self._lock = threading.Lock()
        self._writing = -1
        self._process: subprocess.Popen[bytes] | None = None

    def take(self) -> None:
        """Starts the process, if it does not run; call it before a server starts. Blocks for some milliseconds."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._start()

    def _start(self) -> None:
        self._close()
        reading, self._writing = os.pipe()
        try:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-E", "-P", "-m", "reverie.tools.mcp.leash"),
                    *(str(reading), f"{VARIABLE}={self.mark}"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(reading,),
                start_new_session=True,
                cwd="/",
            )
        finally:
            os.close(reading)

    def tell(self, group: int, *, ended: bool = False) -> None:
        """Names the process group of a server."""
        with suppress(OSError):
            os.write(self._writing, f"{'-' if ended else ''}{group}\n".encode())

    def release(self) -> None:
        """Lets the process end what is left, and waits for it. Blocks for a moment."""
        self._close()
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=5)
            self._process = None

    def _close(self) -> None:
        if self._writing >= 0:
            os.close(self._writing)
        self._writing = -1


def main() -> None:
    fd, mark = int(sys.argv[1]), sys.argv[2].encode()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # only the end of the session counts
    groups, rest = set[int](), b""
    while piece := os.read(fd, 4_096):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            group = int(line.strip(b"-"))
            groups = groups - {group} if line.startswith(b"-") else groups | {group}
    for group in groups:
        with suppress(OSError):
            os.killpg(group, signal.SIGKILL)
    end_marked(mark)


if __name__ == "__main__":
    main()
