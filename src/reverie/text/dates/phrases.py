"""Finds where a text speaks of days and says which they are, counted from the day it was written on.

`write_out_days` writes them out: “next Tuesday” becomes `2026-03-17`. What cannot be counted (“soon”, “on Fridays”, “every
month”) stays as it is. A closed grammar of five languages: the libraries that were tried know too few of these
phrases, and guess at too many others. It never looks at a clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import TypeAlias

from reverie.text.dates.calendar import Moment, add_days, exact_day
from reverie.text.tongue import Tongue, tongue_of

_ISO = re.compile(r"(?<![\d-])(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)-(?P<day>\d\d)(?![\d-])")
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_CLAUSE = re.compile(r"[,;.!?()\n—–，。；！？、:：]")


@dataclass(frozen=True, slots=True)
class Clause:
    """What a rule may know of the place it matched: the day it counts from, and the words around."""

    today: date
    before: str
    """The clause up to the match."""
    after: str
    """The rest of the clause."""
    past: bool
    """The clause tells of something that has happened."""


Reading: TypeAlias = tuple[Moment, str]
"""What a phrase means, and the words that stand for it, with the preposition it needs."""
Read: TypeAlias = Callable[[re.Match[str], Clause], Reading | None]
Rule: TypeAlias = tuple[re.Pattern[str], Read]


@dataclass(frozen=True, slots=True)
class Grammar:
    """The phrases of one language, first come first served; `past` tells clauses of what has happened."""

    rules: tuple[Rule, ...]
    past: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Wording:
    """How a language writes a day into a sentence: `on` or `within` before it, unless a preposition stands there."""

    prepositions: re.Pattern[str]
    on: str
    within: str
    week: str

    def __call__(self, clause: Clause, moment: Moment | None) -> Reading | None:
        if moment is None:
            return None
        if moment.grain == "week":
            return moment, f"{self.week} {moment.iso}"
        lead = (
            "" if self.prepositions.search(clause.before) else f"{self.on if moment.grain == 'day' else self.within} "
        )
        return moment, f"{lead}{moment.iso}"

    def near(self, pattern: re.Pattern[str], days: int) -> Rule:
        """The rule for a word that means so many days from today."""
        return pattern, lambda _match, clause: self(clause, Moment(add_days(clause.today, days)))


def phrase(pattern: str) -> re.Pattern[str]:
    """A pattern whose case does not matter."""
    return re.compile(pattern, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FoundDay:
    """A phrase that means a day, or a longer time."""

    start: int
    end: int
    moment: Moment
    words: str
    """What to write instead."""
    is_absolute: bool = False
    """It is written out already."""


def find_days(text: str, today: date, tongue: Tongue | None = None) -> list[FoundDay]:
    """Every phrase that speaks of a day, in order, none overlapping."""
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
            if before and _IDEOGRAPH.match(before[-1]):  # a day that grows together with words is no day any more
                words = f" {words}"
            if after and _IDEOGRAPH.match(after[0]):
                words = f"{words} "
            if after[:1] == "," and _IDEOGRAPH.match(after[1:]):  # nor is one that a narrow comma ties to them
                after = f"，{after[1:]}"
            text = before + words + after
    return text


def _clause(text: str, match: re.Match[str], today: date, past: re.Pattern[str]) -> Clause:
    before = _CLAUSE.split(text[max(0, match.start() - 120) : match.start()])[-1]
    after = _CLAUSE.split(text[match.end() : match.end() + 80], maxsplit=1)[0]
    return Clause(today, before, after, bool(past.search(f"{before} § {after}")))


@cache
def _grammar(tongue: Tongue) -> Grammar:
    """Loaded when the first text in that language comes."""
    match tongue:
        case "en":
            from reverie.text.dates import en as found
        case "de":
            from reverie.text.dates import de as found
        case "es":
            from reverie.text.dates import es as found
        case "zh":
            from reverie.text.dates import zh as found
        case "ja":
            from reverie.text.dates import ja as found
    return found.GRAMMAR
