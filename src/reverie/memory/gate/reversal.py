"""Finds a write that reverses a statement without support: another number, another name or a `not`. Background writers
may replace what was disproved, so they may change statements. The new statement needs support: by what the user typed,
or by another memory. Careful rather than complete, and pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from reverie.memory.gate.evidence import EvidenceText
from reverie.memory.gate.evidence_words import DATE_WORDS
from reverie.memory.topic_file import statements_of
from reverie.text.cutting import shorten
from reverie.text.folding import fold_text
from reverie.text.sameness import REWORDED, contradicts, share, similarity
from reverie.text.values import values_of
from reverie.text.words import content_terms, is_negated

_SPOKEN: Final = 0.5
"""The share of its content words that the user must have typed for a `not` to be theirs; at least two words."""


def find_reversal(
    text: str,
    before: str,
    typed: EvidenceText,
    standing: Callable[[], Iterable[str]],
    *,
    joined: Iterable[str] = (),
    elsewhere: Iterable[str] = (),
) -> tuple[str, str] | None:
    """The first new statement of `text` that reverses an older one, and the older one; None if there is none. `before`:
    the same file as it was; `typed`: what the user said; `standing`: all memories, read if needed; `joined`: removed
    files that this one may replace; `elsewhere`: what other files say now."""
    old, new = statements_of(before), statements_of(text)
    here = {fold_text(one) for one in new}
    stood = [(one, fold_text(one) in here) for one in old]
    if moved := [one for other in joined for one in statements_of(other)]:
        there = here | {fold_text(one) for other in elsewhere for one in statements_of(other)}
        stood += [(one, fold_text(one) in there) for one in moved]
    for one in new:
        if one in old or not stood:
            continue
        # The most similar statement is its origin.
        was, stays = max(stood, key=lambda other: similarity(content_terms(one), content_terms(other[0])))
        if (
            not stays
            and contradicts(one, was)
            and not _is_dated(one, was)
            and not _has_support(one, was, standing, typed)
        ):
            return one, was
    return None


def explain_reversal(name: str, now: str, was: str) -> str:
    """The refusal for a writer."""
    return (
        f"{name}: not written, because “{shorten(now, 100)}” would replace “{shorten(was, 100)}”, and "
        "neither the user nor another memory supports that. Keep it as it was."
    )


def _is_dated(one: str, was: str) -> bool:
    """Whether it is the same with a day written out: `next Monday` became a date."""
    here, there = values_of(one).all, values_of(was).all
    new, old = here - there, there - here
    is_relative = bool(DATE_WORDS.search(was)) and not any(_is_date(value) for value in old)
    return is_relative and bool(new) and all(_is_date(value) for value in new)


def _is_date(value: str) -> bool:
    return value[:4].isdigit() and value[4:5] == "-"


def _has_support(one: str, was: str, standing: Callable[[], Iterable[str]], typed: EvidenceText) -> bool:
    """Whether the user, or another memory, says it as it is now."""
    terms, new = content_terms(one), values_of(one).all - values_of(was).all
    if new:
        if all(typed.has_fact(value) for value in new) and any(typed.has(term) for term in terms):
            return True
    elif sum(typed.has(term) for term in terms) >= max(min(2, len(terms)), _SPOKEN * len(terms)):
        return True
    for other in (said for text in standing() for said in statements_of(text)):
        if fold_text(other) == fold_text(was) or share(terms, content_terms(other)) < REWORDED:
            continue
        if new <= values_of(other).all and is_negated(other) == is_negated(one):
            return True
    return False
