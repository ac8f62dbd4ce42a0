"""Keeps the memory of a server that runs for weeks flat.

Closed conversations refer to themselves, so Python frees them only when it looks for garbage; and the allocator of the
system keeps what Python frees, in pieces. After every few megabytes of requests, both are made to let go.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Final

_EVERY: Final = 4_000_000
"""Bytes of requests after which memory is given back. It takes about ten milliseconds, after the answers."""


class Upkeep:
    """Gives memory back in proportion to the work."""

    def __init__(self, every: int = _EVERY) -> None:
        self._every = every
        self._served = 0
        self._lock = Lock()
        self._trim = _find_trim()

    def served(self, size: int) -> None:
        """Counts a request of this many bytes that is answered and billed. Call it in a thread."""
        with self._lock:
            self._served += size
            if self._served < self._every:
                return
            self._served = 0
        gc.collect()
        self._trim(0)


def _find_trim() -> Callable[[int], object]:
    """The function of the system that gives free memory back, or one that does nothing where there is none."""
    with suppress(OSError, AttributeError, TypeError):
        return ctypes.CDLL(None).malloc_trim
    return lambda _pad: None
