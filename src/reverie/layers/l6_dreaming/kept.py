"""What a dream wanted to move into a file that it was not allowed to write stays where it was.

A mind that is refused one write may go on and remove what it meant to have carried over. The texts that were refused
are known until the dream is over: a file that loses what only they would have held is put back as it was. They are
looked at in memory alone and never kept, since a refusal may be about a secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from reverie.layers.l6_dreaming.copy import MemoryCopy
from reverie.layers.l6_dreaming.loss import loss
from reverie.memory.index import entries
from reverie.memory.taxonomy import is_index, is_topic
from reverie.memory.topic_file import decode, statements_of
from reverie.text.sameness import StatementIndex
from reverie.text.sentences import statements
from reverie.text.words import content_terms

_TELLING: Final = 4
"""Content words that a line of an index must have to be more than a pointer."""


def put_back(copy: MemoryCopy, refused: Mapping[str, str], reasons: Sequence[str]) -> dict[str, str]:
    """Puts files of the copy back that lost what the refused texts (by file) were to hold; why, by file."""
    found: dict[str, str] = {}
    if not refused:
        return found
    held = StatementIndex(one for text in refused.values() for one in statements_of(text))
    while names := set(_robbed(copy, held, reasons)) - found.keys():
        for name in sorted(names):
            copy.write(name, copy.base[name])
            found[name] = f"{name}: kept, because where its content was to go could not be written"
    return found


def _robbed(copy: MemoryCopy, held: StatementIndex, reasons: Sequence[str]) -> Iterator[str]:
    """The files that lose something which stands nowhere now, names no reason, and would stand in a refused text."""
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
        for line in _said_in(before[name]):
            is_telling = len(content_terms(line)) >= _TELLING
            if is_telling and not said.has(line) and not named.has(line) and held.has(line):
                yield name


def _said_in(index: str) -> Iterator[str]:
    """What an index says itself: the hooks of its lines, and lines that point nowhere."""
    hooks = {entry.line: entry.hook for entry in entries(index)}
    for number, line in enumerate(index.splitlines(), 1):
        yield from statements(hooks.get(number, line))
