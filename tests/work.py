"""Measures work instead of time, so that what else the machine does changes no result.

`calls` counts; use it where Python does the work. `ratio` compares two pieces of work by their processor time: for
regular expressions and other long calls into C. `cpu_limit` ends what never ends; what is in order needs a twentieth
of the limit at most.
"""

from __future__ import annotations

import itertools
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


def calls(work: Callable[[], object]) -> int:
    """How many functions `work` calls, those of C among them, in this thread and those it starts."""
    numbers = itertools.count()

    def note(_frame: FrameType, event: str, _function: object) -> None:
        if event in ("call", "c_call"):
            next(numbers)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return next(numbers)


def ratio(work: Callable[[], object], measure: Callable[[], object], *, tries: int = 5) -> float:
    """How many times the processor time of `measure` `work` takes.

    They run in turn, and the least of each counts: a busy machine only adds. Choose the limit half-way (as a factor)
    between what is right and what the defect would take.
    """
    runs = [(_cpu(work), _cpu(measure)) for _ in range(tries)]
    return min(run[0] for run in runs) / max(min(run[1] for run in runs), 1e-6)


def _cpu(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


class TooMuchWork(BaseException):
    """No `Exception`: the program under test must not catch it."""


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Ends what runs inside after so much processor time of this process; regular expressions can be ended too."""
    ended = False

    def end(_number: int, _frame: FrameType | None) -> None:
        nonlocal ended
        ended = True
        raise TooMuchWork(f"more than {seconds} s of processor time")

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    if ended:
        raise TooMuchWork(f"more than {seconds} s of processor time")
