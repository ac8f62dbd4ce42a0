"""Whether two statements say the same, contradict each other, or one contains the other. The only judge of this, with
its thresholds: by content words, by values (numbers with their units, days, names, addresses), and by negation. Careful
rather than complete, and pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Final

from reverie.quick import dataclass
from reverie.text.folding import word_set
from reverie.text.patterns import late
from reverie.text.values import hard_facts, subject_of, values_of, without_since
from reverie.text.words import content_terms, is_negated, terms, words

SAME: Final = 0.8
"""With this share of its content words in one other statement, a statement is not new. A rewrite changes about one word
in five; two in five may change the meaning."""
REWORDED: Final = 0.6
"""The same where words, facts or subjects are compared already, or where a missed repetition does the harm: for lost,
forgotten or private statements. A reworded statement keeps more than this."""
COPIED: Final = 0.75
"""Of the words of two whole files, or of their headers: one of them is enough. Files about one subject share half."""
MOST: Final = 0.6
"""If this share of a text's statements exists elsewhere, the text adds little."""

_SCOPE = late(
    r"[;:,—–-]\s+(?=(?:but |and |und |y )?(?:never|not|no|do not|don['’]?t|without|nicht|nie|kein|ohne|nunca|sin)\b)"
    r"|[，、；](?=不|没|别|勿)",
    re.IGNORECASE,
)
"""Where a `not` begins that does not refer to the text before it."""
_TOKEN = late(r"[^\W_]+(?:[.:'’-][^\W_]+)*")


class Relation(StrEnum):
    """How one statement relates to another."""

    SAME = "same"
    """Each says what the other says."""
    CONTAINS = "contains"
    """The other says everything that the first says, and more."""
    CONTRADICTS = "contradicts"
    """They cannot both be true."""
    DIFFERS = "differs"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A relation, and the `score`: the share of content words that the other statement has."""

    relation: Relation
    score: float


def compare(one: str, other: str, least: float = SAME) -> Comparison:
    """How the second of two statements about one thing relates to the first; `least` is the share of words that counts
    as the same."""
    score = share(content_terms(one), content_terms(other))
    if contradicts(one, other, about_the_same=True):
        return Comparison(Relation.CONTRADICTS, score)
    if not says(one, other, least):
        return Comparison(Relation.DIFFERS, score)
    return Comparison(Relation.SAME if says(other, one, least) else Relation.CONTAINS, score)


def share(terms: frozenset[str], others: frozenset[str]) -> float:
    """The share of a statement's words that another has."""
    return len(terms & others) / len(terms) if terms else 0.0


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """The shared part of the smaller of two sets of words."""
    return share(one, other) if len(one) <= len(other) else share(other, one)


def similarity(one: frozenset[str], other: frozenset[str]) -> float:
    """The shared part of all their words."""
    return len(one & other) / max(1, len(one | other))


def says(one: str, other: str, least: float = SAME) -> bool:
    """Whether `other` says what `one` says: nearly the same words, all its facts, and the same negation."""
    terms, others = content_terms(one), content_terms(other)
    if not terms or share(terms, others) < least:
        return False
    lower = other.lower()
    return is_negated(one) == denies(other, terms) and all(_holds(lower, fact.lower()) for fact in hard_facts(one))


def denies(statement: str, terms: frozenset[str]) -> bool:
    """Whether a statement denies these words: `uv only, never pip` denies pip, not uv."""
    return any(is_negated(part) for part in _SCOPE.split(statement) if not terms.isdisjoint(content_terms(part)))


def _holds(text: str, fact: str) -> bool:
    """Whether a text has a fact, not as a part of a longer one: `5` is not in `15`, nor in `5.2`."""
    return bool(re.search(rf"(?<![0-9a-z])(?<!\d[.,]){re.escape(fact)}(?![0-9a-z]|[.,]\d)", text))


def contradicts(one: str, other: str, *, about_the_same: bool = False) -> bool:
    """Whether two statements cannot both be true: one subject with other values, or one denies the other.
    `about_the_same`: they are known to be about one thing, so fewer words have to match."""
    if about_the_same and _is_one_frame(one, other):
        return True
    values, others = values_of(one), values_of(other)
    both = content_terms(" ".join(values.of("name") & others.of("name")))  # names of both belong to the subject
    subject, its = subject_of(one) | both, subject_of(other) | both
    shared = subject & its
    if len(shared) < (1 if about_the_same else 2) or overlap(subject, its) < REWORDED:
        return False
    bare = {"number"} if subject != its else set[str]()  # bare numbers can be compared if all else is the same
    differing = {
        kind
        for kind in (values.kinds & others.kinds) - bare
        if values.of(kind) - others.of(kind) and others.of(kind) - values.of(kind)
    }
    if "name" in differing and len(differing) > 1 and not about_the_same:
        return False  # two names mean two things, and each has its own values
    if differing - {"name"} or (differing and len(shared) >= 2):
        return True
    denies = is_negated(one) != is_negated(other) and not values.kinds ^ others.kinds
    return denies and len(shared) >= 2 and (subject <= its or its <= subject)


def _is_one_frame(one: str, other: str) -> bool:
    """Whether two statements are the same sentence except in one place, after their subject."""
    words_, others = (_TOKEN.findall(without_since(text).lower()) for text in (one, other))
    changes = [op for op in SequenceMatcher(None, words_, others, autojunk=False).get_opcodes() if op[0] != "equal"]
    swapped = [op for op in changes if op[0] == "replace"]
    same = len(words_) - sum(end - start for _, start, end, _, _ in changes)
    if len(swapped) != 1 or same < 4 or any(max(op[2] - op[1], op[4] - op[3]) > 2 for op in changes):
        return False
    _, start, end, from_, to = swapped[0]
    told, its = (content_terms(" ".join(some)) for some in (words_[start:end], others[from_:to]))
    return bool(told and its and not told & its) and len(content_terms(" ".join(words_[:start]))) >= 2


class StatementIndex:
    """Statements, found by their content words."""

    def __init__(self, statements: Iterable[str]) -> None:
        self._holding: dict[str, set[int]] = {}
        for number, one in enumerate(statements):
            for term in content_terms(one):
                self._holding.setdefault(term, set()).add(number)

    def has(self, statement: str) -> bool:
        """Whether one of them says it, in these or other words; true without content words."""
        terms = content_terms(statement)
        hits: dict[int, int] = {}
        for term in terms:
            for number in self._holding.get(term, ()):
                hits[number] = hits.get(number, 0) + 1
        return max(hits.values(), default=0) >= REWORDED * len(terms)


_RELATIONS: Final = word_set(
    """before after over under above below on off only all every any unless except until since instead may might must
    should can cannot with without more less most least first last either always never rarely sometimes optional vor
    nach über unter nur alle jede außer bis statt darf muss soll kann mit ohne mehr weniger erst zuletzt immer nie
    selten antes después sobre bajo solo sólo todos salvo excepto hasta puede debe con sin más menos siempre nunca avant
    après sur sous seulement tous sauf jusque peut doit avec sans plus moins toujours jamais до после только все кроме
    без всегда никогда может должен"""
)
"""Words that turn a statement round without being its subject."""


def relations_of(text: str) -> frozenset[str]:
    """The words of a statement that relate its parts: before, only, unless."""
    return frozenset(words(text)) & _RELATIONS


def is_in_order(one: str, other: str) -> bool:
    """Whether the content words that two texts share come in the same order, nearly all of them; or all of them, if a
    part of the sentence was moved to the front."""
    shared = content_terms(one) & content_terms(other)
    mine, theirs = ([term for term in terms(text) if term in shared] for text in (one, other))
    matched = SequenceMatcher(None, mine, theirs, autojunk=False).get_matching_blocks()
    if sum(block.size for block in matched) >= 0.8 * len(mine):
        return True
    left = iter(theirs * 2)
    return all(term in left for term in mine)
