"""Finds phrases that name days and says which days they are, counted from the day the text was written.
`write_out_days` replaces them: “next Tuesday” becomes `2026-03-17`. Phrases without a definite day (“soon”, “on
Fridays”) stay. A closed grammar of five languages: libraries know too few of these phrases and guess too many others.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from functools import cache
from importlib import import_module
from typing import TypeAlias

from reverie.quick import dataclass
from reverie.text.dates.calendar import Grain, Moment, add_days, add_units, exact_day
from reverie.text.patterns import late
from reverie.text.tongue import Tongue, tongue_of

_ISO = late(r"(?<![\d-])(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)-(?P<day>\d\d)(?![\d-])")
_IDEOGRAPH = late(r"[\u3040-\u30ff\u3400-\u9fff]")
_CLAUSE = late(r"[,;.!?()\n—–，。；！？、:：]")


@dataclass(frozen=True, slots=True)
class Clause:
    """The context of a match: the day to count from, the clause before and after it, and whether it is in the past."""

    today: date
    before: str
    after: str
    past: bool


Reading: TypeAlias = tuple[Moment, str]
"""The meaning of a phrase, and the words that replace it, with the preposition it needs."""
Read: TypeAlias = Callable[[re.Match[str], Clause], Reading | None]
Rule: TypeAlias = tuple[re.Pattern[str], Read]


@dataclass(frozen=True, slots=True)
class Grammar:
    """The phrases of one language, the first match wins; `past` recognises clauses in the past."""

    rules: tuple[Rule, ...]
    past: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Wording:
    """How a language writes a day into a sentence: `on` or `within` before it, unless there is a preposition."""

    prepositions: re.Pattern[str]
    on: str
    within: str
    week: str

    def __call__(self, clause: Clause, moment: Moment | None) -> Reading | None:
        if moment is None:
            return None
        if moment.grain == "week":
            return moment, f"{self.week} {moment.iso}"
        lead = f"{self.on if moment.grain == 'day' else self.within} "
        return moment, f"{'' if self.prepositions.search(clause.before) else lead}{moment.iso}"

    def near(self, pattern: re.Pattern[str], days: int) -> Rule:
        """The rule for a word that means `days` days from today."""
        return pattern, lambda _match, clause: self(clause, Moment(add_days(clause.today, days)))

    def count(self, pattern: re.Pattern[str], sign: int, numbers: dict[str, int], grains: dict[str, Grain]) -> Rule:
        """The rule for “in three weeks” (`sign` 1) or “three weeks ago” (-1); `grains` by the unit's first letter."""

        def read(match: re.Match[str], clause: Clause) -> Reading | None:
            said = match["count"].lower()
            count = sign * (int(said) if said.isdigit() else numbers[said])
            return self(clause, Moment(add_units(clause.today, count, grains[match["unit"].lower()[0]])))

        return pattern, read


def phrase(pattern: str) -> re.Pattern[str]:
    """A pattern that ignores case."""
    return re.compile(pattern, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FoundDay:
    """A phrase that means a day or a longer period. `words` is its replacement; `is_absolute` means that it is written
    out already."""

    start: int
    end: int
    moment: Moment
    words: str
    is_absolute: bool = False


def find_days(text: str, today: date, tongue: Tongue | None = None) -> list[FoundDay]:
    """Every phrase that names a day, in order, without overlaps."""
    grammar = _grammar(tongue or tongue_of(text))
    found: list[FoundDay] = []
    taken = [False] * len(text)

    def take(start: int, end: int, moment: Moment, words: str, is_absolute: bool) -> None:
        if not any(taken[start:end]):
            taken[start:end] = [True] * (end - start)
            found.append(FoundDay(start, end, moment, words, is_absolute))

    for match in _ISO.finditer(text):
        if (day := exact_day(int(match["year"]), int(match["month"]), int(match["day"]))) is not None:
            take(*match.span(), day, match[0], True)
    for pattern, read in grammar.rules:
        for match in pattern.finditer(text):
            if any(taken[match.start() : match.end()]):
                continue
            reading = read(match, _clause(text, match, today, grammar.past))
            if reading is not None:
                take(*match.span(), *reading, is_absolute=match[0] == reading[1])
    return sorted(found, key=lambda one: one.start)


def write_out_days(text: str, today: date, tongue: Tongue | None = None) -> str:
    """The text with every day written out."""
    for one in reversed(find_days(text, today, tongue)):
        if not one.is_absolute:
            before, after = text[: one.start], text[one.end :]
            words = one.words
            if before and _IDEOGRAPH.match(before[-1]):  # a date must not join the words around it
                words = f" {words}"
            if after and _IDEOGRAPH.match(after[0]):
                words = f"{words} "
            if after[:1] == "," and _IDEOGRAPH.match(after[1:]):  # a narrow comma would join them too
                after = f"，{after[1:]}"
            text = before + words + after
    return text


def _clause(text: str, match: re.Match[str], today: date, past: re.Pattern[str]) -> Clause:
    before = _CLAUSE.split(text[max(0, match.start() - 120) : match.start()])[-1]
    after = _CLAUSE.split(text[match.end() : match.end() + 80], maxsplit=1)[0]
    return Clause(today, before, after, bool(past.search(f"{before} § {after}")))


@cache
def _grammar(tongue: Tongue) -> Grammar:
    """Loaded at the first text in that language."""
    return import_module(f"reverie.text.dates.{tongue}").GRAMMAR
