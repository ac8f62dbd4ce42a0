"""The numbers of layer 3: when notes are taken, how long they may be, and what is kept beside them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from reverie.models.window import scaled

_FIXED = frozenset({"growth_calls", "max_rounds", "wait_s", "ignore_after_s", "keep_messages"})


@dataclass(frozen=True, slots=True)
class NoteNumbers:
    """Tokens unless the name says otherwise, for a window of 200,000."""

    first_tokens: int = 10_000
    growth_tokens: int = 5_000
    growth_calls: int = 3
    section_tokens: int = 2_000
    total_tokens: int = 12_000
    max_rounds: int = 5
    wait_s: float = 15.0
    ignore_after_s: float = 60.0
    section_characters: int = 8_000
    keep_tokens: int = 10_000
    keep_messages: int = 5
    keep_tokens_most: int = 40_000

    def for_window(self, window: int) -> NoteNumbers:
        """The same numbers for a smaller window: all but counts and seconds shrink with it."""
        changed = {
            field.name: max(1, scaled(getattr(self, field.name), window))
            for field in fields(self)
            if field.name not in _FIXED
        }
        return replace(self, **changed)
