"""How long texts by code may be, in bytes: the whole text, its parts, and the number of names."""

from __future__ import annotations

from reverie.models.tokens import encoded
from reverie.quick import dataclass

BYTES_A_TOKEN = 3.1
"""A token of paths, names and commands is shorter than a token of prose. Measured on recorded sessions."""

_NAME_BYTES = 15.0
_MOST_NAMES = 400
_MOST_LEDGER = 24_000


@dataclass(frozen=True, slots=True)
class Limits:
    """In bytes of UTF-8. `names` counts identifiers, `section` is one section of the notes."""

    total: int = 40_000
    ledger: int = 20_000
    excerpt: int = 600
    names: int = 300
    section: int = 8_000

    @classmethod
    def for_tokens(cls, tokens: int) -> Limits:
        """Returns the limits for about so many tokens: few tokens hold mostly facts, many hold excerpts too."""
        size = max(0, int(tokens * BYTES_A_TOKEN))
        return cls(
            total=size,
            ledger=min(_MOST_LEDGER, int(size * 0.3)),
            excerpt=max(120, min(1_200, size // 30)),
            names=max(0, min(_MOST_NAMES, int(size * 0.46 / _NAME_BYTES))),
            section=min(8_000, size // 4),
        )


def bounded(text: str, limit: int) -> str:
    """Cuts the text to so many bytes, at the end of a line if one is near, never inside a character."""
    raw = encoded(text)
    if len(raw) <= limit:
        return text
    mark = "\n[… cut to fit]"
    if limit <= len(encoded(mark)):
        return ""
    cut = raw[: limit - len(encoded(mark))].decode("utf-8", "ignore")
    newline = cut.rfind("\n")
    return (cut[:newline] if newline > len(cut) // 2 else cut).rstrip() + mark
