"""The simulator's clock: seconds that stand still until moved, or follow the wall clock with an offset.

Cache lifetimes are judged by it, so a test can let an hour pass in no time. Never sleeps.
"""

from __future__ import annotations

import time


class Clock:
    """`Clock()` stands still until `advance`; `Clock.running()` follows the wall clock and can be moved ahead too."""

    def __init__(self, start: float = 1_800_000_000.0, *, running: bool = False) -> None:
        self._follows_wall = running
        self._base = 0.0 if running else start

    @classmethod
    def running(cls) -> Clock:
        """A clock that shows the time of day."""
        return cls(running=True)

    def now(self) -> float:
        """Seconds since the epoch, as this clock sees it."""
        return time.time() + self._base if self._follows_wall else self._base

    def advance(self, seconds: float) -> float:
        """Moves the clock ahead and returns the new time. A clock never goes back."""
        if seconds < 0:
            raise ValueError(f"a clock never goes back: {seconds} seconds")
        self._base += seconds
        return self.now()
