"""Whether a memory is based on what the user typed, statement by statement. A model uses its own words, so support
means shared words, names and numbers, not quotation. Text of a tool, a page, a recalled memory or the model does not
count as the user's, unless the user said yes to it. It judges texts only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

from reverie.memory.changes import Evidence
from reverie.memory.gate.evidence_words import ASSENT, DATE_WORDS, FILLER, FIRM_ASSENT
from reverie.memory.taxonomy import Trust
from reverie.text.tongue import language_of
from reverie.text.values import hard_facts
from reverie.text.word_lists import NUMBER_WORDS
from reverie.text.words import CJK, content_terms, words
from reverie.types import Origin

ENOUGH: Final = 0.34
"""The share of a statement's content words that the user must have typed."""
SHORT: Final = 0.5
"""The same for statements so short that one word would be a third."""
ANCHORED: Final = 0.15
"""The share for a memory in another language: its names and technical words must still be the user's."""
_LEAST_TYPED: Final = 6  # words that are enough to recognise a language
_PREFIX: Final = 5  # letters by which `calibration` is known in `calibrate`

_INJECTED = re.compile(
    r"<(system-reminder|persisted-output|command-[\w-]++|local-command-[\w-]++|memory"
    r"|recalled[\w-]*+)(?!\w)[^<>]*+>.*?(?:</\1>|\Z)",
    re.DOTALL,
)
_ISO_DATE = re.compile(r"\d{4}-\d\d(?:-\d\d)?(?:T[\d:.]+Z?)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}|(?:19|20)\d\d")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


class Verdict(StrEnum):
    """What the evidence says about one statement."""

    SUPPORTED = "supported"
    """The user typed it or said yes to it, or it was in memory already."""
    UNSUPPORTED = "unsupported"
    """It comes from somebody else: a tool, a page, a recalled memory, the model."""
    UNKNOWN = "unknown"
    """Nobody said it: the writer's own conclusion."""


@dataclass(frozen=True, slots=True)
class JudgedStatement:
    """One statement and the verdict on it."""

    statement: str
    verdict: Verdict
    origins: tuple[str, ...] = ()
    """Where its words were found, other than in the user's text."""
    facts: tuple[str, ...] = ()
    """Numbers, names and addresses in it that the user did not type."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """What the evidence says about a memory as a whole."""

    judged: tuple[JudgedStatement, ...]
    share: float
    """The share of all content words that the user typed, or that were in memory."""
    other_language: bool
    """It is in another language than the user's text, so only names can be shared."""

    @property
    def refused(self) -> tuple[JudgedStatement, ...]:
        """Statements of somebody else, or with facts that nobody said."""
        return tuple(one for one in self.judged if one.verdict is Verdict.UNSUPPORTED or one.facts)

    @property
    def is_from_user(self) -> bool:
        """Whether the memory may be stored: nothing in it is refused, and the user said enough of it."""
        return not self.refused and self.share >= (ANCHORED if self.other_language else ENOUGH)

    @property
    def trust(self) -> Trust:
        """Confirmed if the user said all of it; inferred if the writer concluded a part."""
        says_something = any(content_terms(one.statement) for one in self.judged)
        sure = says_something and all(one.verdict is Verdict.SUPPORTED for one in self.judged)
        return Trust.CONFIRMED if sure and self.share >= ENOUGH else Trust.INFERRED


def assess(new: Sequence[str], evidence: Sequence[Evidence], known: Iterable[str] = ()) -> Assessment:
    """Judges each new statement. `known` are texts that are in memory already: they count as support."""
    said, model, other, sources = _sort_by_origin(evidence)
    standing = EvidenceText(known)
    judged = tuple(_judge(statement, said, model, other, standing, sources) for statement in new)
    terms = {term for statement in new for term in content_terms(statement)}
    share = sum(said.has(term) or standing.has(term) for term in terms) / len(terms) if terms else 1.0
    foreign = other_language("\n".join(new), typed_text(evidence))
    return Assessment(judged, share, foreign)


def _judge(
    statement: str,
    said: EvidenceText,
    model: EvidenceText,
    other: EvidenceText,
    standing: EvidenceText,
    sources: dict[str, EvidenceText],
) -> JudgedStatement:
    terms = content_terms(statement)
    facts = tuple(fact for fact in hard_facts(statement) if not said.has_fact(fact) and not standing.has_fact(fact))
    origins = tuple(name for name, ground in sources.items() if any(ground.has(term) for term in terms))
    if any(other.has_fact(fact) or model.has_fact(fact) for fact in facts):
        return JudgedStatement(statement, Verdict.UNSUPPORTED, origins, facts)
    if not terms:
        return JudgedStatement(statement, Verdict.UNKNOWN if facts else Verdict.SUPPORTED, origins, facts)
    own = sum(said.has(term) for term in terms)
    stood = sum(standing.has(term) for term in terms)
    if facts:
        return JudgedStatement(statement, Verdict.UNKNOWN, origins, facts)
    if stood >= 0.6 * len(terms) or _enough(own, len(terms)):
        # The user's words and a page's words may be mixed: the page's own words must not outweigh.
        foreign = sum(other.has(term) for term in terms if not said.has(term) and not standing.has(term))
        if foreign <= max(own, stood):
            return JudgedStatement(statement, Verdict.SUPPORTED, origins)
        return JudgedStatement(statement, Verdict.UNSUPPORTED, origins)
    elsewhere = sum(other.has(term) or model.has(term) for term in terms if not said.has(term))
    if elsewhere > own and _enough(elsewhere, len(terms)):
        return JudgedStatement(statement, Verdict.UNSUPPORTED, origins)
    return JudgedStatement(statement, Verdict.UNKNOWN, origins)


def _enough(own: int, total: int) -> bool:
    return own >= ENOUGH * total if own >= 2 else own >= SHORT * total and own > 0


def typed_text(evidence: Sequence[Evidence]) -> str:
    """Everything the user typed, as one text."""
    return "\n".join(_strip_injected(block.text) for block in evidence if block.origin.is_users)


def other_language(statement: str, typed: str) -> bool:
    """Whether a statement is in another language than the typed text, so that shared words cannot be expected."""
    if len(words(typed)) < _LEAST_TYPED:
        return False
    if bool(CJK.search(statement)) != bool(CJK.search(typed)):
        return True
    here, there = language_of(statement), language_of(typed)
    return bool(here and there and here != there)


class EvidenceText:
    """Texts that can support a statement, searchable for words and facts."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.text = "\n".join(texts)

    @cached_property
    def lower(self) -> str:
        return self.text.lower()

    @cached_property
    def _terms(self) -> frozenset[str]:
        return content_terms(self.text)

    @cached_property
    def _prefixes(self) -> frozenset[str]:
        return frozenset(term[:_PREFIX] for term in self._terms if len(term) >= _PREFIX and term.isalpha())

    @cached_property
    def _numbers(self) -> frozenset[str]:
        written = {NUMBER_WORDS[word] for word in words(self.text) if word in NUMBER_WORDS}
        return frozenset({_plain(number) for number in _NUMBER.findall(self.text)} | written)

    @cached_property
    def has_date(self) -> bool:
        """Whether the texts mention a day in any form."""
        return bool(DATE_WORDS.search(self.text) or _ISO_DATE.search(self.text))

    def has(self, term: str) -> bool:
        if term in self._terms:
            return True
        return len(term) >= _PREFIX and term.isalpha() and term.isascii() and term[:_PREFIX] in self._prefixes

    def has_fact(self, fact: str) -> bool:
        """Whether the texts have a number, name or address, even in another spelling: `1,000`, `1k`, `three`."""
        if fact.lower() in self.lower:
            return True
        if _ISO_DATE.fullmatch(fact):
            return self.has_date
        numbers = [_plain(number) for number in _NUMBER.findall(fact)]
        rest = re.sub(r"[\d.,:%+\-_/]+", " ", fact).split()
        if not numbers or "://" in fact:
            return False
        thousands = all(number in self._numbers or _short(number) in self.lower for number in numbers)
        return thousands and all(len(part) <= 2 or part.lower() in self.lower for part in rest)


def _plain(number: str) -> str:
    return number.replace(",", "").rstrip(".") if re.fullmatch(r"\d{1,3}(?:,\d{3})+", number) else number


def _short(number: str) -> str:
    """1000 as people type it: 1k."""
    return f"{number[:-3]}k" if number.endswith("000") and len(number) > 3 else "\0"


def _sort_by_origin(
    evidence: Sequence[Evidence],
) -> tuple[EvidenceText, EvidenceText, EvidenceText, dict[str, EvidenceText]]:
    """What the user typed or confirmed, what the model said, what others said, and each origin alone."""
    said: list[str] = []
    model: list[str] = []
    other: list[str] = []
    by_origin: dict[str, list[str]] = {}
    last_model: int | None = None
    for block in evidence:
        match block.origin:
            case Origin.TYPED | Origin.ENTERED:
                typed = _strip_injected(block.text)
                said.append(typed)
                other += [found[0] for found in _INJECTED.finditer(block.text)]
                if last_model is not None and is_assent(typed):
                    said.append(model[last_model])
                last_model = None
            case Origin.MODEL:
                model.append(block.text)
                last_model = len(model) - 1
                by_origin.setdefault(block.origin.value, []).append(block.text)
            case _:
                other.append(block.text)
                by_origin.setdefault(str(block.origin), []).append(block.text)
    grounds = {name: EvidenceText(texts) for name, texts in by_origin.items()}
    return EvidenceText(said), EvidenceText(model), EvidenceText(other), grounds


def _strip_injected(text: str) -> str:
    """The user's message without text that was inserted on the way."""
    return _INJECTED.sub(" ", text)


def is_assent(text: str) -> bool:
    """Whether a message says yes to the message before it: in few words, or firmly at its beginning."""
    bare = text.strip().lower()
    if not bare:
        return False
    tokens = [token for token in re.findall(r"[^\W_]+|👍|👌|✅|💯", bare) if token not in FILLER]
    if tokens and len(tokens) <= 5 and all(token in ASSENT for token in tokens):
        return True
    if bare.rstrip("!.。！ ") in ASSENT:
        return True
    first = re.split(r"[.,!;:。，！；\n]|\s[-–—]\s", bare, maxsplit=1)[0].strip()
    return first in FIRM_ASSENT and not bare.rstrip().endswith("?")
