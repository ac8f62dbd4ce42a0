"""Weighs content in tokens, as the meter of the view has learnt from usage. Layers decide by it."""

from __future__ import annotations

from collections.abc import Iterable

from reverie.models.features import measure_blocks
from reverie.models.tokens import pad
from reverie.storage.transcript.view import Entry, View
from reverie.types import Block, TextBlock


def weigh(view: View, blocks: Iterable[Block]) -> int:
    """Returns the tokens of these blocks."""
    return round(max(0.0, view.meter.calibrator.estimate(measure_blocks(blocks))))


def weigh_entries(view: View, entries: Iterable[Entry]) -> int:
    """Returns the tokens of these messages as shown: a replaced or cleared result counts as its replacement."""
    return weigh(view, (block for entry in entries for block in view.visible_blocks(entry)))


def weigh_text(view: View, text: str) -> int:
    """Returns the tokens of a text."""
    return weigh(view, (TextBlock(text),)) if text else 0


def weigh_early(view: View, entries: Iterable[Entry]) -> int:
    """Returns the tokens for a decision that must not come late: padded until a response has calibrated the meter."""
    tokens = weigh_entries(view, entries)
    return tokens if view.meter.calibrator.observations else pad(tokens)
