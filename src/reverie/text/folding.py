"""Spellings that count as equal: case, width, and the marks on letters. Also sets of words, written as a text."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

from reverie.text.patterns import late

_INVISIBLE = late(
    "[\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180e\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u3164"
    "\\ufe00-\\ufe0e\\ufeff\\uffa0\\ufff0-\\ufffb\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff]"
)
_JOINERS = late("[\\u200c\\u200d]{2,}|(?<=[ -~])[\\u200c\\u200d]+|[\\u200c\\u200d]+(?=[ -~])")
"""They count only beside Latin letters: other scripts need them."""
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


def visible(text: str) -> str:
    """The text without characters that nobody sees: zero-width, bidirectional, tags, selectors."""
    if text.isascii():
        return text
    return _JOINERS.sub("", _INVISIBLE.sub("", text))
