"""Where things happen in a model's window, with what the user has set: one answer for sessions and for commands.

Loads no flags and no event loop by itself, so that a command which only looks starts in a blink.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reverie.models.catalogue import ModelFacts
from reverie.models.window import Thresholds, Window, resolve_window, thresholds
from reverie.settings import Settings

if TYPE_CHECKING:
    from reverie.flags import Flags


def window_of(name: str, facts: ModelFacts, settings: Settings) -> Window:
    """How large a model's window is, and who says so."""
    catalogued = facts.window if facts.known else None
    return resolve_window(name, catalogued=catalogued, configured=settings.window.context_window)


def limits_of(name: str, facts: ModelFacts, settings: Settings, flags: Flags | None = None) -> Thresholds:
    """Where things happen in a model's window, with what the user has set and what flags change of it now."""
    given = settings.window

    def number(key: str) -> int:
        value: int = getattr(given, key)
        return value if flags is None else flags.number(f"window.{key}", value)

    found = thresholds(
        window_of(name, facts, settings).tokens,
        facts.max_output,
        autocompact_pct=given.autocompact_pct,
        autocompact_window=given.autocompact_window,
        blocking_limit=given.blocking_limit,
        output_reserve=number("output_reserve"),
        autocompact_buffer=number("autocompact_buffer"),
        warning_buffer=number("warning_buffer"),
        blocking_buffer=number("blocking_buffer"),
    )
    if flags is not None and flags.on("context_collapse"):  # folding leaves less behind: it may fill the window further
        share = flags.number("compaction.collapse_block_pct", settings.compaction.collapse_block_pct)
        return replace(found, blocking=int(found.effective * share / 100))
    return found
