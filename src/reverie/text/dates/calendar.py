"""Date arithmetic: weekdays, weeks, months and quarters from a given day. Pure, without language."""

from __future__ import annotations

from calendar import monthrange
from datetime import date, timedelta
from typing import Literal, TypeAlias

from reverie.quick import dataclass

Grain: TypeAlias = Literal["day", "week", "month", "quarter", "year"]

_LONG_AGO = 120  # days: a date without a year that lies further back is next year's


@dataclass(frozen=True, slots=True)
class Moment:
    """A day, or the first day of a longer period."""

    day: date
    grain: Grain = "day"

    @property
    def iso(self) -> str:
        """`2026-03-05`, `2026-03`, `2026`; a quarter is `Q3 2026`, a week is its Monday."""
        match self.grain:
            case "day" | "week":
                return self.day.isoformat()
            case "month":
                return f"{self.day:%Y-%m}"
            case "quarter":
                return f"Q{(self.day.month + 2) // 3} {self.day.year}"
            case "year":
                return f"{self.day.year}"


def number_words(words: str) -> dict[str, int]:
    """Words for the numbers from one on, separated by commas; spaces separate words for the same number."""
    return {word: number for number, one in enumerate(words.split(","), 1) for word in one.split()}


def exact_day(year: int, month: int, day: int) -> Moment | None:
    """That day, if it exists."""
    try:
        return Moment(date(year, month, day))
    except ValueError:
        return None


def period(today: date, grain: Grain, ahead: int, *, is_end: bool = False) -> Moment:
    """This week, month, quarter or year, or one `ahead` of it; `is_end`: its last day, for a week its Friday."""
    match grain:
        case "day":
            return Moment(add_days(today, ahead))
        case "week":
            return Moment(weekday_in(today, 4, ahead)) if is_end else Moment(weekday_in(today, 0, ahead), grain)
        case "month":
            first, months = add_months(today.replace(day=1), ahead), 1
        case "quarter":
            first, months = quarter(today, ahead=ahead), 3
        case "year":
            first, months = date(today.year + ahead, 1, 1), 12
    return Moment(add_days(add_months(first, months), -1)) if is_end else Moment(first, grain)


def add_days(today: date, days: int) -> date:
    return today + timedelta(days=days)


def add_months(today: date, months: int) -> date:
    """The same day of another month, or its last day if it is shorter."""
    year, month = divmod(today.year * 12 + today.month - 1 + months, 12)
    return date(year, month + 1, min(today.day, monthrange(year, month + 1)[1]))


def add_units(today: date, count: int, grain: Grain) -> date:
    """That many days, weeks, months, quarters or years later; earlier if the count is negative."""
    if grain in ("day", "week"):
        return add_days(today, count * (7 if grain == "week" else 1))
    return add_months(today, count * {"month": 1, "quarter": 3, "year": 12}[grain])


def weekday_in(today: date, weekday: int, weeks: int) -> date:
    """The weekday (Monday is 0) in this week or that many weeks later."""
    return today + timedelta(days=7 * weeks - today.weekday() + weekday)


def weekday_ahead(today: date, weekday: int, *, today_counts: bool = False) -> date:
    """The next day of that name."""
    ahead = (weekday - today.weekday()) % 7
    return today + timedelta(days=ahead or (0 if today_counts else 7))


def weekday_back(today: date, weekday: int) -> date:
    """The last day of that name, before today."""
    return today - timedelta(days=(today.weekday() - weekday) % 7 or 7)


def in_year(today: date, month: int, day: int, *, past: bool, ahead: bool = False) -> Moment | None:
    """That day in the year people mean without naming it: the coming one, or the last one if `past`; `ahead`: never in
    the past."""
    if not 1 <= month <= 12 or not 1 <= day <= monthrange(2028, month)[1]:
        return None
    years = [today.year, today.year - 1] if past else [today.year, today.year + 1]
    found = [date(year, month, min(day, monthrange(year, month)[1])) for year in years]
    here = found[0]
    if past:
        return Moment(here if here <= add_days(today, _LONG_AGO) else found[1])
    return Moment(here if here >= (today if ahead else add_days(today, -_LONG_AGO)) else found[1])


def day_of_month(today: date, day: int, *, past: bool) -> Moment | None:
    """“The 26th”: of this month if it is still ahead, else of the next month that has it; backwards if `past`."""
    if not 1 <= day <= 31:
        return None
    for step in range(4):
        first = add_months(today.replace(day=1), -step if past else step)
        if day > monthrange(first.year, first.month)[1]:
            continue
        found = first.replace(day=day)
        if (found <= today) if past else (found >= today):
            return Moment(found)
    return None


def quarter(today: date, number: int | None = None, *, ahead: int = 0, past: bool = False) -> date:
    """The first day of the numbered quarter (this year's, unless it is over), or of the present one plus `ahead`."""
    if number is None:
        return add_months(date(today.year, 3 * ((today.month - 1) // 3) + 1, 1), 3 * ahead)
    first = date(today.year, 3 * number - 2, 1)
    over = add_months(first, 3) <= today
    if past:
        return first if first <= today else first.replace(year=today.year - 1)
    return first.replace(year=today.year + 1) if over else first
