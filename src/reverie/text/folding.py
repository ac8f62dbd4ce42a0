"""Spellings that count as one: case, width, and the marks on letters. And tables of words, written as a text."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

_SCRIPTS_WITH_MARKS_END: Final = 0x0590
"""Marks are stripped from Latin, Greek and Cyrillic letters only: elsewhere they make another letter."""


@lru_cache(maxsize=4_000)
def fold(word: str) -> str:
    """The word as it is compared: `Über` and `uber` are one."""
    folded: list[str] = []
    for character in unicodedata.normalize("NFKC", word).casefold():
        base = unicodedata.normalize("NFD", character)[0]
        folded.append(base if ord(base) < _SCRIPTS_WITH_MARKS_END else character)
    return "".join(folded)


def fold_text(text: str) -> str:
    """The text as one line in lower case: the same whatever its line breaks and capitals are."""
    return " ".join(text.split()).casefold()


def word_set(text: str) -> frozenset[str]:
    """A set of words, written as a text."""
    return frozenset(text.split())


def folded_set(text: str) -> frozenset[str]:
    """The same, folded, as the words of a text come."""
    return frozenset(map(fold, text.split()))
