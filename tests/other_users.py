"""Processes of other users of the machine, for tests that run as root."""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
OWNER, STRANGER = 61_001, 61_002
_SET_DUMPABLE = 4
"".encode("idna")  # loaded now: a child that opens a connection could not read it any more
needs_root = pytest.mark.skipif(
    sys.platform != "linux" or os.getuid() != 0, reason="only root on Linux can become another user"
)


def become(user: int) -> None:
    """This process belongs to the user from now on."""
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 1)  # as a process is that began as this user: it can be looked at


def run_as(user: int, work: Callable[[], T]) -> T:
    """What `work` returns in a process of this user. Modules must be loaded already: Python itself may be private."""
    with forked(lambda send: (become(user), send(work()))) as (_pid, answer):
        return answer


@contextmanager
def forked(work: Callable[[Callable[[Any], None]], Any]) -> Generator[tuple[int, Any]]:
    """A child process with `work`, which sends one value; yields the process and the value, and kills it at the end."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reading)
            with os.fdopen(writing, "wb") as file:
                work(lambda value: (pickle.dump(value, file), file.flush()))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as file:
            yield child, pickle.load(file)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def folder_of(user: int) -> Path:
    """A new private folder of this user, which no folder of root hides."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    os.chown(folder, user, user)
    return folder


def give(folder: Path, user: int) -> None:
    """The folder and everything in it belongs to the user."""
    for root, folders, names in os.walk(folder):
        for name in (".", *folders, *names):
            os.chown(Path(root, name), user, user, follow_symlinks=False)
