"""Words that mean a day, written out: against the day they were written on, or, by a mind that errs, against another.

A small set of English phrases, enough for scenarios to be played by minds that know the answers. Pure.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import date, timedelta
from typing import Final

_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_COUNTS: Final = {
    name: number
    for number, name in enumerate(("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"), 1)
}
_NUMBER: Final = rf"(?P<count>\d{{1,2}}|{'|'.join(_COUNTS)})"
_WEEKDAY: Final = rf"(?P<weekday>{'|'.join(_DAYS)})"
_BEFORE: Final = re.compile(r"\b(until|till|by|before|since|from|after)\s+\Z", re.IGNORECASE)


def _weekday(day: date, found: re.Match[str]) -> str:
    wanted = _DAYS.index(found["weekday"].lower())
    if found["which"].lower() == "last":
        return str(day - timedelta(days=(day.weekday() - wanted) % 7 or 7))
    return str(day + timedelta(days=(wanted - day.weekday()) % 7 or 7))


def _distance(day: date, found: re.Match[str]) -> str:
    count = _COUNTS.get(found["count"].lower()) or int(found["count"])
    days = count * (7 if found["unit"].lower().startswith("week") else 1)
    return str(day + timedelta(days=days if found["in"] else -days))


def _month_end(day: date, found: re.Match[str]) -> str:
    months = day.year * 12 + day.month - 1 + (found["which"].lower() == "next")
    year, month = divmod(months, 12)
    return str(date(year, month + 1, monthrange(year, month + 1)[1]))


def _week(day: date, found: re.Match[str]) -> str:
    start = day - timedelta(days=day.weekday())
    weeks = {"last": -1, "this": 0, "next": 1}[found["which"].lower()]
    return f"in the week of {start + timedelta(weeks=weeks)}"


def _yesterday(day: date, _found: re.Match[str]) -> str:
    return str(day - timedelta(days=1))


def _tomorrow(day: date, _found: re.Match[str]) -> str:
    return str(day + timedelta(days=1))


_PHRASES: Final[tuple[tuple[re.Pattern[str], Callable[[date, re.Match[str]], str]], ...]] = tuple(
    (re.compile(pattern, re.IGNORECASE), resolve)
    for pattern, resolve in (
        (r"\b(?:(?:at|on|by) )?(?:the )?end of (?P<which>this|the|next) month\b", _month_end),
        (rf"\b(?:on )?(?P<which>next|this|last) {_WEEKDAY}\b", _weekday),
        (rf"\b(?P<in>in) {_NUMBER} (?P<unit>days?|weeks?)\b", _distance),
        (rf"\b{_NUMBER} (?P<unit>days?|weeks?) (?P<in>(?!))?ago\b", _distance),
        (r"\b(?P<which>last|this|next) week\b", _week),
        (r"\byesterday\b", _yesterday),
        (r"\btomorrow\b", _tomorrow),
    )
)


def written_out(text: str, day: date) -> str:
    """The text with every phrase it knows as a date, counted from this day."""
    for pattern, resolve in _PHRASES:

        def put(found: re.Match[str], resolve: Callable[[date, re.Match[str]], str] = resolve) -> str:
            new = resolve(day, found)
            is_led = _BEFORE.search(found.string, 0, found.start()) is not None
            return new if is_led or not new[0].isdigit() else f"on {new}"

        text = pattern.sub(put, text)
    return text


def is_relative(text: str) -> bool:
    """Whether the text holds a phrase that means a day by the day it was written on."""
    return any(pattern.search(text) for pattern, _ in _PHRASES)
