"""Other users of this machine, for tests that run as root on Linux: a process that is another user, and still reads
the files of the test."""

from __future__ import annotations

import ctypes
import os
import sys
import traceback
from collections.abc import Callable

import pytest

needs_root = pytest.mark.skipif(
    sys.platform != "linux" or os.getuid() != 0, reason="only root on Linux can become another user"
)
_KEEP_CAPABILITIES = 8
_READS_ALL = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: Python itself may be below the folder of root."""


def start_as(user: int, work: Callable[[], object]) -> int:
    """Does this work in a process of a user; returns the id of the process."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        _become(user)
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def run_as(user: int, work: Callable[[], object]) -> None:
    """Does this work as a user, and waits for its end."""
    _, status = os.waitpid(start_as(user, work), 0)
    assert status == 0


def _become(user: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(_KEEP_CAPABILITIES, 1, 0, 0, 0) == 0
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    head = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)(_READS_ALL, _READS_ALL, 0, 0, 0, 0)
    assert libc.capset(head, sets) == 0
