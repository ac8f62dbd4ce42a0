"""Whether something is written down already, in the instruction files or in another memory.

Compared by content words, statement by statement, so that other wording and order do not hide a double; other numbers
or a `not` make another statement. Existing memories are read from disk, kept by mtime and size, and only those that
share words with the new text are looked at closely. It changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reverie.memory.recall.ranking.files import FileStat, scan
from reverie.memory.topic_file import decode, said_in
from reverie.regular_files import read_regular
from reverie.text.sameness import repeated
from reverie.text.sentences import statements
from reverie.text.words import content_terms

LEAST_TERMS: Final = 3
"""Below so many content words two statements of memories are alike by chance."""
KEPT_BYTES: Final = 64_000_000
"""How much text of existing memories is kept in this process."""


@dataclass(frozen=True, slots=True)
class Double:
    """Where a new text stands already."""

    where: str
    """A memory's relative path, or the name of an instruction file."""
    is_memory: bool
    statement: str
    """The new statement that is a double."""
    standing: str
    """The one that stands there."""


class Standing:
    """The memories there are, as texts. Keep one for a directory: what has not changed is not read again."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._texts: dict[str, tuple[FileStat, str, str]] = {}

    def texts(self) -> Mapping[str, str]:
        """Every topic file's text by its relative path."""
        self._refresh()
        return {name: text for name, (_, text, _) in self._texts.items()}

    def sharing(self, terms: Collection[str], least: int) -> Iterator[tuple[str, str]]:
        """(name, text) of the memories in which at least so many of the terms occur."""
        self._refresh()
        for name, (_, text, lower) in self._texts.items():
            if sum(term in lower for term in terms) >= least:
                yield name, text

    def _refresh(self) -> None:
        found = {stat.path: stat for stat in scan(self._root).files}
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


def find_double(
    new: Sequence[str], standing: Standing | None, instructions: Mapping[str, str], *, without: Iterable[str] = ()
) -> Double | None:
    """Where most of these statements stand already, or None.

    `instructions`: text of the instruction files by name. `without`: memories that do not count (the one being
    written, those the same change takes away).
    """
    for where, text in instructions.items():
        if found := repeated(new, statements(text)):
            return Double(where, False, *found)
    terms = frozenset[str]().union(*map(content_terms, new))
    if standing is None or not terms:
        return None
    left_out = frozenset(without)
    for name, text in standing.sharing(terms, max(2, (len(terms) + 1) // 2)):
        if name not in left_out and (found := repeated(new, said_in(text), least=LEAST_TERMS)):
            return Double(name, True, *found)
    return None
