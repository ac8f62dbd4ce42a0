"""Cuts a text without breaking it: at a word, outside brackets and quotation marks, between whole characters. For
titles, descriptions and first sentences."""

from __future__ import annotations

import unicodedata
from collections import Counter

_CLOSES = {
    ")": "(", "]": "[", "}": "{", ">": "<", "”": "“", "»": "«", "›": "‹", "’": "‘",
    "）": "（", "］": "［", "｝": "｛", "」": "「", "』": "『", "】": "【", "》": "《", "〉": "〈",
}  # fmt: skip
_OPENS = frozenset((*_CLOSES.values(), "„"))
_EITHER = frozenset("\"'`")
_JOINER = "\u200d"
_LOOKED_AT = 1_000
"""Pairs are looked for in this many characters; no result is longer."""
_END = " ,;:—-"


def shorten(text: str, most: int) -> str:
    """One line of at most `most` characters, with an ellipsis if it was cut."""
    line = " ".join(text.split())
    return line if len(line) <= most else _cut(line, most - 1) + "…"


def cut_at(text: str, end: int) -> str:
    """The text up to about `end`, without a pair left open."""
    return text if end >= len(text) else _cut(text, end, by_word=False)


def first_outside(text: str, ends: list[int]) -> int | None:
    """The first of these ends that is not inside a pair."""
    pairs = _pairs(text[:_LOOKED_AT])
    for end in ends:
        pairs = [pair for pair in pairs if pair[1] >= end]
        if not any(start < end for start, _ in pairs):
            return end
    return None


def _cut(line: str, end: int, *, by_word: bool = True) -> str:
    while 0 < end < len(line) and _goes_on(line, end):
        end -= 1
    space = line.rfind(" ", 0, end)
    if by_word and space > end // 3:  # else one long word, or a script that has no spaces
        end = space
    dropped = set[int]()
    for start, close in sorted(_pairs(line[:_LOOKED_AT])):
        if start < end <= close:
            if start > end // 3:
                end = start
                break
            dropped.add(start)  # nearly all of it is inside the pair: only the mark is dropped
    kept = "".join(char for place, char in enumerate(line[:end]) if place not in dropped).strip().rstrip(_END)
    return kept or line[:end]


def _goes_on(line: str, place: int) -> bool:
    """Whether the character belongs to the one before it."""
    return line[place] == _JOINER or line[place - 1] == _JOINER or unicodedata.category(line[place])[0] == "M"


def _pairs(text: str) -> list[tuple[int, int]]:
    """Where brackets and quotation marks open and close."""
    found, opened, count = list[tuple[int, int]](), list[int](), Counter[str]()
    for place, char in enumerate(text):
        before, after = text[place - 1 : place], text[place + 1 : place + 2]
        wanted = _CLOSES.get(char, char if char in _EITHER else "")
        if char == "“" and count["„"]:
            wanted = "„"
        is_apostrophe = char in "'’" and after.isalnum()
        if count[wanted] and not is_apostrophe and not (char in ">'" and before in ("", " ")):
            partner = opened.pop()
            while text[partner] != wanted:  # opened inside and never closed
                count[text[partner]] -= 1
                partner = opened.pop()
            count[wanted] -= 1
            found.append((partner, place))
            continue
        is_start = char in _OPENS or char in _EITHER
        if is_start and not (char in "<'" and (after in ("", " ") or before.isalnum())):
            opened.append(place)
            count[char] += 1
    return found
