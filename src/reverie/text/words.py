"""The words of a text: split, folded, stemmed; CJK as pairs of characters. Also which of them carry meaning. The only
tokenizer: search index, queries, write gate, layers and offline mind always agree. Pure and quick."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from reverie.text.folding import fold
from reverie.text.patterns import late
from reverie.text.word_lists import EMPTY_WORDS, FUNCTION_WORDS, GENERAL_WORDS, NEGATIONS, NUMBER_WORDS, STOP_WORDS

ANALYSIS_VERSION: Final = 1
"""Part of the index's version: raise it when the result of `terms` changes, so that the index is built again."""

_CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\u0e00-\u0eff\U00020000-\U0003134f"
CJK = late(rf"[{_CJK}]")
"""A character of a script without spaces between words."""
WORD = late(rf"[{_CJK}]+|[^\W_{_CJK}]+")
"""A word, or a run of CJK characters."""
_HUMP = late(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NOT_IN_CJK: Final = ("不", "没", "沒", "勿", "ない", "ません", "않")
_DENIES_NOTHING = late(
    r"\b(?:(?:do not|don['’]?t|never) forget|not only|no later than|no matter|nicht (?:vergessen|nur)"
    r"|no (?:olvid\w+|s[oó]lo))\b|不要?忘|别忘|不仅|不只|忘れないで",
    re.IGNORECASE,
)
"""Phrases with a `not` that do not deny anything."""
_REMEMBERED: Final = 10_000
"""Terms of texts up to this length are cached."""

_SUFFIXES: Final = (
    "ations", "ation", "ating", "ated", "ings", "ing", "edly", "ed", "ers", "er", "ments", "ment", "ions", "ion",
    "ness", "ly", "able", "ive",
)  # fmt: skip


def words(text: str) -> list[str]:
    """The folded words of `text`: `useEffect` gives useeffect, use, effect; CJK runs give pairs of characters."""
    found: list[str] = []
    for word in WORD.findall(text):
        if word.isascii():
            found.append(word.lower())
            if not (word.islower() or word.isupper() or word.istitle()):
                found += [part.lower() for part in _HUMP.split(word) if 2 < len(part) < len(word)]
        elif CJK.match(word):
            found += [word[i : i + 2] for i in range(len(word) - 1)] or [word]
        else:
            found.append(fold(word))
    return found


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """The word without its English ending, so that `deployed` finds `deploys`; other scripts stay unchanged."""
    if len(word) <= 3 or not word.isascii() or not word.isalpha():
        return word
    if word.endswith("ies"):
        word = word[:-3] + "y"
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)]
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "sl":
        word = word[:-1]
    if len(word) > 3 and word[-1] in "ey":
        word = word[:-1]
    return word.replace("our", "or") if len(word) >= 5 else word


def singular(word: str) -> str:
    """The word without a plural s: `ports` gives `port`, `entries` gives `entry`."""
    if len(word) <= 4 or not word.isalpha() or not word.endswith("s") or word.endswith("ss"):
        return word
    return f"{word[:-3]}y" if word.endswith("ies") else word[:-1]


def terms(text: str) -> list[str]:
    """The search terms of `text`, in order, with repeats."""
    return [stem(word) for word in words(text)]


FUNCTION_TERMS: Final = frozenset(stem(word) for word in FUNCTION_WORDS)


def content_terms(text: str) -> frozenset[str]:
    """The words of a statement that carry meaning, stemmed, numbers as digits; pairs of characters in CJK."""
    return _content_terms(text) if len(text) <= _REMEMBERED else _content_terms.__wrapped__(text)


@lru_cache(maxsize=16_384)
def _content_terms(text: str) -> frozenset[str]:
    found: set[str] = set()
    said = words(text)
    empty = _ENGLISH_EMPTY if _is_english(said) else EMPTY_WORDS
    for word in said:
        if word in empty or (len(word) < 2 and not word.isdigit()):
            continue
        found.add((word.lstrip("0") or "0") if word.isdigit() else NUMBER_WORDS.get(word, stem(word)))
    return frozenset(found - FUNCTION_TERMS)


_OTHER_LITTLE: Final = frozenset[str]().union(*STOP_WORDS.values()) - FUNCTION_WORDS
_ENGLISH_EMPTY: Final = GENERAL_WORDS | FUNCTION_WORDS


def _is_english(said: list[str]) -> bool:
    """Whether English little words prevail. Then `door` is no little word, as it is in Dutch."""
    found = set(said)
    return len(found & FUNCTION_WORDS) > len(found & _OTHER_LITTLE)


def is_negated(statement: str) -> bool:
    """Whether a statement denies or forbids something."""
    said = _DENIES_NOTHING.sub(" ", statement)
    return not NEGATIONS.isdisjoint(words(said)) or any(mark in said for mark in _NOT_IN_CJK)
