"""Who may compact by itself: agents with a conversation of their own; a fork that serves one would wait for itself."""

from __future__ import annotations

from reverie.types import Purpose

MAY_COMPACT = frozenset({Purpose.MAIN, Purpose.AGENT})
"""The main thread, fork children and sub-agents; never what compacts, notes, extracts, dreams or answers aside."""


def may_compact(purpose: Purpose) -> bool:
    """Whether a conversation held for this purpose may be compacted without being asked."""
    return purpose in MAY_COMPACT
