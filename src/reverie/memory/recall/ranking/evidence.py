"""How much the words that a prompt and a memory share say about the memory: the logarithm of how much likelier they are
in a memory that is meant than in any text. Rarity comes from general technical English (`common_words.txt`) and from
the directory itself, so the figure means the same in a directory of 5 memories and of 5,000."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Final

from reverie.memory.recall.ranking.manner import data_lines
from reverie.quick import dataclass
from reverie.text.word_lists import STOP_WORDS
from reverie.text.words import CJK, stem

TEXT_WORDS: Final = 80
"""The length of the texts in which the chances were counted."""
LENGTH: Final = 0.4
"""A longer memory has more words by chance: they grow with this power of its length."""
RARE: Final = 0.001
"""The chance of a word that is not in the list: a name, an identifier."""
OFTEN: Final = 0.7
PAIR: Final = 0.03
"""The chance of a pair of CJK characters, for which there is no list."""
SHARED: Final = 3.0
"""A memory that is meant has on average so many of a prompt's content words: a long prompt needs rarer ones."""
MOST_SHARED: Final = 0.8
KNOWN: Final = 0.8
"""If a prompt is about what a directory is about, so many of its words are there that would not be by chance,"""
BELONGS: Final = 0.35
"""and so much of the evidence for that counts for each memory."""
REPEATED: Final = 1.3
"""A word that a memory has more than once says more about it."""

LITTLE_TERMS: Final = frozenset(stem(word) for words in STOP_WORDS.values() for word in words)
"""Words without evidence, in every language that we have a list for."""


def is_evidence(term: str) -> bool:
    """Whether a term may count at all: no function word, no single letter."""
    return term not in LITTLE_TERMS and (len(term) > 1 or term.isdigit() or bool(CJK.match(term)))


def chance(term: str, with_term: int, among: int) -> float:
    """The chance that a text has the term although it is about something else. In the directory it is the chance that
    two memories share it: the name of the project is in all of them and tells nothing."""
    general = PAIR if CJK.match(term) else _chances().get(term, RARE)
    here = with_term * (with_term - 1) / (among * (among - 1)) if among > 1 else 0.0
    return min(OFTEN, max(general, here))


@dataclass(frozen=True, slots=True)
class Expectation:
    """What is expected of a memory that a prompt means. `without`: per content word, the evidence if a memory lacks
    it. `belongs`: the evidence that the prompt is about the directory at all."""

    share: float
    without: Mapping[str, float]
    belongs: float

    @classmethod
    def of(
        cls, chances: Mapping[str, float], known: Collection[str], files: int, mean_length: float, *, foreign: bool
    ) -> Expectation:
        """`chances`: each content word of the prompt; `known`: those that the directory has. A foreign prompt has
        little words that we have no list for."""
        share = min(MOST_SHARED, SHARED / max(1, len(chances)))
        weight = 0.5 if foreign else 1.0
        return cls(
            share,
            {
                word: weight * math.log((1 - share) / (1 - min(share, _in_text(found, mean_length))))
                for word, found in chances.items()
            },
            BELONGS * weight * sum(_in_directory(found, files, word in known) for word, found in chances.items()),
        )

    def found(self, chance: float, count: int, length: float) -> float:
        """The evidence of one word that a memory of `length` words has `count` times; 0 if it says nothing."""
        gain = math.log(self.share / _in_text(chance, length))
        return max(0.0, gain * (REPEATED if count > 1 else 1.0))


def _in_text(chance: float, length: float) -> float:
    return min(OFTEN, chance * (length / TEXT_WORDS) ** LENGTH)


def _in_directory(chance: float, files: int, is_known: bool) -> float:
    """The evidence of one word that a prompt is about a directory: some memory has the word, or none has it."""
    by_chance = 1 - (1 - chance) ** files
    return math.log(1 + KNOWN * (1 / by_chance - 1)) if is_known else math.log(1 - KNOWN)


@lru_cache(maxsize=1)
def _chances() -> dict[str, float]:
    """Stems and their chances. Counted in the documentation of Python packages and the Rust books, and in the
    conversations of `evals`; of the two the larger chance."""
    found: dict[str, float] = {}
    for line in data_lines("common_words.txt"):
        value, *terms = line.split()
        found |= dict.fromkeys(terms, float(value))
    return found
