"""Finds a statement that is written down already, in the instruction files or in another memory. Compares content
words, statement by statement, so that other wording and order do not hide a duplicate; other numbers or a `not` make
another statement. It changes nothing."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from reverie.memory.scan import FileStat, stat_topics
from reverie.memory.topic_file import decode, statements_of
from reverie.quick import dataclass
from reverie.regular_files import read_regular
from reverie.text.sameness import find_repeated
from reverie.text.sentences import statements
from reverie.text.words import content_terms

MIN_TERMS: Final = 3
"""With fewer content words, two statements are alike by chance."""
KEPT_BYTES: Final = 64_000_000
"""How much text of memories this process keeps."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Where a statement exists already. `where` is a memory's relative path or the name of an instruction file;
    `existing` is the statement there."""

    where: str
    is_memory: bool
    statement: str
    existing: str


class MemoryTexts:
    """The texts of all memories. Keep one per directory: unchanged files are not read again."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._texts: dict[str, tuple[FileStat, str, str]] = {}

    def texts(self) -> Mapping[str, str]:
        """Every topic file's text by its relative path."""
        self._refresh()
        return {name: text for name, (_, text, _) in self._texts.items()}

    def sharing(self, terms: Collection[str], least: int) -> Iterator[tuple[str, str]]:
        """(name, text) of the memories that have at least `least` of the terms."""
        self._refresh()
        for name, (_, text, lower) in self._texts.items():
            if sum(term in lower for term in terms) >= least:
                yield name, text

    def _refresh(self) -> None:
        found = {stat.path: stat for stat in stat_topics(self._root)[0]}
        for name in [name for name in self._texts if name not in found]:
            del self._texts[name]
        held = sum(stat.size for stat, _, _ in self._texts.values())
        for name, stat in found.items():
            kept = self._texts.get(name)
            if kept is not None and kept[0] == stat:
                continue
            held += stat.size - (kept[0].size if kept else 0)
            if held > KEPT_BYTES:
                break
            try:
                text = decode(read_regular(Path(os.path.join(self._root, name))))  # noqa: PTH118  thousands of files
            except OSError:
                self._texts.pop(name, None)
                continue
            self._texts[name] = (stat, text, text.lower())


def find_duplicate(
    new: Sequence[str], memories: MemoryTexts | None, instructions: Mapping[str, str], *, without: Iterable[str] = ()
) -> Duplicate | None:
    """Where most of these statements exist already, or None. `instructions` are the texts of the instruction files by
    name; `without` names memories that do not count (the written one, and removed ones)."""
    for where, text in instructions.items():
        if found := find_repeated(new, statements(text)):
            return Duplicate(where, False, *found)
    terms = frozenset[str]().union(*map(content_terms, new))
    if memories is None or not terms:
        return None
    left_out = frozenset(without)
    for name, text in memories.sharing(terms, max(2, (len(terms) + 1) // 2)):
        if name not in left_out and (found := find_repeated(new, statements_of(text), least=MIN_TERMS)):
            return Duplicate(name, True, *found)
    return None
