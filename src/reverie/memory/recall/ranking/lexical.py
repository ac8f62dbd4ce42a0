"""The share of a query's words that a file has: BM25 over stems, relative to a perfect match; and how much these words
say (`evidence`). A word that no memory has counts against every file: so the ranker knows when it cannot rely on words.
Rare words come first and within a budget, so that 100,000 files cost little more than 10,000."""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import nlargest
from typing import Final

from reverie.memory.recall.ranking.evidence import Expectation, chance, is_evidence
from reverie.memory.recall.ranking.related import related_terms
from reverie.memory.recall.search_index import SearchIndex, Term, unpack
from reverie.quick import dataclass
from reverie.text.words import FUNCTION_TERMS, stem, words

K1: Final = 1.2
B: Final = 0.75
BUDGET: Final = 5_000
"""Postings to read for one query; after them common words are looked up among the best files only."""
BEST: Final = 64
MOST: Final = 2_000
"""Files that get a score: with an encoder, even a faint match may matter."""
FEW: Final = 60
"""With fewer files, their own counts say little about words."""
MAX_TERMS: Final = 96
"""For a pasted log, the rarest terms are enough."""
RELATED: Final = 0.5
"""How much a word with a related meaning counts for the order. It does not count as evidence."""
SIMILAR_PREFIX: Final = 4
SIMILAR: Final = 0.62
"""Least share of common letters, from the front, for two stems to count as forms of one word."""


@dataclass(frozen=True, slots=True)
class Match:
    """A word of the query as it was typed, and the matching term of the file."""

    word: str
    found: str

    def __str__(self) -> str:
        return self.word if stem(self.word) == self.found else f"{self.word}~{self.found}"


@dataclass(slots=True)
class WordScore:
    """One file: its `share` of a perfect match, 0 to about 1, what words of a `related` meaning would add to it, the
    `evidence` in the words it has, and these words."""

    share: float
    related: float
    evidence: float
    matches: list[Match]


@dataclass(frozen=True, slots=True)
class _Form:
    word: str
    term: Term
    weight: float
    content: bool
    likeness: float
    chance: float
    """Of the term in any text; 1 for a word that does not count as evidence."""
    is_related: bool = False


def word_scores(index: SearchIndex, query: str, *, foreign: bool = False) -> dict[int, WordScore]:
    """Every file that shares a word with the query (the best of them, if there are very many). `foreign`: the query is
    not in English."""
    files, mean_length = index.totals()
    typed = {stem(word): word for word in reversed(words(query))}
    asked = list(reversed(typed))
    if not asked or not files:
        return {}
    known = index.terms(asked)
    if len(asked) > MAX_TERMS:
        asked = sorted(asked, key=lambda word: known[word].files if word in known else files)[:MAX_TERMS]
    whole = 0.0
    forms: list[_Form] = []
    chances: dict[str, float] = {}
    for word in asked:
        own = known.get(word)
        is_content = word not in FUNCTION_TERMS
        weight = term_weight(files, own.files if own else 0, is_content=is_content)
        whole += weight
        usual = 1.0
        if is_evidence(word):
            usual = chances[typed[word]] = chance(word, own.files if own else 0, files)
        if own:
            forms.append(_Form(typed[word], own, weight, is_content, 1.0, usual))
        if is_content:
            for other, likeness in _similar(index, word):
                least = min(weight, term_weight(files, other.files, is_content=True))
                rarest = max(usual, chance(other.text, other.files, files))
                forms.append(_Form(typed[word], other, likeness * least, True, likeness, rarest))
            for other in index.terms(related_terms(word)).values():
                least = min(weight, term_weight(files, other.files, is_content=True))
                forms.append(_Form(typed[word], other, RELATED * least, True, RELATED, 1.0, is_related=True))
    present = {form.word for form in forms if not form.is_related}
    tally = _Tally(mean_length, Expectation.of(chances, present, files, mean_length, foreign=foreign))
    return _gather(index, forms, tally, whole * (K1 + 1))


def _gather(index: SearchIndex, forms: Sequence[_Form], tally: _Tally, perfect: float) -> dict[int, WordScore]:
    left = BUDGET
    later: list[_Form] = []
    for form in sorted(forms, key=lambda form: form.term.files):
        if form.term.files > left and (later or tally.totals):
            later.append(form)
            continue
        left -= form.term.files
        tally.add(form, index.postings(form.term.id))
    best = nlargest(MOST if not later else BEST, tally.totals, key=tally.totals.__getitem__)
    for form in later:
        tally.add(form, index.postings(form.term.id, best))
    return {file: tally.score(file, perfect) for file in best}


class _Tally:
    """The score of each file so far: of every word, its best form."""

    def __init__(self, mean_length: float, expected: Expectation) -> None:
        self.totals: dict[int, float] = {}
        self._expected = expected
        self._nothing = sum(expected.without.values()) + expected.belongs
        self._words: dict[str, dict[int, tuple[float, _Form, int]]] = {}
        self._gains: dict[int, float] = {}
        self._mean_length = mean_length

    def add(self, form: _Form, rows: Sequence[tuple[int, int]]) -> None:
        totals, gains, weight = self.totals, self._gains, form.weight
        of_word = self._words.setdefault(form.word, {})
        for file, packed in rows:
            gain = gains.get(packed)
            if gain is None:
                count, length = unpack(packed)
                gain = gains[packed] = count * (K1 + 1) / (count + K1 * (1 - B + B * length / self._mean_length))
            gain *= weight
            known = of_word.get(file)
            if known is None:
                totals[file] = totals.get(file, 0.0) + gain
                of_word[file] = (gain, form, packed)
            elif gain > known[0]:
                totals[file] += gain - known[0]
                of_word[file] = (gain, form, packed)

    def score(self, file: int, perfect: float) -> WordScore:
        found = [of_word[file] for of_word in self._words.values() if file in of_word]
        matches = [Match(form.word, form.term.text) for _, form, _ in found if form.content]
        related = sum(gain for gain, form, _ in found if form.is_related)
        evidence = self._nothing + sum(self._evidence(form, packed) for _, form, packed in found if form.chance < 1)
        return WordScore((self.totals[file] - related) / perfect, related / perfect, evidence, matches)

    def _evidence(self, form: _Form, packed: int) -> float:
        """What it says that the file has this form, and not nothing of the word."""
        gain = form.likeness * self._expected.found(form.chance, *unpack(packed))
        return gain - self._expected.without[form.word] if gain > 0 else 0.0


def _similar(index: SearchIndex, word: str) -> list[tuple[Term, float]]:
    """Other forms of a word, or compounds with it: `deploy` and `deployment`, `gdansku` and `gdansk`."""
    if len(word) < SIMILAR_PREFIX or not word.isalpha():
        return []
    found: list[tuple[Term, float]] = []
    for term in index.terms_beginning(word[:SIMILAR_PREFIX]):
        if term.text == word or not term.text.isalpha():
            continue
        shared = _shared_prefix(word, term.text)
        likeness = 2 * shared / (len(word) + len(term.text))
        if likeness >= SIMILAR and (shared > SIMILAR_PREFIX or shared == min(len(word), len(term.text))):
            found.append((term, likeness))
    return found


def _shared_prefix(one: str, other: str) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def term_weight(files: int, with_term: int, *, is_content: bool) -> float:
    """How much a term says about a file. Up to `FEW` files it is judged as if there were `FEW` ordinary ones: a few
    files cannot show that `which` is common and `staging` is not."""
    if files < FEW:
        with_term = max(with_term, 0 if is_content else FEW // 2)
        files = FEW
    return math.log(1 + (files - with_term + 0.5) / (with_term + 0.5))
