"""Whether two statements say the same, or speak of the same and say different things of it.

By content words, and by values: numbers with what they count, times, dates, weekdays, names. Careful rather than
complete: two statements are rivals only if their subjects agree and values of one kind differ.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final

from reverie.memory.gate.evidence import hard_facts
from reverie.memory.gate.evidence_words import NUMBER_WORDS
from reverie.memory.secrets.shapes import words
from reverie.memory.upkeep.duplicates import is_negated
from reverie.offline.consolidate.statements import terms_of

SAME: Final = 0.8
"""The share of a statement's content words that stand in one other statement, for it to say nothing new."""
NEAR: Final = 0.6
"""The same for statements that head two files about one thing."""

_WEEKDAY = re.compile(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:mon|diens|donners|frei|sams|sonn)tags?\b|\bmittwochs?\b"
    r"|\b(?:lunes|martes|miércoles|jueves|viernes|sábado|domingo)\b|[周週][一二三四五六日]|[月火水木金土日]曜",
    re.IGNORECASE,
)
_DATE = re.compile(r"\b\d{4}-\d\d(?:-\d\d)?\b")
_TIME = re.compile(r"\b\d{1,2}:\d\d\b")
_PLACE = re.compile(
    r"https?://\S+|[\w.+-]+@[\w-]+\.[\w.]+|(?<![\w.])/[\w./-]+|\b[a-z][\w-]*(?:\.[a-z][\w-]+){1,}(?:/\S*)?\b"
)
_SPELLED: Final = "|".join(word for word in NUMBER_WORDS if word.isascii())
_COUNTED = re.compile(
    rf"(?P<before>[^\W\d_]+)?\s?(?<![\w.])(?<!\w-)(?P<number>\d+(?:[.,]\d+)*|(?:{_SPELLED})\b)"
    r"(?:\s?(?P<unit>%|°\s?[CF]\b|[€$£]|[^\W\d_]+))?(?:\s(?P<next>[^\W\d_]+))?",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=[\wà-ÿ,;:)] )(?<!\. )[A-ZÀ-ÝŠŽ][\wà-ÿ]+(?:-[\w]+)*|\b[A-Za-z]+\d+[\w.]*\b|`[^`\n]+`")
_SINCE = re.compile(
    r"\b(?:since|seit|desde)\s+(?:the\s+)?(?:(?:early|late|mid)\s+)?[\w-]+(?:\s+\d{4})?\b|\b(?:now|still|currently)\b",
    re.IGNORECASE,
)
_MONTHS: Final = words("january february march april may june july august september october november december")
_WORD = re.compile(r"[^\W_]+(?:[.:'’-][^\W_]+)*")
_NO_COUNTS: Final = words("one once twice both dozen a an eins uno una un une")


@dataclass(frozen=True, slots=True)
class Values:
    """What a statement says of its subject, by kind: `weekday`, `date`, `time`, `name`, or what a number counts."""

    by_kind: tuple[tuple[str, str], ...]

    def of(self, kind: str) -> set[str]:
        return {value for one, value in self.by_kind if one == kind}

    @property
    def kinds(self) -> set[str]:
        return {kind for kind, _ in self.by_kind}

    @property
    def names(self) -> frozenset[str]:
        """The content words of its names."""
        return frozenset(term for kind, value in self.by_kind if kind == "name" for term in terms_of(value))

    @property
    def terms(self) -> frozenset[str]:
        return frozenset(term for kind, value in self.by_kind if kind != "place" for term in terms_of(value))


@lru_cache(maxsize=16_384)
def values_of(text: str) -> Values:
    """The values a statement holds."""
    text = _SINCE.sub(" ", text)
    found = [("weekday", match[0].lower().rstrip("s")) for match in _WEEKDAY.finditer(text)]
    found += [("date", match[0]) for match in _DATE.finditer(text)]
    found += [("time", match[0]) for match in _TIME.finditer(text)]
    found += [("place", match[0].rstrip(".,;:").lower()) for match in _PLACE.finditer(text)]
    plain = _PLACE.sub(" ", _TIME.sub(" ", _DATE.sub(" ", text)))
    for match in _COUNTED.finditer(plain):
        number = NUMBER_WORDS.get(match["number"].lower(), match["number"].replace(",", ""))
        unit, then = match["unit"], match["next"]
        if unit and unit.isalpha() and not terms_of(unit):
            then = None  # `20 in compartment 4` counts no compartments
        words = [word.lower() for word in (unit, then, match["before"]) if word]
        if match["number"].lower() in _NO_COUNTS:
            continue
        kinds = [f"number {_singular(word)}" for word in words if word == "%" or "°" in word or terms_of(word)]
        found += [(kind, number) for kind in [*kinds, "number"]]
    for match in _NAME.finditer(text):
        name = match[0].strip("`").lower()
        if name not in _MONTHS and not _WEEKDAY.fullmatch(name):
            found.append(("name", name))
    return Values(tuple(found))


@lru_cache(maxsize=16_384)
def subject_of(text: str) -> frozenset[str]:
    """The content words of a statement without its values and without when it began."""
    bare = _PLACE.sub(" ", _SINCE.sub(" ", text))
    return terms_of(bare) - values_of(text).terms


def says(one: str, other: str, share: float = SAME) -> bool:
    """Whether `other` says what `one` says: nearly the same words, no number of its own, both with or without a not."""
    terms, others = terms_of(one), terms_of(other)
    if not terms or len(terms & others) < share * len(terms):
        return False
    lower = other.lower()
    if any(fact.lower() not in lower for fact in hard_facts(one)):
        return False
    return is_negated(one) == is_negated(other) or len(terms) <= 2 or terms <= others


def is_news(statement: str) -> bool:
    """Whether a statement says itself that it holds since some day, or now."""
    return bool(_SINCE.search(statement))


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """The shared part of the smaller of two sets of words."""
    small = min(len(one), len(other))
    return len(one & other) / small if small else 0.0


def are_rivals(one: str, other: str, *, about_the_same: bool = False) -> bool:
    """Whether two statements cannot both hold. `about_the_same`: their files are about one thing, so less is asked."""
    values, others = values_of(one), values_of(other)
    differing = {
        kind
        for kind in (values.kinds & others.kinds) - {"number"}
        if values.of(kind) - others.of(kind) and others.of(kind) - values.of(kind)
    }
    subject, its = subject_of(one), subject_of(other)
    shared = subject & its
    if about_the_same:
        is_one_subject = bool(shared) and overlap(subject, its) >= NEAR
    else:
        is_one_subject = len(shared) >= 3 and (subject <= its or its <= subject)
    if about_the_same and _is_one_frame(one, other):
        return True
    if not is_one_subject:
        return False
    if differing - {"name"} or ("name" in differing and len(shared) >= 2):
        return True
    denies = is_negated(one) != is_negated(other)
    return denies and not (values.kinds ^ others.kinds) and len(shared) >= 2 and (subject <= its or its <= subject)


def _is_one_frame(one: str, other: str) -> bool:
    """Whether two statements are the same sentence but for what they say in one place, behind what they speak of."""
    words_, others = (_WORD.findall(_SINCE.sub(" ", text).lower()) for text in (one, other))
    changes = [op for op in SequenceMatcher(None, words_, others, autojunk=False).get_opcodes() if op[0] != "equal"]
    swapped = [op for op in changes if op[0] == "replace"]
    same = len(words_) - sum(end - start for _, start, end, _, _ in changes)
    if len(swapped) != 1 or same < 4 or any(max(op[2] - op[1], op[4] - op[3]) > 2 for op in changes):
        return False
    _, start, end, from_, to = swapped[0]
    told, its = (terms_of(" ".join(some)) for some in (words_[start:end], others[from_:to]))
    return bool(told and its and not told & its) and len(terms_of(" ".join(words_[:start]))) >= 2


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
