"""What can be checked in a statement: its words, names, numbers, dates, addresses and commands; and texts that are
searched for them. Pure, in linear time."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import Final

from reverie.quick import dataclass
from reverie.text.patterns import late
from reverie.text.sameness import is_in_order, relations_of
from reverie.text.tongue import language_of
from reverie.text.values import DATE_NAME
from reverie.text.word_lists import NUMBER_WORDS
from reverie.text.words import CJK, content_terms, terms, words

PREFIX: Final = 5
"""Letters by which `calibration` is known in `calibrate`."""
_RUN: Final = 4
_RUN_OF_PAIRS: Final = 7
"""Content words in a row that are a quotation; in scripts without spaces, pairs of characters."""
DATE = late(r"(?<!\d)\d{4}-\d\d(?:-\d\d)?(?!\d)")
_NUMBER = late(r"\d+(?:[.,:]\d+)*")
_PART_OF_HOUR = late(
    r"\b(?:half|quarter|halb|viertel|dreiviertel|y media|cuarto|demie|quart|mezza|meia|половин\w*)\b|半"
)
_NAME = late(
    r"`[^`\n]{2,80}`|(?<!\w)[A-Za-z]+(?:[._-]?\d[\w.-]*\w|\d)|(?<!\w)[a-z]+(?:_[a-z0-9]+)+(?!\w)"
    r"|(?<!\w)[a-z]+[A-Z]\w+|(?<!\w)[A-Z]{2}[A-Z0-9]*+(?!\w)"
)
_CAPITAL = late(r"(?<=[\wà-ÿ,;)] )[A-ZÀ-ÝА-Я][\wà-ÿ]+")
_FULL_NAME = late(r"(?<!\w)[A-ZÀ-Ý][\wà-ÿ]{3,} [A-ZÀ-Ý][\wà-ÿ]{2,}")
_ADDRESS = late(
    r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*+://[^\s)>\]\"'`]+|(?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)+"
    r"|(?<![\w/@.-])(?:[a-z0-9-]+\.)+(?:com|org|net|io|dev|ai|app"
    r"|sh|co|xyz|info|biz|cloud|site|online|test|example|internal|local|ru|cn|de|uk|fr|eu|me|tk|gg|to|ly)(?:[:/][^\s)>\]\"'`]*)?"
    r"(?![\w-]|\.\w)",
    re.IGNORECASE,
)
_PROGRAM: Final = (
    r"curl|wget|npx|npm|pip|pipx|uvx?|yarn|pnpm|brew|apt(?:-get)?|cargo|go (?:run|get|install)|gem|docker|kubectl|ssh"
    r"|scp|nc|bash|sh|chmod|git|sudo|eval|powershell|iwr"
)
_COMMAND = late(
    r"`((?!-)[^`\n]{0,200}[\w./-]\s{1,9}[^`\n]{1,200})`|`((?:\./|~/|/)[^`\s]{1,200}|[^`\s]{1,200}\.(?:sh|ps1|bat|cmd|exe))`"
    rf"|(?<![\w`])((?:{_PROGRAM}) (?:-\S+ )*(?!and |or |the |is |to |for |in |on |with )[\w@./:~-]+)"
)


class EvidenceText:
    """Texts that can support a statement, searchable for words and facts."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.text = "\n".join(texts)

    @cached_property
    def lower(self) -> str:
        return self.text.lower()

    @cached_property
    def terms(self) -> frozenset[str]:
        return content_terms(self.text)

    @cached_property
    def _prefixes(self) -> frozenset[str]:
        return frozenset(term[:PREFIX] for term in self.terms if len(term) >= PREFIX and term.isalpha())

    @cached_property
    def numbers(self) -> frozenset[str]:
        written = {NUMBER_WORDS[word] for word in words(self.text) if word in NUMBER_WORDS}
        return frozenset({plain_number(number) for number in _NUMBER.findall(self.text)} | written)

    @cached_property
    def runs(self) -> frozenset[tuple[str, ...]]:
        return frozenset(runs_of(self.text))

    def has(self, term: str) -> bool:
        if term in self.terms:
            return True
        return len(term) >= PREFIX and term.isalpha() and term[:PREFIX] in self._prefixes

    def count(self, wanted: Iterable[str]) -> int:
        return sum(map(self.has, wanted))

    def has_number(self, number: str) -> bool:
        if number in self.numbers:
            return True
        is_round = number.endswith("000") and len(number) > 3
        return is_round and re.search(rf"(?<![\w.,]){number[:-3]}k(?!\w)", self.lower) is not None

    def has_time(self, time: str) -> bool:
        """Whether the texts have a time of day in words: `half past two`, `halb drei` and `2.30` are 14:30."""
        hour, _, minutes = time.partition(":")
        if not (hour.isdigit() and minutes.isdigit()):
            return False
        if minutes != "00" and minutes not in self.numbers and not _PART_OF_HOUR.search(self.lower):
            return False
        return any(str(one) in self.numbers for one in {int(hour), int(hour) % 12 or 12, int(hour) % 12 + 1})

    def has_fact(self, fact: str) -> bool:
        """Whether the texts have a number, name or address, even in another spelling: `1,000`, `1k`, `three`."""
        if fact.lower() in self.lower:
            return True
        numbers = [plain_number(number) for number in _NUMBER.findall(fact)]
        if not numbers or "://" in fact:
            return False
        rest = re.sub(r"[\d.,:%+\-_/]+", " ", fact).split()
        return all(map(self.has_number, numbers)) and all(len(part) <= 2 or part.lower() in self.lower for part in rest)


@dataclass(frozen=True, slots=True)
class Features:
    """What can be checked in one statement."""

    text: str
    terms: frozenset[str]
    numbers: frozenset[str]
    dates: frozenset[str]
    names: frozenset[str]
    addresses: tuple[str, ...]
    commands: tuple[str, ...]


@lru_cache(maxsize=4_096)
def features(statement: str) -> Features:
    """Takes a statement apart."""
    dates = frozenset(DATE.findall(statement))
    addresses = tuple(found[0].rstrip(".,;:") for found in _ADDRESS.finditer(statement))
    bare = _ADDRESS.sub(" ", DATE.sub(" ", statement))
    commands = tuple(found[found.lastindex or 0] for found in _COMMAND.finditer(bare))
    names = {found.strip("`").lower() for found in _NAME.findall(bare)}
    tongue = language_of(statement)
    if tongue != "de":  # its nouns have capitals too; in a language that we do not recognise, two in a row are a name
        capitals = (
            _CAPITAL.findall(bare) if tongue else [part for two in _FULL_NAME.findall(bare) for part in two.split()]
        )
        names |= {found.lower() for found in capitals if not DATE_NAME.fullmatch(found)}
    numbers = frozenset(plain_number(number) for number in _NUMBER.findall(bare))
    return Features(statement, content_terms(statement), numbers, dates, frozenset(names), addresses, commands)


@lru_cache(maxsize=512)
def runs_of(text: str) -> tuple[tuple[str, ...], ...]:
    """Content words in a row, sentence by sentence."""
    content = content_terms(text)
    found: list[tuple[str, ...]] = []
    for line in re.split(r"[.!?;。！？]+(?=\s|$)|\n\s*\n", text):
        row = [term for term in terms(line) if term in content]
        length = _RUN_OF_PAIRS if CJK.search(line) else _RUN
        found += [tuple(row[at : at + length]) for at in range(len(row) - length + 1)]
    return tuple(found)


def size_of(text: str) -> float:
    """How much a text says: its content words; a pair of characters is half a word."""
    found = content_terms(text)
    return len(found) - sum(map(bool, map(CJK.match, found))) / 2


def plain_number(number: str) -> str:
    """A number in one spelling: `1,000` is 1000, `06:15` is 6:15, `17,5` is 17.5."""
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+", number):
        return number.replace(",", "")
    if re.fullmatch(r"\d+,\d{1,2}", number):
        return number.replace(",", ".")
    return number[1:] if re.fullmatch(r"0\d:\d\d", number) else number


def says_exactly(one: str, other: str) -> bool:
    """Whether `other` has every word, number and relation of a statement, in the same order."""
    found, theirs = features(one), features(other)
    return (
        found.terms <= theirs.terms
        and found.numbers <= theirs.numbers
        and relations_of(one) == relations_of(other) & relations_of(one)
        and is_in_order(one, other)
    )
