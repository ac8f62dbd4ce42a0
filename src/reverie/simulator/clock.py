"""The simulator's clock: seconds that stand still until moved, or follow the wall clock with an offset.

Cache lifetimes are judged by it, so a test can let an hour pass in no time. Never sleeps.
"""

from __future__ import annotations

import time

MOST_STEP_S = 10 * 366 * 86_400.0
"""The longest step: ten years."""
LATEST = 253_402_300_799.0
"""The last second of the year 9999: what every date library can still show."""


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
        """Moves the clock ahead and returns the new time. A clock never goes back, and never past the year 9999."""
        if not 0 <= seconds <= MOST_STEP_S:  # NaN is neither
            raise ValueError(f"a clock moves by 0 to {MOST_STEP_S:,.0f} seconds, not by {seconds}")
        if self.now() + seconds > LATEST:
            raise ValueError("a clock never goes past the year 9999")
        self._base += seconds
        return self.now()
