"""Times that come from outside (a file's mtime, a time stamp in a transcript, a clock that jumped) made harmless.

A file can say that it was changed in the year 2400, before 1970 or at a nanosecond no database holds, and a record can
say anything. Here every such time becomes one that can be shown, sorted and subtracted. Nothing here raises.
`tests/test_architecture.py` forbids other ways of turning file times and time stamps into dates.
"""

from __future__ import annotations

import math
import os
import time
from datetime import UTC, date, datetime
from typing import Final

# Two days inside what `datetime` can hold: a change of time zone then never leaves it.
FIRST: Final = datetime(1, 1, 3, tzinfo=UTC)
LAST: Final = datetime(9999, 12, 29, tzinfo=UTC)
_FIRST_S: Final = FIRST.timestamp()
_LAST_S: Final = LAST.timestamp()
_LARGEST_NS: Final = 2**63 - 1
SKEW_S: Final = 300.0
"""Clocks of two machines that share a folder differ a little: so much in the future is still now."""


def to_datetime(seconds: float) -> datetime:
    """The time so many seconds after 1970, in UTC; what no calendar holds becomes the first or the last day it does."""
    if math.isnan(seconds):
        return datetime.fromtimestamp(0, UTC)
    return datetime.fromtimestamp(min(max(seconds, _FIRST_S), _LAST_S), UTC)


def iso(seconds: float) -> str:
    """The same as text, to the second: `2026-03-01T12:00:00+00:00`."""
    return to_datetime(seconds).isoformat(timespec="seconds")


def local_minutes(seconds: float) -> str:
    """The same in the zone of this machine, to the minute: `2026-03-01 13:00`."""
    return f"{to_datetime(seconds).astimezone():%Y-%m-%d %H:%M}"


def parse_time(text: object, *, needs_zone: bool = False) -> datetime | None:
    """The time that a time stamp (ISO 8601) says; one without a zone is in UTC. None if it says none.

    With `needs_zone`, one without a zone is none.
    """
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text.strip())
        if found.tzinfo is None:
            if needs_zone:
                return None
            found = found.replace(tzinfo=UTC)
        return min(max(found, FIRST), LAST)
    except (ValueError, OverflowError):
        return None


def local_day(text: object) -> date | None:
    """The day of a time stamp in the zone of this machine; None if it says none, or one that nobody recorded on.

    What is reckoned from such a day (`in two weeks`) then always is a date.
    """
    found = parse_time(text)
    return found.astimezone().date() if found is not None and 1970 < found.year < 2200 else None


def past_time(seconds: float | None, now: float) -> float | None:
    """A time that something is said to have happened at; None if that is in the future, so that it cannot have.

    A wrong clock, or a file from elsewhere, then delays nothing for decades. A few minutes ahead count as now.
    """
    if seconds is None or math.isnan(seconds) or seconds > now + SKEW_S:
        return None
    return min(seconds, now)


def modified_time(status: os.stat_result) -> float:
    """When a file was last changed, in seconds. A time to come tells nothing: then it is when that time was set."""
    now = time.time()
    found = past_time(status.st_mtime, now)
    return min(status.st_ctime, now) if found is None else found


def change_ns(status: os.stat_result) -> int:
    """When a file was last changed, in nanoseconds, within what 64 bits hold: SQLite takes no larger numbers."""
    return min(max(status.st_mtime_ns, -_LARGEST_NS), _LARGEST_NS)
