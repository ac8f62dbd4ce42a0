"""How old a memory is, in words, and the note that an old one is a picture of its time.

Whole periods of 24 hours since the file was changed; a time in the future counts as today. Pure: the caller says when
now is.
"""

from __future__ import annotations

DAY_S = 86_400
NOTE_FROM_DAYS = 2


def age_days(modified: float, now: float) -> int:
    """Whole 24-hour periods between the two, both in seconds since 1970."""
    return max(0, int((now - modified) // DAY_S))


def age_words(modified: float, now: float) -> str:
    """`today`, `yesterday` or `N days ago`."""
    days = age_days(modified, now)
    return "today" if days == 0 else "yesterday" if days == 1 else f"{days} days ago"


def age_note(modified: float, now: float) -> str:
    """What a reader must be told with a memory that is two days old or older; empty for a fresh one."""
    days = age_days(modified, now)
    if days < NOTE_FROM_DAYS:
        return ""
    return (
        f"This memory was last changed {days} days ago. It shows how things were then: before you rely on what it says "
        "about code, files or the state of anything, check that against what is there now."
    )
