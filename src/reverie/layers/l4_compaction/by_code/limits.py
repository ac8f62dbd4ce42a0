"""How long what is written by code may be, in bytes: of a whole text, of its parts, and how many names it lists."""

from __future__ import annotations

from dataclasses import dataclass

from reverie.models.tokens import encoded

BYTES_A_TOKEN = 3.1
"""Of what code writes (paths, names, commands) a token is shorter than of prose. Measured on recorded sessions."""

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
        """The limits for a text of at most about so many tokens: from little, mostly facts; from much, excerpts too."""
        size = max(0, int(tokens * BYTES_A_TOKEN))
        return cls(
            total=size,
            ledger=min(_MOST_LEDGER, int(size * 0.3)),
            excerpt=max(120, min(1_200, size // 30)),
            names=max(0, min(_MOST_NAMES, int(size * 0.46 / _NAME_BYTES))),
            section=min(8_000, size // 4),
        )


def bounded(text: str, limit: int) -> str:
    """The text within so many bytes, cut at the end of a line where one is near, never inside a character."""
    raw = encoded(text)
    if len(raw) <= limit:
        return text
    mark = "\n[… cut to fit]"
    if limit <= len(encoded(mark)):
        return ""
    cut = raw[: limit - len(encoded(mark))].decode("utf-8", "ignore")
    newline = cut.rfind("\n")
    return (cut[:newline] if newline > len(cut) // 2 else cut).rstrip() + mark
