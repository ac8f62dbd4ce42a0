"""What the user is told after a run: which topic files were written. Never the index, and never sent to the model."""

from __future__ import annotations

from collections.abc import Mapping

from reverie.layers.l5_extraction.writes import Done

_WORDS: Mapping[Done, str] = {"added": "remembered", "updated": "updated", "forgotten": "forgot"}


def notice(done: Mapping[str, Done]) -> str | None:
    """One sentence; None if no topic file was written."""
    parts = [
        f"{word} {', '.join(name for name, what in done.items() if what == kind)}"
        for kind, word in _WORDS.items()
        if kind in done.values()
    ]
    return "; ".join(parts) + " (`reverie memory log` shows it, `memory undo` takes it back)" if parts else None
