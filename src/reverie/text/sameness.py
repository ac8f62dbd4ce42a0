"""Whether two statements say the same, contradict each other, or one holds what the other says.

The one judge of it, with its thresholds: by content words, by values (numbers with what they count, days, names,
addresses), and by whether one of them denies. Careful rather than complete, and pure: texts in, an answer out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import pairwise
from typing import Final

from reverie.text.values import hard_facts, subject_of, values_of, without_since
from reverie.text.words import content_terms, is_negated

SAME: Final = 0.8
"""Of a statement's content words, in one other statement: it says nothing new. One word in five may be another, since
who writes it down again changes about so many; two in five may change what it says."""
REWORDED: Final = 0.6
"""The same where words, facts or subjects have been compared already, or where missing a repetition does the harm: what
is lost, forgotten, private, or about one subject. A statement that a model puts otherwise keeps more than this."""
COPIED: Final = 0.75
"""Of the words of two whole files, or of what heads them: one of them may do. Files about one subject share half."""
MOST: Final = 0.6
"""Of the statements of a text, that must be said elsewhere for the text to add nothing much."""

_SCOPE = re.compile(
    r"[;:,—–-]\s+(?=(?:but |and |und |y )?(?:never|not|no|do not|don['’]?t|without|nicht|nie|kein|ohne|nunca|sin)\b)"
    r"|[，、；](?=不|没|别|勿)",
    re.IGNORECASE,
)
"""Where a `not` begins that is not about what stands before it."""
_TOKEN = re.compile(r"[^\W_]+(?:[.:'’-][^\W_]+)*")


class Relation(StrEnum):
    """What one statement is to another."""

    SAME = "same"
    """Each says what the other says."""
    CONTAINS = "contains"
    """The other says all that the first says, and more."""
    CONTRADICTS = "contradicts"
    """They cannot both hold."""
    DIFFERS = "differs"


@dataclass(frozen=True, slots=True)
class Comparison:
    """How one statement relates to another. `score`: the share of its content words that the other has."""

    relation: Relation
    score: float


def compare(one: str, other: str, least: float = SAME) -> Comparison:
    """What the other of two statements about one thing is to the first; `least`: the words that count as the same."""
    score = share(content_terms(one), content_terms(other))
    if contradicts(one, other, about_the_same=True):
        return Comparison(Relation.CONTRADICTS, score)
    if not says(one, other, least):
        return Comparison(Relation.DIFFERS, score)
    return Comparison(Relation.SAME if says(other, one, least) else Relation.CONTAINS, score)


def share(terms: frozenset[str], others: frozenset[str]) -> float:
    """The part of a statement's words that another has."""
    return len(terms & others) / len(terms) if terms else 0.0


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """The shared part of the smaller of two sets of words."""
    return share(one, other) if len(one) <= len(other) else share(other, one)


def similarity(one: frozenset[str], other: frozenset[str]) -> float:
    """The shared part of all their words."""
    return len(one & other) / max(1, len(one | other))


def says(one: str, other: str, least: float = SAME) -> bool:
    """Whether `other` says what `one` says: nearly the same words, all its facts, and both deny or neither does."""
    terms, others = content_terms(one), content_terms(other)
    if not terms or share(terms, others) < least:
        return False
    lower = other.lower()
    return is_negated(one) == _denies(other, terms) and all(_holds(lower, fact.lower()) for fact in hard_facts(one))


def _denies(statement: str, terms: frozenset[str]) -> bool:
    """Whether a statement denies what these words are about: in `uv only, never pip`, pip is denied and uv is not."""
    return any(is_negated(part) for part in _SCOPE.split(statement) if not terms.isdisjoint(content_terms(part)))


def _holds(text: str, fact: str) -> bool:
    """Whether a fact is in a text, and not as a part of a longer one: `5` is not in `15`, nor in `5.2`."""
    return bool(re.search(rf"(?<![0-9a-z])(?<!\d[.,]){re.escape(fact)}(?![0-9a-z]|[.,]\d)", text))


def contradicts(one: str, other: str, *, about_the_same: bool = False) -> bool:
    """Whether two statements cannot both hold: one subject, and other values of one kind, or the one denies the other.

    `about_the_same`: it is known that they are about one thing, so less is asked of their words.
    """
    if about_the_same and _is_one_frame(one, other):
        return True
    values, others = values_of(one), values_of(other)
    both = content_terms(" ".join(values.of("name") & others.of("name")))  # what both name belongs to the subject
    subject, its = subject_of(one) | both, subject_of(other) | both
    shared = subject & its
    if len(shared) < (1 if about_the_same else 2) or overlap(subject, its) < REWORDED:
        return False
    bare = {"number"} if subject != its else set[str]()  # what a bare number counts is known if all else is the same
    differing = {
        kind
        for kind in (values.kinds & others.kinds) - bare
        if values.of(kind) - others.of(kind) and others.of(kind) - values.of(kind)
    }
    if "name" in differing and len(differing) > 1 and not about_the_same:
        return False  # two names tell two things apart, and each has its own values
    if differing - {"name"} or (differing and len(shared) >= 2):
        return True
    denies = is_negated(one) != is_negated(other) and not values.kinds ^ others.kinds
    return denies and len(shared) >= 2 and (subject <= its or its <= subject)


def _is_one_frame(one: str, other: str) -> bool:
    """Whether two statements are the same sentence but for what they say in one place, behind what they speak of."""
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
    """Statements that can be asked whether one of them says something, found by the words they hold."""

    def __init__(self, statements: Iterable[str]) -> None:
        self._holding: dict[str, set[int]] = {}
        for number, one in enumerate(statements):
            for term in content_terms(one):
                self._holding.setdefault(term, set()).add(number)

    def has(self, statement: str) -> bool:
        """Whether one of them says it, in these words or in others; what has no content words is said anywhere."""
        terms = content_terms(statement)
        hits: dict[int, int] = {}
        for term in terms:
            for number in self._holding.get(term, ()):
                hits[number] = hits.get(number, 0) + 1
        return max(hits.values(), default=0) >= REWORDED * len(terms)


def find_repeated(new: Sequence[str], there: Sequence[str], *, least: int = 1) -> tuple[str, str] | None:
    """The first of the new statements that is said there and the one that says it, if most of them are; else None.

    `least`: below so many content words two statements are alike by chance.
    """
    whole = frozenset[str]().union(*map(content_terms, there))
    judged = [one for one in new if content_terms(one)]
    near = [one for one in judged if len(content_terms(one)) >= least and share(content_terms(one), whole) >= SAME]
    if not near:
        return None
    # Two statements in a row may stand in one sentence of the other text.
    spans = [*there, *(f"{one} {two}" for one, two in pairwise(there) if is_negated(one) == is_negated(two))]
    pairs = [(one, found) for one in near if (found := next((other for other in spans if says(one, other)), None))]
    total = sum(len(content_terms(one)) for one in judged)
    is_said = sum(len(content_terms(one) & whole) for one in judged) >= SAME * total
    return pairs[0] if pairs and (is_said or len(pairs) >= MOST * len(judged)) else None
