"""Measures what a dream would lose, statement by statement, and restores files that lose refused content.

A statement is a sentence or a bullet of a topic file. It is lost if no later statement says it, and unnamed if no
reason mentions it either: a named one was removed on purpose.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from reverie.layers.l6_dreaming.copy import MemoryCopy
from reverie.memory.gate.lines import put_back as put_lines_back
from reverie.memory.gate.lines import put_in_place
from reverie.memory.index import entries
from reverie.memory.taxonomy import is_index, is_topic
from reverie.memory.topic_file import TopicFile, body_statements, decode, encode, statements_of
from reverie.quick import dataclass
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


def put_back(copy: MemoryCopy, reasons: Sequence[str]) -> dict[str, str]:
    """Restores what a dream removed without naming it, in files of the copy. Returns why, by file.

    For a dream of which something was kept for the user: what it removed elsewhere may have been meant to move there.
    """
    before = {name: decode(data) for name, data in copy.base.items()}
    after = {name: decode(data) for name, data in copy.files().items() if data.strip()}
    gone: dict[str, list[str]] = {}
    for one in loss(before, after, reasons).unnamed:
        if not _is_reworded(one.text, body_statements(after.get(one.file, ""))):
            gone.setdefault(one.file, []).append(one.text)
    for name, texts in sorted(gone.items()):
        old, new = TopicFile.parse(before[name]), TopicFile.parse(after.get(name, ""))
        text = new.with_changes(body=put_lines_back(old.body, new.body, texts)).text if name in after else old.text
        copy.write(name, encode(text))
    said = StatementIndex(one for text in after.values() for one in statements_of(text))
    named = StatementIndex(reasons)
    there = {name for name in (*after, *gone) if is_topic(name)}
    for name in [name for name in before if is_index(name) and before[name] != after.get(name)]:
        old, now = before[name].splitlines(), after.get(name, "").splitlines()
        files = {entry.line: _below(name, entry.file) for entry in entries(before[name])}
        hooks = {entry.line: entry.hook for entry in entries(before[name])}
        lost = [
            line
            for number, line in enumerate(old, 1)
            if (number not in files or files[number] in there)
            and (files.get(number) in gone or _tells_more(hooks.get(number, line), said, named))
        ]
        if lost:
            again = {files[number] for number, line in enumerate(old, 1) if line in lost and number in files}
            listed = {entry.line: _below(name, entry.file) for entry in entries(after.get(name, ""))}
            now = [line for number, line in enumerate(now, 1) if listed.get(number) not in again]
            copy.write(name, encode("\n".join(put_in_place(old, now, lost)) + "\n"))
            gone[name] = lost
    return {
        name: f"{name}: kept, because it was gone without a reason, and a part of the dream waits for you"
        for name in gone
    }


def _is_reworded(text: str, now: Sequence[str]) -> bool:
    """Whether a statement of the same file has half of its words: a date that was written out changes the others."""
    terms = content_terms(text)
    return any(2 * len(terms & content_terms(one)) >= len(terms) for one in now)


def _tells_more(line: str, said: StatementIndex, named: StatementIndex) -> bool:
    """Whether a line of an index says something that no file and no reason says."""
    return any(
        len(content_terms(one)) >= _TELLING and not said.has(one) and not named.has(one) for one in statements(line)
    )


def _below(index: str, file: str) -> str:
    folder = index.rpartition("/")[0]
    return f"{folder}/{file}" if folder else file
