"""Whether a prompt sounds like work in progress or like a general question: small talk, knowledge, sums. A naive Bayes
over words and word pairs of two short lists of example prompts, independent of the memories. One of several signals for
the decision to show nothing."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import Final

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_SMOOTHING: Final = 0.5
_READ: Final = 60
"""Words of a prompt that count: its beginning says most."""


@lru_cache(maxsize=1)
def example_prompts() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(prompts about current work, general prompts), written for this purpose."""
    return data_lines("work_prompts.txt"), data_lines("general_prompts.txt")


def manner(query: str) -> float:
    """Above 0: sounds like current work; below: like a general question. About -6 to 6, for any length."""
    weights = _weights()
    seen = _features(query)
    known = [weights[feature] for feature in seen if feature in weights]
    return sum(known) / math.sqrt(max(1, len(_WORD.findall(query)[:_READ]))) if known else 0.0


def data_lines(name: str) -> tuple[str, ...]:
    """The lines of a data file of this package."""
    text = files(__package__ or "").joinpath(name).read_text(encoding="utf-8")
    return tuple(line.strip() for line in text.splitlines() if line.strip())


@lru_cache(maxsize=1)
def _weights() -> dict[str, float]:
    work, general = example_prompts()
    for_work = Counter(feature for line in work for feature in _features(line))
    for_general = Counter(feature for line in general for feature in _features(line))
    return {
        feature: math.log((for_work[feature] + _SMOOTHING) / (len(work) + 2 * _SMOOTHING))
        - math.log((for_general[feature] + _SMOOTHING) / (len(general) + 2 * _SMOOTHING))
        for feature in for_work.keys() | for_general.keys()
    }


def _features(text: str) -> set[str]:
    words = _WORD.findall(text.lower())[:_READ]
    if not words:
        return set()
    return {f"^{words[0]}", *words, *(f"{a} {b}" for a, b in pairwise(words))}
