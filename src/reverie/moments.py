"""Makes times from outside (file times, time stamps, clocks that jumped) harmless.

Every time becomes one that can be shown, sorted and subtracted. Nothing raises. The architecture test checks its use.
"""

from __future__ import annotations

import math
import os
import time
from datetime import UTC, date, datetime
from typing import Final

# Two days inside the range of `datetime`: a change of time zone then stays inside.
FIRST: Final = datetime(1, 1, 3, tzinfo=UTC)
LAST: Final = datetime(9999, 12, 29, tzinfo=UTC)
_FIRST_S: Final = FIRST.timestamp()
_LAST_S: Final = LAST.timestamp()
_LARGEST_NS: Final = 2**63 - 1
SKEW_S: Final = 300.0  # clocks of two machines differ a little: this far in the future still counts as now


def to_datetime(seconds: float) -> datetime:
    """Returns the time in UTC of `seconds` after 1970, limited to the range of `datetime`."""
    if math.isnan(seconds):
        return datetime.fromtimestamp(0, UTC)
    return datetime.fromtimestamp(min(max(seconds, _FIRST_S), _LAST_S), UTC)


def iso(seconds: float) -> str:
    """Returns the same as text, to the second: `2026-03-01T12:00:00+00:00`."""
    return to_datetime(seconds).isoformat(timespec="seconds")


def local_minutes(seconds: float) -> str:
    """Returns the same in the local time zone, to the minute: `2026-03-01 13:00`."""
    return f"{to_datetime(seconds).astimezone():%Y-%m-%d %H:%M}"


def parse_time(text: object, *, needs_zone: bool = False) -> datetime | None:
    """Parses an ISO 8601 time stamp; without a zone it is UTC, or None with `needs_zone`. None if it is not valid."""
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
    """Returns the local day of a time stamp; None if it is not valid, or too far away for calculations with dates."""
    found = parse_time(text)
    return found.astimezone().date() if found is not None and 1970 < found.year < 2200 else None


def past_time(seconds: float | None, now: float) -> float | None:
    """Returns a time in the past; None if it is in the future, which must be wrong. A few minutes ahead are now."""
    if seconds is None or math.isnan(seconds) or seconds > now + SKEW_S:
        return None
    return min(seconds, now)


def modified_time(status: os.stat_result) -> float:
    """When a file was last changed, in seconds. If its time is in the future, when that time was set."""
    now = time.time()
    found = past_time(status.st_mtime, now)
    return min(status.st_ctime, now) if found is None else found


def change_ns(status: os.stat_result) -> int:
    """When a file was last changed, in nanoseconds, limited to the 64 bits of SQLite."""
    return min(max(status.st_mtime_ns, -_LARGEST_NS), _LARGEST_NS)
