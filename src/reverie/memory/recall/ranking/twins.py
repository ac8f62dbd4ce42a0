"""Memories that something newer has replaced: by their own header, or as the older of two that say the same. They are
left out unless the prompt asks for the past. Bodies do not count: a current memory may mention what it replaced."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from reverie.memory.recall.search_index import IndexedFile
from reverie.text.patterns import late
from reverie.text.sameness import REWORDED, similarity
from reverie.text.words import FUNCTION_TERMS, terms, words

_REPLACED: Final = r"superseded|outdated|obsolete|out of date|no longer (?:valid|true|used|current|applies)|archived"
_MARKED = late(
    rf"^\W*(?:{_REPLACED}|deprecated|replaced by|old)\b\s*[:.,(\[—–-]|[(\[]\s*(?:{_REPLACED}|deprecated|old)\b"
    rf"|\b(?:SUPERSEDED|OUTDATED|OBSOLETE|DEPRECATED|ARCHIVED)\b|\bsuperseded by\b|\b(?:{_REPLACED})\W*$"
)
_FILE_MARK = late(r"[_-](?:old|superseded|outdated|obsolete|deprecated|archived?)\.md$", re.IGNORECASE)
_PAST = late(
    r"\b(old|older|former|formerly|previous|previously|earlier|history|historical|back then|used to|last year|"
    r"originally|superseded|before we|in the past)\b",
    re.IGNORECASE,
)
_EDITION = late(r"(?:19|20)\d\d$|v\d+$")
TWIN_TERMS: Final = 4


def asks_for_past(query: str) -> bool:
    """Whether the prompt asks how things were."""
    return bool(_PAST.search(query))


def is_replaced(file: IndexedFile) -> bool:
    """Whether the file's own header says that it is outdated."""
    marked = any(_MARKED.search(part) or _MARKED.search(part.lower()) for part in (file.name, file.description))
    return marked or bool(_FILE_MARK.search(file.path))


def older_twins(files: Sequence[IndexedFile], query: str) -> dict[str, str]:
    """Path of an older twin → path of the newer: same type, and headers that say nearly the same. A number in the
    prompt that only one of them has (a year, a version) selects that one."""
    asked = {word for word in words(query) if any(c.isdigit() for c in word)}
    headers = [(file, *_header(file)) for file in files]
    found: dict[str, str] = {}
    for n, (one, words_one, numbers_one) in enumerate(headers):
        for other, words_other, numbers_other in headers[n + 1 :]:
            if one.type != other.type or not _alike(words_one, words_other):
                continue
            if asked & (numbers_one ^ numbers_other) or not _same_series(numbers_one, numbers_other):
                continue
            older, newer = (one, other) if one.mtime < other.mtime else (other, one)
            found.setdefault(older.path, newer.path)
    return found


def _header(file: IndexedFile) -> tuple[frozenset[str], frozenset[str]]:
    found = frozenset(terms(f"{file.name} {file.description}"))
    numbers = frozenset(term for term in found if any(c.isdigit() for c in term))
    return found - numbers - FUNCTION_TERMS, numbers


def _same_series(one: frozenset[str], other: frozenset[str]) -> bool:
    """Years and versions follow one another; other numbers (pump 3, pump 4) separate things."""
    return one == other or (any(map(_EDITION.match, one - other)) and any(map(_EDITION.match, other - one)))


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    if min(len(one), len(other)) < TWIN_TERMS:
        return False
    return similarity(one, other) >= REWORDED
