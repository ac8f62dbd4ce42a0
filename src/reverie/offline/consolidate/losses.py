"""What a dream must not lose: a file is removed only if each of its statements is kept elsewhere or was replaced.

A statement is kept if most of its words and all of its numbers, identifiers and names are: these distinguish things
that are described in the same words. Checked at the end of planning, against the plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from reverie.offline.consolidate.desk import Desk
from reverie.offline.consolidate.statements import body_statements
from reverie.text.sameness import REWORDED, SAME
from reverie.text.sentences import Statement
from reverie.text.values import hard_facts, values_of
from reverie.text.words import content_terms

_IDENTIFIER = re.compile(r"(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[^\W\d_])[^\W_]\w*(?:-\w+)*(?![\w-])")
_NO_IDENTIFIER = re.compile(r"\d+(?:st|nd|rd|th|s|h|m|k|x|[kmgt]b|ms|[kmc]?m|kg|g|[AP]M)?", re.IGNORECASE)


@lru_cache(maxsize=16_384)
def find_identifiers(text: str) -> frozenset[str]:
    """Finds names with digits, such as `DK-732`, that identify one thing; measures do not count."""
    found = (match[0].lower() for match in _IDENTIFIER.finditer(text))
    return frozenset(one for one in found if not _NO_IDENTIFIER.fullmatch(one))


def find_missing_facts(said: str, text: str) -> frozenset[str]:
    """Finds the numbers, identifiers and names of a statement that a text does not have."""
    lower, whole = text.lower(), content_terms(text)
    numbers = {term for term in content_terms(said) if any(char.isdigit() for char in term) and term not in whole}
    missing = {fact.lower() for fact in hard_facts(said) if fact.lower() not in lower}
    missing |= {one for one in find_identifiers(said) if one not in lower}
    missing |= {number for number in numbers if number not in lower}
    return frozenset(missing | {name for name in values_of(said).names if name not in whole})


def is_stated(said: str, text: str) -> bool:
    """Whether a text has a statement, in one of its own or spread over several, with all its facts."""
    terms = content_terms(said)
    if said in text:
        return True
    if find_missing_facts(said, text):
        return False
    if len(terms & content_terms(text)) >= SAME * len(terms):
        return True
    return any(len(terms & one.terms) >= REWORDED * len(terms) for one in body_statements(text))


def find_lost(desk: Desk) -> set[str]:
    """Finds the removed files with a statement that no other file has."""
    remaining = [*desk.texts.values(), *desk.gave_way]
    return {name for name in desk.into if any(not _is_kept(one, remaining) for one in _said_in(desk, name))}


def _said_in(desk: Desk, name: str) -> Iterable[Statement]:
    return body_statements(desk.dated.get(name, desk.base[name]))


def _is_kept(one: Statement, remaining: Iterable[str]) -> bool:
    return any(is_stated(one.text, text) for text in remaining)
