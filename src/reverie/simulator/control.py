"""The bodies of `/_sim/clock` and `/_sim/faults`, and the simulated clock, which tests can move ahead.

A wrong value is a 400 that names the field and its range and gives an example.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reverie.simulator.errors import invalid

MOST_TIMES = 10_000
MOST_WAIT_S = 86_400.0
_MESSAGE_CHARACTERS = 1_000
_CLOCK = '{"advance_s": 301}'
_FAULT = '{"status": 529, "times": 1, "retry_after": 2}'


@dataclass(frozen=True, slots=True)
class QueuedFault:
    """The error for the next `times` requests."""

    status: int
    times: int = 1
    message: str = ""
    retry_after: float | None = None


def step_of(body: Mapping[str, Any]) -> float:
    """The seconds by which the clock moves ahead."""
    _only(body, ("advance_s",), _CLOCK)
    return _number(body.get("advance_s"), "advance_s", MOST_STEP_S, _CLOCK)


def fault_of(body: Mapping[str, Any]) -> QueuedFault:
    """The errors for the next requests."""
    _only(body, ("status", "times", "message", "retry_after"), _FAULT)
    wait, message = body.get("retry_after"), body.get("message", "")
    if not isinstance(message, str) or len(message) > _MESSAGE_CHARACTERS:
        raise invalid(f"message: Input should be a string of at most {_MESSAGE_CHARACTERS:,} characters")
    return QueuedFault(
        _whole(body.get("status"), "status", 400, 599),
        _whole(body.get("times", 1), "times", 1, MOST_TIMES),
        message,
        None if wait is None else _number(wait, "retry_after", MOST_WAIT_S, _FAULT),
    )


def _only(body: Mapping[str, Any], known: tuple[str, ...], example: str) -> None:
    unknown = [key for key in body if key not in known]
    if unknown:
        raise invalid(f"{unknown[0][:80]}: unknown field; send {example}")


def _whole(value: object, name: str, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise invalid(f"{name}: Input should be a whole number from {least} to {most:,}; send {_FAULT}")
    return value


def _number(value: object, name: str, most: float, example: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= most:
        raise invalid(f"{name}: Input should be a number of seconds from 0 to {most:,.0f}; send {example}")
    return float(value)


MOST_STEP_S = 10 * 366 * 86_400.0
"""The longest step: ten years."""
LATEST = 253_402_300_799.0
"""The last second of the year 9999, the last year of most date libraries."""


class Clock:
    """`Clock()` only moves by `advance`; `Clock.running()` shows the time of day, and `advance` moves it ahead."""

    def __init__(self, start: float = 1_800_000_000.0, *, running: bool = False) -> None:
        self._follows_wall = running
        self._base = 0.0 if running else start

    @classmethod
    def running(cls) -> Clock:
        return cls(running=True)

    def now(self) -> float:
        """The seconds since the epoch."""
        return time.time() + self._base if self._follows_wall else self._base

    def advance(self, seconds: float) -> float:
        """Moves the clock ahead and returns the new time; refuses to go back or past the year 9999."""
        if not 0 <= seconds <= MOST_STEP_S:  # NaN is neither
            raise ValueError(f"a clock moves by 0 to {MOST_STEP_S:,.0f} seconds, not by {seconds}")
        if self.now() + seconds > LATEST:
            raise ValueError("a clock never goes past the year 9999")
        self._base += seconds
        return self.now()
