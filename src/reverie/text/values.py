"""The values in a statement: numbers with their units, times, dates, weekdays, addresses, names. `hard_facts` are those
that a writer must not invent; `values_of` sorts values by kind, to compare two statements; `subject_of` are the other
words."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from reverie.quick import dataclass
from reverie.text.folding import word_set
from reverie.text.patterns import late
from reverie.text.word_lists import NUMBER_WORDS
from reverie.text.words import content_terms, singular

_LONG_TOKEN = late(r"(\S{200})\S+")
_LONGEST: Final = 200  # characters of a token looked at together, so that no text takes long
_HARD = late(
    r"https?://[^\s)>\]\"'`]+|[\w.+-]+@[\w-]+\.[\w.]+|(?:[\w.-]+/)+[\w.-]+|#[a-z][\w-]{2,}|[A-Z]{2,}-\d+"
    r"|[\w-]+\.(?:io|com|org|net|app|dev|ai|sh|py|ts|tsx|js|go|rs|md|ya?ml|json|toml|sql|cpp|h|c|java|kt|swift)\b"
    r"|\w*\d[\w.,:%+-]*\w|\d"
)
_WEEKDAY = late(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:mon|diens|donners|frei|sams|sonn)tags?\b|\bmittwochs?\b"
    r"|\b(?:lunes|martes|miércoles|jueves|viernes|sábado|domingo)\b|[周週][一二三四五六日]|[月火水木金土日]曜",
    re.IGNORECASE,
)
DATE_NAME = late(
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|may|june|july|august|september|october"
    r"|november|december|easter|christmas",
    re.IGNORECASE,
)
"""A weekday, month or holiday with a capital: not a name."""
_DATE = late(r"\b\d{4}-\d\d(?:-\d\d)?\b")
_TIME = late(r"\b\d{1,2}:\d\d\b")
_PLACE = late(r"https?://\S+|[\w.+-]+@[\w-]+\.[\w.]+|(?<![\w.])/[\w./-]+|\b[a-z][\w-]*(?:\.[a-z][\w-]+){1,}(?:/\S*)?\b")
_SPELLED: Final = "|".join(word for word in NUMBER_WORDS if word.isascii())
_COUNTED = late(
    rf"(?P<before>[^\W\d_]+)?\s?(?<![\w.])(?<!\w-)(?P<number>\d+(?:[.,]\d+)*|(?:{_SPELLED})\b)"
    r"(?:\s?(?P<unit>%|°\s?[CF]\b|[€$£]|[^\W\d_]+))?(?:\s(?P<next>[^\W\d_]+))?",
    re.IGNORECASE,
)
_NAME = late(r"(?<=[\wà-ÿ,;:)] )(?<!\. )[A-ZÀ-ÝŠŽ][\wà-ÿ]+(?:-[\w]+)*|\b[A-Za-z]+\d+[\w.]*\b|`[^`\n]+`")
_SINCE = late(
    r"\b(?:since|seit|desde)\s+(?:the\s+)?(?:(?:early|late|mid)\s+)?[\w-]+(?:\s+\d{4})?\b|\b(?:now|still|currently)\b",
    re.IGNORECASE,
)
_MONTHS: Final = word_set("january february march april may june july august september october november december")
_NO_COUNTS: Final = word_set("one once twice both dozen a an eins uno una un une")


@dataclass(frozen=True, slots=True)
class Values:
    """The values of a statement by kind: `weekday`, `date`, `time`, `name`, or what a number counts."""

    by_kind: tuple[tuple[str, str], ...]

    def of(self, kind: str) -> set[str]:
        return {value for one, value in self.by_kind if one == kind}

    @property
    def kinds(self) -> set[str]:
        return {kind for kind, _ in self.by_kind}

    @property
    def all(self) -> frozenset[str]:
        return frozenset(value for _, value in self.by_kind)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(term for kind, value in self.by_kind if kind == "name" for term in content_terms(value))

    @property
    def terms(self) -> frozenset[str]:
        return frozenset(term for kind, value in self.by_kind if kind != "place" for term in content_terms(value))


@lru_cache(maxsize=16_384)
def values_of(text: str) -> Values:
    """The values in a statement."""
    text = without_since(_LONG_TOKEN.sub(r"\1", text))
    found = [("weekday", match[0].lower().rstrip("s")) for match in _WEEKDAY.finditer(text)]
    found += [("date", match[0]) for match in _DATE.finditer(text)]
    found += [("time", match[0]) for match in _TIME.finditer(text)]
    found += [("place", match[0].rstrip(".,;:").lower()) for match in _PLACE.finditer(text)]
    plain = _PLACE.sub(" ", _TIME.sub(" ", _DATE.sub(" ", text)))
    for match in _COUNTED.finditer(plain):
        number = NUMBER_WORDS.get(match["number"].lower(), match["number"].replace(",", ""))
        unit, then = match["unit"], match["next"]
        if unit and unit.isalpha() and not content_terms(unit):
            then = None  # `20 in compartment 4` does not count compartments
        words = [word.lower() for word in (unit, then, match["before"]) if word]
        if match["number"].lower() in _NO_COUNTS:
            continue
        kinds = [f"number {singular(word)}" for word in words if word == "%" or "°" in word or content_terms(word)]
        found += [(kind, number) for kind in [*kinds, "number"]]
    for match in _NAME.finditer(text):
        name = match[0].strip("`").lower()
        if name not in _MONTHS and not _WEEKDAY.fullmatch(name):
            found.append(("name", name))
    return Values(tuple(found))


@lru_cache(maxsize=16_384)
def subject_of(text: str) -> frozenset[str]:
    """The content words of a statement without its values and without `since …`."""
    bare = _PLACE.sub(" ", without_since(text))
    return content_terms(bare) - values_of(text).terms


def is_news(statement: str) -> bool:
    """Whether a statement says that it is true now, or since some day."""
    return bool(_SINCE.search(statement))


def without_since(text: str) -> str:
    """The text without words that only say since when it is true."""
    return _SINCE.sub(" ", text)


def hard_facts(statement: str) -> list[str]:
    """Numbers, dates, addresses, paths and names with digits: a writer must not invent them."""
    pieces = (token[at : at + _LONGEST] for token in statement.split() for at in range(0, len(token), _LONGEST))
    return [found.rstrip(".,:%)") for piece in pieces for found in _HARD.findall(piece)]
