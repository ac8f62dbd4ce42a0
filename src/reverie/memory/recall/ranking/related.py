"""Words of everyday work with a related meaning: `throttle` and `limit`. A short English list, for the order only."""

from __future__ import annotations

from functools import lru_cache

from reverie.memory.recall.ranking.manner import data_lines
from reverie.text.words import stem


def related_terms(term: str) -> list[str]:
    """Terms with a related meaning, in a fixed order."""
    return _related().get(term, [])


@lru_cache(maxsize=1)
def _related() -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for line in data_lines("related_words.txt"):
        group = [stem(word) for word in line.split()]
        for one in group:
            found.setdefault(one, {}).update(dict.fromkeys(other for other in group if other != one))
    return {one: list(others) for one, others in found.items()}
