"""How much of what was known a dream would lose, statement by statement.

A statement is a sentence or a bullet of a topic file. It is lost if no statement afterwards says it in these words or
in others, and unnamed if no reason does either: what is named was taken out on purpose. Pure: texts in, figures out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reverie.memory.taxonomy import is_topic
from reverie.memory.topic_file import TopicFile
from reverie.text.cutting import shorten
from reverie.text.sameness import StatementIndex
from reverie.text.sentences import statements
from reverie.text.words import content_terms


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


def body_statements(text: str) -> list[str]:
    """The sentences and bullets of a topic file's body."""
    return statements(TopicFile.parse(text).body)


def loss(before: Mapping[str, str], after: Mapping[str, str], reasons: Iterable[str] = ()) -> Loss:
    """Compares the topic files of two states of a directory; other files are not looked at."""
    new = StatementIndex(one for name, text in after.items() if is_topic(name) for one in body_statements(text))
    named = StatementIndex(_clauses(reasons))
    lost: list[Lost] = []
    count = 0
    for name, text in sorted(before.items()):
        if not is_topic(name):
            continue
        kept_as_it_is = after.get(name) == text
        for one in body_statements(text):
            if not content_terms(one):
                continue
            count += 1
            if not kept_as_it_is and not new.has(one):
                lost.append(Lost(name, one, named.has(one)))
    return Loss(count, tuple(lost))


def _clauses(reasons: Iterable[str]) -> list[str]:
    """A reason as a whole, and each sentence of it: a long one must not name everything by its length alone."""
    found: list[str] = []
    for reason in reasons:
        found += statements(reason) or [reason]
    return found


def listed(lost: Sequence[Lost], most: int = 5) -> str:
    """Some of the lost statements, for a sentence."""
    shown = "; ".join(f"{one.file}: “{shorten(one.text, 90)}”" for one in lost[:most])
    return shown + (f" and {len(lost) - most} more" if len(lost) > most else "")
