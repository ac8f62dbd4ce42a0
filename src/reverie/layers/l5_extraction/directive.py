"""What the fork is told: which messages are new, that only these are a source, and what is in memory already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path

from reverie.layers.l5_extraction.span import Span
from reverie.memory.scan import ScanEntry, manifest
from reverie.prompts import render
from reverie.text.cutting import shorten

_PACKAGE = "reverie.layers.l5_extraction"
_OPENING_WORDS = 60


def directive(span: Span, memories: Iterable[ScanEntry], directory: Path, *, rounds: int, today: date) -> str:
    """The whole directive. `today` stands in where the messages carry no dates of their own."""
    listed = manifest(memories)
    count = span.messages
    values = {
        "count": "The last message" if count == 1 else f"The last {count} messages",
        "are": "is" if count == 1 else "are",
        "directory": str(directory),
        "dates": _dates(span.days() or [(today, "")]),
        "rounds": str(rounds),
        "manifest": listed or "(none yet)",
    }
    return render(_PACKAGE, "directive.md", values)


def _dates(days: Sequence[tuple[date, str]]) -> str:
    if len(days) == 1:
        return f"The user wrote them on {_named(days[0][0])}."
    lines = [f"- from “{shorten(words, _OPENING_WORDS)}” on: {_named(day)}" for day, words in days]
    return "\n".join(["The user wrote them on these days:", *lines])


def _named(day: date) -> str:
    return f"{day:%A}, {day.isoformat()}"
