"""The texts of all memories, and where a statement is written down already: in the instruction files or in another
memory, in the same words. It changes nothing."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from reverie.memory.scan import FileStat, stat_topics
from reverie.memory.topic_file import decode, statements_of
from reverie.regular_files import read_regular
from reverie.text.folding import fold_statement, longest_word
from reverie.text.sentences import statements

KEPT_BYTES: Final = 64_000_000
"""How much text of memories this process keeps."""


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


def find_written(
    new: Sequence[str], memories: MemoryTexts, instructions: Mapping[str, str], *, without: Collection[str] = ()
) -> str:
    """The instruction file or the memory that has all of these statements, in the same words; empty if there is none.
    `without` names memories that do not count (the written one, and removed ones)."""
    wanted = set(map(fold_statement, new))
    for name, text in instructions.items():
        if wanted and wanted <= set(map(fold_statement, statements(text))):
            return name
    for name, text in memories.sharing([longest_word(max(new, key=len)).lower()], 1) if wanted else ():
        if name not in without and wanted <= set(map(fold_statement, statements_of(text))):
            return name
    return ""
