"""Settings of the layers that work behind the conversation on what outlives it.

A flag may change each number while sessions run.
"""

from __future__ import annotations

from typing import Literal

from reverie.settings.fields import Section, choice, number, whole


class Extraction(Section):
    """What a turn taught goes to memory (layer 5)."""

    every_turns: int = whole(1, "turns", "A run looks at so many turns at once; 1: after every turn.", live=True)
    max_rounds: int = whole(5, "rounds", "Most requests one run may make.", live=True)
    run_s: float = number(
        180.0, "seconds", "A run that takes longer is ended; its messages are looked at again.", live=True
    )
    most_losses: int = whole(
        3, "memories", "So many may lose statements, or be forgotten, in one run.", minimum=0, live=True
    )


class Dream(Section):
    """Consolidation of memory across sessions (layer 6)."""

    mode: Literal["auto", "ask", "inbox"] = choice(
        "auto",
        ("auto", "ask", "inbox"),
        "What a dream's result becomes: memory at once; a proposal that sessions point to; one that waits quietly.",
    )
    hours: float = number(24.0, "hours", "Between two dreams, at least.", live=True)
    scan_minutes: float = number(10.0, "minutes", "Between two looks at which transcripts changed.", live=True)
    transcripts: int = whole(
        5,
        "transcripts",
        "Changed since the last dream, the current one not counted.",
        live=True,
    )
    lock_minutes: float = number(60.0, "minutes", "A lock older than this is nobody's any more.", live=True)
    run_minutes: float = number(
        45.0,
        "minutes",
        "A run that takes longer is ended; less than `lock_minutes`.",
        live=True,
    )
    max_rounds: int = whole(60, "rounds", "Most requests one dream may make.", live=True)
    max_loss_pct: float = number(
        25.0,
        "percent",
        "Of the statements in topic files: a dream that loses more unnamed is refused.",
        maximum=100,
        live=True,
    )
