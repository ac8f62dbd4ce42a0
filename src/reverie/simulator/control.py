"""The bodies of `/_sim/clock`, `/_sim/faults` and `/_sim/profile`, and the simulated clock, which tests can move ahead.

A wrong value is a 400 that names the field and its range and gives an example.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast

from reverie.quick import dataclass
from reverie.simulator.errors import invalid

MOST_TIMES = 10_000
MOST_WAIT_S = 86_400.0
MOST_LATENCY_S = 600.0
_MESSAGE_CHARACTERS = 1_000
_CLOCK = '{"advance_s": 301}'
_FAULT = '{"status": 529, "times": 1, "retry_after": 2}'
_PROFILE = '{"/v1/messages": {"wait_s": 0.5, "pace_s": 0.02, "status": 529, "every": 10}}'
ROUTES = (
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/responses/compact",
    "/v1/models",
)
"""The routes that can have faults and a profile of their own."""
EVERY_ROUTE = "*"


@dataclass(frozen=True, slots=True)
class QueuedFault:
    """The error for the next `times` requests, of one route or of all."""

    status: int
    times: int = 1
    message: str = ""
    retry_after: float | None = None
    route: str = EVERY_ROUTE


@dataclass(frozen=True, slots=True)
class RouteProfile:
    """How a route behaves: seconds before an answer and before each piece of a stream, and each n-th request fails."""

    wait_s: float = 0.0
    pace_s: float = 0.0
    status: int = 0
    every: int = 1
    message: str = ""
    retry_after: float | None = None


def step_of(body: Mapping[str, Any]) -> float:
    """The seconds by which the clock moves ahead."""
    _only(body, ("advance_s",), _CLOCK)
    return _number(body.get("advance_s"), "advance_s", MOST_STEP_S, _CLOCK)


def fault_of(body: Mapping[str, Any]) -> QueuedFault:
    """The errors for the next requests."""
    _only(body, ("status", "times", "message", "retry_after", "route"), _FAULT)
    route = body.get("route", EVERY_ROUTE)
    _check_route(route, _FAULT)
    return QueuedFault(
        _whole(body.get("status"), "status", 400, 599, _FAULT),
        _whole(body.get("times", 1), "times", 1, MOST_TIMES, _FAULT),
        *_shown(body, _FAULT),
        route,
    )


def profile_of(body: Mapping[str, Any]) -> dict[str, RouteProfile]:
    """The profiles of routes, by route; `*` is for the routes that have none."""
    return {route: _route_profile(route, given) for route, given in body.items()}


def _route_profile(route: str, given: object) -> RouteProfile:
    _check_route(route, _PROFILE)
    if not isinstance(given, Mapping):
        raise invalid(f"{route}: Input should be an object; send {_PROFILE}")
    body = cast("Mapping[str, Any]", given)
    _only(body, tuple(each.name for each in fields(RouteProfile)), _PROFILE)
    status = body.get("status", 0)
    return RouteProfile(
        _number(body.get("wait_s", 0), "wait_s", MOST_LATENCY_S, _PROFILE),
        _number(body.get("pace_s", 0), "pace_s", MOST_LATENCY_S, _PROFILE),
        0 if status == 0 else _whole(status, "status", 400, 599, _PROFILE),
        _whole(body.get("every", 1), "every", 1, MOST_TIMES, _PROFILE),
        *_shown(body, _PROFILE),
    )


def _shown(body: Mapping[str, Any], example: str) -> tuple[str, float | None]:
    """The message of an error, and its `retry_after`."""
    wait, message = body.get("retry_after"), body.get("message", "")
    if not isinstance(message, str) or len(message) > _MESSAGE_CHARACTERS:
        raise invalid(f"message: Input should be a string of at most {_MESSAGE_CHARACTERS:,} characters")
    return message, None if wait is None else _number(wait, "retry_after", MOST_WAIT_S, example)


def _check_route(route: object, example: str) -> None:
    if route not in (*ROUTES, EVERY_ROUTE):
        known = ", ".join((*ROUTES, EVERY_ROUTE))
        raise invalid(f"{str(route)[:80]}: not a route; the routes are {known}; send {example}")


def _only(body: Mapping[str, Any], known: tuple[str, ...], example: str) -> None:
    unknown = [key for key in body if key not in known]
    if unknown:
        raise invalid(f"{unknown[0][:80]}: unknown field; send {example}")


def _whole(value: object, name: str, least: int, most: int, example: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise invalid(f"{name}: Input should be a whole number from {least} to {most:,}; send {example}")
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
