"""What `/_sim/clock` and `/_sim/faults` take: a step of the clock, or errors for the next requests. Bounded numbers.

A wrong value is a 400 that names the field, what it may be and an example. Nothing here changes a simulator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reverie.simulator.clock import MOST_STEP_S
from reverie.simulator.errors import invalid

MOST_TIMES = 10_000
MOST_WAIT_S = 86_400.0
_MESSAGE_CHARACTERS = 1_000
_CLOCK = '{"advance_s": 301}'
_FAULT = '{"status": 529, "times": 1, "retry_after": 2}'


@dataclass(frozen=True, slots=True)
class Strike:
    """The answer to the next `times` requests instead of a message."""

    status: int
    times: int = 1
    message: str = ""
    retry_after: float | None = None


def step_of(body: Mapping[str, Any]) -> float:
    """Seconds the clock moves ahead."""
    _only(body, ("advance_s",), _CLOCK)
    return _number(body.get("advance_s"), "advance_s", MOST_STEP_S, _CLOCK)


def strike_of(body: Mapping[str, Any]) -> Strike:
    """The errors to answer with."""
    _only(body, ("status", "times", "message", "retry_after"), _FAULT)
    wait, message = body.get("retry_after"), body.get("message", "")
    if not isinstance(message, str) or len(message) > _MESSAGE_CHARACTERS:
        raise invalid(f"message: Input should be a string of at most {_MESSAGE_CHARACTERS:,} characters")
    return Strike(
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
