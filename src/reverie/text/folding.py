"""Spellings that count as equal: case, width, and the marks on letters. Also sets of words, written as a text."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

_SCRIPTS_WITH_MARKS_END: Final = 0x0590
"""Only Latin, Greek and Cyrillic letters lose their marks: elsewhere a mark makes another letter."""


@lru_cache(maxsize=4_000)
def fold(word: str) -> str:
    """The form for comparison: `Über` and `uber` are equal."""
    folded: list[str] = []
    for character in unicodedata.normalize("NFKC", word).casefold():
        base = unicodedata.normalize("NFD", character)[0]
        folded.append(base if ord(base) < _SCRIPTS_WITH_MARKS_END else character)
    return "".join(folded)


def fold_text(text: str) -> str:
    """The text as one line in lower case."""
    return " ".join(text.split()).casefold()


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def folded_set(text: str) -> frozenset[str]:
    return frozenset(map(fold, text.split()))
