"""How much of what was known a dream would lose, statement by statement.

A statement is a sentence or a bullet of a topic file. It is lost if no statement afterwards shares 60% of its content
words, and unnamed if no reason does either: what is named was taken out on purpose. Pure: texts in, figures out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reverie.memory.gate.evidence import content_terms
from reverie.memory.gate.evidence import statements as statements_and_description
from reverie.memory.taxonomy import is_topic
from reverie.memory.topic_file import TopicFile

SHARED: Final = 0.6
"""The part of a statement's content words that another must share to be the same in other words."""


@dataclass(frozen=True, slots=True)
class Lost:
    """One statement that is nowhere afterwards."""

    file: str
    text: str
    named: bool = False
    """A reason speaks of it."""


@dataclass(frozen=True, slots=True)
class Loss:
    """What a change of topic files would lose."""

    statements: int
    """How many there were before."""
    lost: tuple[Lost, ...]

    @property
    def unnamed(self) -> tuple[Lost, ...]:
        return tuple(one for one in self.lost if not one.named)

    @property
    def share(self) -> float:
        """Of all statements, those that are lost and that no reason names."""
        return len(self.unnamed) / self.statements if self.statements else 0.0


def statements(text: str) -> list[str]:
    """The sentences and bullets of a topic file's body."""
    return statements_and_description(TopicFile.parse(text).body)


def loss(before: Mapping[str, str], after: Mapping[str, str], reasons: Iterable[str] = ()) -> Loss:
    """Compares the topic files of two states of a directory; other files are not looked at."""
    new = Words(one for name, text in after.items() if is_topic(name) for one in statements(text))
    named = Words(_clauses(reasons))
    lost: list[Lost] = []
    count = 0
    for name, text in sorted(before.items()):
        if not is_topic(name):
            continue
        kept_as_it_is = after.get(name) == text
        for one in statements(text):
            terms = frozenset(content_terms(one))
            if not terms:
                continue
            count += 1
            if not kept_as_it_is and not new.shares(terms):
                lost.append(Lost(name, one, named.shares(terms)))
    return Loss(count, tuple(lost))


def _clauses(reasons: Iterable[str]) -> list[str]:
    """A reason as a whole, and each sentence of it: a long one must not name everything by its length alone."""
    found: list[str] = []
    for reason in reasons:
        found += statements_and_description(reason) or [reason]
    return found


class Words:
    """Statements as sets of content words, found by any word they hold."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._holding: dict[str, set[int]] = {}
        self._count = 0
        for text in texts:
            for term in content_terms(text):
                self._holding.setdefault(term, set()).add(self._count)
            self._count += 1

    def shares(self, terms: frozenset[str]) -> bool:
        """Whether one of them has enough of these words."""
        hits: dict[int, int] = {}
        for term in terms:
            for number in self._holding.get(term, ()):
                hits[number] = hits.get(number, 0) + 1
        return max(hits.values(), default=0) >= SHARED * len(terms)


def listed(lost: Sequence[Lost], most: int = 5) -> str:
    """Some of the lost statements, for a sentence."""
    shown = "; ".join(f"{one.file}: “{_short(one.text)}”" for one in lost[:most])
    return shown + (f" and {len(lost) - most} more" if len(lost) > most else "")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 90 else line[:89] + "…"
