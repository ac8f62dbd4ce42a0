"""Waits for what happens elsewhere. One limit for all: it ends a test that would hang, and says nothing of speed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LIMIT_S = 120.0
"""Far longer than anything takes on a busy machine, and shorter than what pytest allows a test."""
FOREVER_S = 1_000
"""What must not be waited for takes so long in a test: whoever waits for it runs into the limit."""


def wait_until(condition: Callable[[], T]) -> T:
    """Returns what `condition` returns as soon as that is true."""
    until = time.monotonic() + LIMIT_S
    while not (value := condition()):
        assert time.monotonic() < until, f"waited {LIMIT_S:.0f} s in vain; it was {value!r}"
        time.sleep(0.01)
    return value


async def until(condition: Callable[[], T]) -> T:
    """As `wait_until`, beside the other tasks of the loop."""
    ends = time.monotonic() + LIMIT_S
    while not (value := condition()):
        assert time.monotonic() < ends, f"waited {LIMIT_S:.0f} s in vain; it was {value!r}"
        await asyncio.sleep(0.005)
    return value
