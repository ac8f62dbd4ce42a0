"""Measures what a dream would lose, statement by statement, and restores files that lose refused content.

A statement is a sentence or a bullet of a topic file. It is lost if no later statement says it, and unnamed if no
reason mentions it either: a named one was removed on purpose.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reverie.layers.l6_dreaming.copy import MemoryCopy
from reverie.memory.index import entries
from reverie.memory.taxonomy import is_index, is_topic
from reverie.memory.topic_file import TopicFile, decode, statements_of
from reverie.text.cutting import shorten
from reverie.text.sameness import StatementIndex
from reverie.text.sentences import statements
from reverie.text.words import content_terms

_TELLING: Final = 4
"""Content words that a line of an index must have to be more than a pointer."""


@dataclass(frozen=True, slots=True)
class LostStatement:
    """One statement that is nowhere afterwards."""

    file: str
    text: str
    named: bool = False


@dataclass(frozen=True, slots=True)
class Loss:
    """What a change of topic files would lose."""

    statements: int
    lost: tuple[LostStatement, ...]

    @property
    def unnamed(self) -> tuple[LostStatement, ...]:
        return tuple(one for one in self.lost if not one.named)

    @property
    def share(self) -> float:
        """The share of all statements that are lost and unnamed."""
        return len(self.unnamed) / self.statements if self.statements else 0.0


def body_statements(text: str) -> list[str]:
    """Returns the sentences and bullets of a topic file's body."""
    return statements(TopicFile.parse(text).body)


def loss(before: Mapping[str, str], after: Mapping[str, str], reasons: Iterable[str] = ()) -> Loss:
    """Compares the topic files of two states of a directory."""
    new = StatementIndex(one for name, text in after.items() if is_topic(name) for one in body_statements(text))
    named = StatementIndex(_clauses(reasons))
    lost: list[LostStatement] = []
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
                lost.append(LostStatement(name, one, named.has(one)))
    return Loss(count, tuple(lost))


def _clauses(reasons: Iterable[str]) -> list[str]:
    """Splits reasons into sentences: a long reason must not name everything by its length alone."""
    found: list[str] = []
    for reason in reasons:
        found += statements(reason) or [reason]
    return found


def quote_lost(lost: Sequence[LostStatement], most: int = 5) -> str:
    """Quotes some of the lost statements."""
    shown = "; ".join(f"{one.file}: “{shorten(one.text, 90)}”" for one in lost[:most])
    return shown + (f" and {len(lost) - most} more" if len(lost) > most else "")


def put_back(copy: MemoryCopy, refused: Mapping[str, str], reasons: Sequence[str]) -> dict[str, str]:
    """Restores files of the copy whose lost content is only in refused texts (by file). Returns why, by file.

    A model may go on after a refusal and remove what it meant to move. Refused texts may hold secrets and are not kept.
    """
    found: dict[str, str] = {}
    held = StatementIndex(one for text in refused.values() for one in statements_of(text))
    while names := set(_find_losers(copy, held, reasons)) - found.keys() if refused else set[str]():
        for name in sorted(names):
            copy.write(name, copy.base[name])
            found[name] = f"{name}: kept, because where its content was to go could not be written"
    return found


def _find_losers(copy: MemoryCopy, held: StatementIndex, reasons: Sequence[str]) -> Iterator[str]:
    """Yields files that lose something that is nowhere else, has no reason, and is in a refused text."""
    before = {name: decode(data) for name, data in copy.base.items()}
    after = {name: decode(data) for name, data in copy.files().items() if data.strip()}
    for one in loss(before, after, reasons).unnamed:
        if held.has(one.text):
            yield one.file
    said = StatementIndex(
        one for name, text in after.items() if is_topic(name) or is_index(name) for one in statements_of(text)
    )
    named = StatementIndex(reasons)
    for name in (name for name in before if is_index(name) and before[name] != after.get(name)):
        for line in _index_statements(before[name]):
            is_telling = len(content_terms(line)) >= _TELLING
            if is_telling and not said.has(line) and not named.has(line) and held.has(line):
                yield name


def _index_statements(index: str) -> Iterator[str]:
    hooks = {entry.line: entry.hook for entry in entries(index)}
    for number, line in enumerate(index.splitlines(), 1):
        yield from statements(hooks.get(number, line))
