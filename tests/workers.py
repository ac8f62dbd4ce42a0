"""Starts the workers of pytest-xdist warm: as forks of the process that was started, which has imported the tests.

Each worker would import the tests, the program and the libraries again. Where a process cannot be forked safely, and
for a worker that replaces one that crashed, xdist starts a new interpreter as usual.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import random
import signal
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from execnet import gateway_io
from execnet.gateway_base import Popen2IO

from tests import warm

_LIBRARIES = (
    *("anthropic", "openai", "mcp.client.stdio", "mcp.server.lowlevel", "acp", "starlette", "uvicorn", "jinja2"),
    "langchain.agents.middleware",
)
"""What tests import later, in functions: most workers need most of them."""


class _Forked(Popen2IO):
    """The two pipes to a forked worker; what execnet uses of a process that it starts."""

    def __init__(self, pid: int, pipes: tuple[int, int], execmodel: Any) -> None:
        self.pid = pid
        super().__init__(os.fdopen(pipes[0], "wb"), os.fdopen(pipes[1], "rb"), execmodel=execmodel)

    def wait(self) -> int | None:
        with suppress(ChildProcessError):
            return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return None

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


def fork(config: pytest.Config, paths: Iterable[Path]) -> None:
    """Imports the tests in these files, and forks the workers, which wait until xdist wants them."""
    gc.disable()  # none of this is thrown away
    _import(config.rootpath, paths)
    gc.enable()
    if threading.active_count() > 1:
        return
    warm.load()
    waiting: list[tuple[int, tuple[int, int]]] = []
    for _ in config.getoption("tx"):
        waiting.append(_fork(end for _, pipes in waiting for end in pipes))
    start = gateway_io.create_io

    def create_io(spec: Any, execmodel: Any) -> Any:
        if not (spec.popen and waiting) or spec.python or spec.dont_write_bytecode:
            return start(spec, execmodel)
        return _Forked(*waiting.pop(0), execmodel)

    gateway_io.create_io = create_io


def _import(root: Path, paths: Iterable[Path]) -> None:
    for path in paths:
        if (path.parent / "__init__.py").exists():
            with suppress(Exception, pytest.skip.Exception):  # a worker imports it again, and tells why
                importlib.import_module(".".join(path.relative_to(root).with_suffix("").parts))
    for name in _LIBRARIES:
        with suppress(ImportError):
            importlib.import_module(name)


def _fork(others: Iterable[int]) -> tuple[int, tuple[int, int]]:
    """A process that waits for an order on its input, as the interpreter does that xdist starts."""
    given, told = os.pipe(), os.pipe()
    pid = os.fork()
    if pid:
        os.close(given[0])
        os.close(told[1])
        return pid, (given[1], told[0])
    for end in (*others, given[1], told[0]):
        os.close(end)
    for number, end in enumerate((given[0], told[1])):
        os.dup2(end, number)
        os.close(end)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    atexit._clear()
    random.seed()
    code = 1
    try:
        code = warm.to_the_end(lambda: exec(eval(sys.stdin.readline() or "''"), {"__name__": "__main__"}))
    finally:
        os._exit(code)  # whatever happens: this process never returns to what its parent was doing
