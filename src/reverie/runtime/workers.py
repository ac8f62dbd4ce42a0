"""Several processes that serve one listening socket. One that ends is started again; all end with the first process.

They share nothing but files: the book and the transcripts. A request that a killed worker had is lost for the client as
a closed connection, which clients retry; the decisions about it are in the transcript.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from types import FrameType

from reverie.errors import UserError

_NEEDED = ("httpx", "uvicorn", "starlette.applications", "uvicorn.protocols.http.auto", "uvicorn.lifespan.on")
"""Loaded once for all workers, so that a new one serves at once."""
_YOUNG_S = 2.0
_MOST_YOUNG = 10
"""How many workers in a row may end as soon as they begin."""
_STOP_S = 10.0


class _Stop(Exception):
    """A signal says that all should end."""


def supervise(count: int, work: Callable[[], None]) -> None:
    """Runs `work` in `count` processes until a signal comes; starts each one that ends again. Call it before there are
    threads."""
    for name in _NEEDED:
        import_module(name)
    alive, guard = os.pipe()
    running = dict[int, float]()
    young = 0
    before = [(one, signal.signal(one, _stop)) for one in (signal.SIGTERM, signal.SIGINT)]
    try:
        while True:
            while len(running) < count:
                running[_start(work, alive, guard)] = time.monotonic()
            pid, _ = os.waitpid(-1, 0)
            began = running.pop(pid, None)
            if began is None:
                continue
            young = young + 1 if time.monotonic() - began < _YOUNG_S else 0
            if young >= _MOST_YOUNG:
                raise UserError("The workers end as soon as they begin: try it with --workers 1.")
            time.sleep(min(1.0, 0.02 * 2**young) if young > 1 else 0)
    except _Stop:
        pass
    finally:
        for one, _ in before:
            signal.signal(one, signal.SIG_IGN)
        _end(list(running))
        for one, handler in before:
            signal.signal(one, handler)
        os.close(alive)
        os.close(guard)


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise _Stop


def _start(work: Callable[[], None], alive: int, guard: int) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal: the first process ends the others
        os.close(guard)
        threading.Thread(target=_end_with_parent, args=(alive,), daemon=True).start()
        work()
        code = 0
    finally:
        os._exit(code)


def _end_with_parent(alive: int) -> None:
    """The first process has the other end of this pipe. When it ends, also by a kill, there is nothing more to read."""
    with suppress(OSError):
        os.read(alive, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def _end(workers: list[int]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in workers:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        until = time.monotonic() + _STOP_S
        while workers and time.monotonic() < until:
            for pid in list(workers):
                with suppress(ChildProcessError):
                    if os.waitpid(pid, os.WNOHANG)[0] == 0:
                        continue
                workers.remove(pid)
            time.sleep(0.02)
