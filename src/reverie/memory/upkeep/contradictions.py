"""Whether a conclusion speaks against something the user confirmed: the same subject, another value or a `not`.

Careful rather than complete: words must overlap well, and what differs must be a number, a name or a denial. What the
user said anew is never a contradiction: it supersedes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from reverie.memory.gate.evidence import Assessment, Verdict, content_terms, hard_facts, statements
from reverie.memory.upkeep.duplicates import is_negated

SAME_SUBJECT: Final = 0.6
"""The share of the shorter statement's content words that both have, numbers and names left out."""
_NAME = re.compile(r"(?<=[a-z,;:] )[A-Z][a-zà-ÿ]{2,}\b")


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two statements that cannot both hold."""

    where: str
    statement: str
    standing: str


def find_contradiction(assessment: Assessment, confirmed: Mapping[str, str]) -> Contradiction | None:
    """The first statement that is not the user's own and speaks against a confirmed memory."""
    for one in assessment.judged:
        if one.verdict is Verdict.SUPPORTED:
            continue
        for where, text in confirmed.items():
            for standing in statements(text):
                if contradicts(one.statement, standing):
                    return Contradiction(where, one.statement, standing)
    return None


def contradicts(statement: str, standing: str) -> bool:
    """Whether two statements are about the same and say different things of it."""
    here, there = values(statement), values(standing)
    here, there = here - there, there - here  # what both name belongs to the subject
    subject, other = _subject(statement, here), _subject(standing, there)
    if min(len(subject), len(other)) < 2 or len(subject & other) < SAME_SUBJECT * min(len(subject), len(other)):
        return False
    if is_negated(statement) != is_negated(standing):
        return not here and not there
    return bool(here and there)


def values(statement: str) -> set[str]:
    """What a statement says of its subject: numbers, dates, addresses, names in the middle of a sentence."""
    return {fact.lower() for fact in hard_facts(statement)} | {name.lower() for name in _NAME.findall(statement)}


def _subject(statement: str, left_out: set[str]) -> set[str]:
    said = {term for value in left_out for term in content_terms(value)}
    return {term for term in content_terms(statement) if term not in said}
