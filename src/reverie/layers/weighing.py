"""What content weighs in tokens, by what the conversation's own responses have taught; layers decide by it.

The meter of the view learns from usage; before it has, what a decision that must not be late goes by is padded.
"""

from __future__ import annotations

from collections.abc import Iterable

from reverie.models.features import measure_blocks
from reverie.models.tokens import pad
from reverie.storage.transcript.view import Entry, View
from reverie.types import Block, TextBlock


def weigh(view: View, blocks: Iterable[Block]) -> int:
    """Tokens of these blocks."""
    return round(max(0.0, view.meter.calibrator.estimate(measure_blocks(blocks))))


def weigh_entries(view: View, entries: Iterable[Entry]) -> int:
    """Tokens of these messages as they are shown: a result that was replaced or cleared counts with its replacement."""
    return weigh(view, (block for entry in entries for block in view.visible_blocks(entry)))


def weigh_text(view: View, text: str) -> int:
    """Tokens of a text."""
    return weigh(view, (TextBlock(text),)) if text else 0


def weigh_early(view: View, entries: Iterable[Entry]) -> int:
    """Tokens of these messages for a decision that must not come late: padded until a response has taught us better."""
    tokens = weigh_entries(view, entries)
    return tokens if view.meter.calibrator.observations else pad(tokens)
