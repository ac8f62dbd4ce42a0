"""Text to search terms: folded, split, stemmed; CJK as pairs of characters. And text to passages for an encoder.

The same functions serve index and query, so that both sides always agree. Pure, and quick enough for a cold start.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

ANALYSIS_VERSION: Final = 1
"""Part of the index's version: raise it when any term here would come out differently."""

_CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\u0e00-\u0eff\U00020000-\U0003134f"
_WORD = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
_CJK_RUN = re.compile(rf"[{_CJK}]")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SCRIPTS_WITH_MARKS_END: Final = 0x0590
"""Marks are stripped from Latin, Greek and Cyrillic letters only: elsewhere they make another letter."""

_SUFFIXES: Final = (
    "ations", "ation", "ating", "ated", "ings", "ing", "edly", "ed", "ers", "er", "ments", "ment", "ions", "ion",
    "ness", "ly", "able", "ive",
)  # fmt: skip

_FUNCTION_WORDS: Final = """
    a about an and any are as at be been but by can could did do does for from get had has have he her him his how i
    if in into is it its just let me my no not of off ok on or our out please she should so some than thanks that the
    their them then there these they this those to too up us very was we were what when where which who whose why will
    with would yes you your
"""
FUNCTION_WORDS: Final = frozenset(_FUNCTION_WORDS.split())


def words(text: str) -> list[str]:
    """The words of `text`, folded: `useEffect` gives useeffect, use, effect; CJK runs give pairs of characters."""
    found: list[str] = []
    for word in _WORD.findall(text):
        if word.isascii():
            found.append(word.lower())
            if not (word.islower() or word.isupper() or word.istitle()):
                found += [part.lower() for part in _HUMP.split(word) if 2 < len(part) < len(word)]
        elif _CJK_RUN.match(word):
            found += [word[i : i + 2] for i in range(len(word) - 1)] or [word]
        else:
            found.append(_fold(word))
    return found


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """The word without its English ending, so that `deployed` finds `deploys`; other scripts stay as they are."""
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


def terms(text: str) -> list[str]:
    """The search terms of `text`, in order, with repeats."""
    return [stem(word) for word in words(text)]


FUNCTION_TERMS: Final = frozenset(stem(word) for word in FUNCTION_WORDS)


@lru_cache(maxsize=4_000)
def _fold(word: str) -> str:
    folded: list[str] = []
    for character in unicodedata.normalize("NFKC", word).casefold():
        base = unicodedata.normalize("NFD", character)[0]
        folded.append(base if ord(base) < _SCRIPTS_WITH_MARKS_END else character)
    return "".join(folded)


# Passages: what a sentence encoder is shown of a file.

WHOLE_WORDS: Final = 170
"""A file up to this long is one passage: its title gives the body its meaning."""
WINDOW_WORDS: Final = 70
MAX_PASSAGES: Final = 32


def passages(path: str, name: str, description: str, body: str) -> list[str]:
    """What to encode of a topic file: its header, and its body whole or in overlapping windows of whole lines."""
    title = name or _title(path)
    header = f"{title}. {description}" if description else title
    body = body.strip()
    if not body:
        return [header]
    if len(body.split()) <= WHOLE_WORDS:
        return [header, f"{_title(path)}. {header}\n{body}"]
    return [header, *(f"{title}\n{window}" for window in _windows(body))][:MAX_PASSAGES]


def _windows(body: str) -> list[str]:
    lines = [line.strip() for line in body.splitlines() if line.strip()]
    lines = [piece for line in lines for piece in _pieces(line)]
    windows: list[str] = []
    start = 0
    while start < len(lines):
        end, count = start, 0
        while end < len(lines) and (end == start or count + len(lines[end].split()) <= WINDOW_WORDS):
            count += len(lines[end].split())
            end += 1
        windows.append("\n".join(lines[start:end]))
        if end >= len(lines):
            break
        start = max(start + 1, end - 1)
    return windows


def _pieces(line: str) -> list[str]:
    """A line that is a whole paragraph, cut at its sentences."""
    if len(line.split()) <= WINDOW_WORDS:
        return [line]
    return re.split(r"(?<=[.!?。])\s+", line)


def _title(path: str) -> str:
    stem_of_name = path.rsplit("/", 1)[-1].removesuffix(".md")
    return stem_of_name.replace("_", " ").replace("-", " ")
