"""The age of a memory in words, counted in periods of 24 hours. A time in the future counts as today. Pure."""

from __future__ import annotations

DAY_S = 86_400
NOTE_FROM_DAYS = 2


def age_days(modified: float, now: float) -> int:
    """Whole 24-hour periods between two times in seconds since 1970."""
    return max(0, int((now - modified) // DAY_S))


def age_words(modified: float, now: float) -> str:
    """`today`, `yesterday` or `N days ago`."""
    days = age_days(modified, now)
    return "today" if days == 0 else "yesterday" if days == 1 else f"{days} days ago"


def age_note(modified: float, now: float) -> str:
    """The warning that a memory is two days old or older; empty for a newer one."""
    days = age_days(modified, now)
    if days < NOTE_FROM_DAYS:
        return ""
    return (
        f"This memory was last changed {days} days ago. It shows how things were then: before you rely on what it says "
        "about code, files or the state of anything, check that against what is there now."
    )
