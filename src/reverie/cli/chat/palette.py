"""What both screens search: commands, sessions to resume, and files of the project."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from reverie.cli.chat.input import PickRow
from reverie.cli.output import format_age, format_size, one_line

T = TypeVar("T")


def score(typed: str, text: str) -> float | None:
    """How well a text fits what was typed: its letters in this order. Lower is better; None if it does not fit.

    A whole match counts more than scattered letters, and letters at the beginning of a word more than others.
    """
    small = text.lower()
    wanted = typed.lower()
    found = small.find(wanted)
    if found >= 0:
        starts = found == 0 or not small[found - 1].isalnum()
        return found / 100 + (0 if starts else 5) + len(text) / 1_000
    at, gaps = -1, 0
    for char in wanted:
        if char == " ":
            continue
        next_ = small.find(char, at + 1)
        if next_ < 0:
            return None
        gaps += next_ - at - 1 if at >= 0 else 0
        gaps -= next_ > 0 and not small[next_ - 1].isalnum() and at >= 0
        at = next_
    return 20 + gaps + len(text) / 1_000


def rank(typed: str, given: Iterable[T], text: Callable[[T], str]) -> list[T]:
    """Those that fit what was typed, the best first; all in their order if nothing was typed."""
    if not typed.strip():
        return list(given)
    scored = [(found, at, one) for at, one in enumerate(given) if (found := score(typed, text(one))) is not None]
    return [one for _, _, one in sorted(scored, key=lambda each: each[:2])]


def session_rows(project: Path, without: str = "") -> list[PickRow]:
    """The sessions of a folder for a picker, the last used first: title, age and size."""
    from reverie.storage.transcript.sessions import list_sessions

    found = (info for info in list_sessions(project) if info.id != without)
    return [
        PickRow(info.id, one_line(info.title) or "(untitled)", f"{format_age(info.said)} · {format_size(info.size)}")
        for info in found
    ]
