"""Whether something is written down already, in the instruction files or in another memory.

Compared by content words, statement by statement, so that other wording and order do not hide a double; other numbers
or a `not` make another statement. Existing memories are read from disk, kept by mtime and size, and only those that
share words with the new text are looked at closely. It changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from reverie.memory.gate.evidence import content_terms, hard_facts, statements
from reverie.memory.gate.evidence_words import NEGATIONS
from reverie.memory.recall.ranking.files import FileStat, scan
from reverie.memory.recall.ranking.text import words
from reverie.memory.topic_file import decode
from reverie.regular_files import read_regular

NEAR: Final = 0.8
"""The share of a statement's content words that stand in one statement elsewhere."""
WHOLE: Final = 0.6
"""The share of a memory's statements that must be doubles for it to be one."""
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

    def sharing(self, terms: Sequence[str], least: int) -> Iterator[tuple[str, str]]:
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
    judged = [(statement, content_terms(statement)) for statement in new]
    judged = [(statement, terms) for statement, terms in judged if terms]
    if not judged:
        return None
    for where, text in instructions.items():
        found = _covered(judged, _plain_statements(text), least=1)
        if found:
            return Double(where, False, *found)
    left_out = frozenset(without)
    if standing is None:
        return None
    terms = list(dict.fromkeys(term for _, found in judged for term in found))
    for name, text in standing.sharing(terms, max(2, len(terms) // 2)):
        found = _covered(judged, statements(text), least=LEAST_TERMS) if name not in left_out else None
        if found:
            return Double(name, True, *found)
    return None


def _covered(new: Sequence[tuple[str, list[str]]], there: Sequence[str], *, least: int) -> tuple[str, str] | None:
    """The first double, if so many of the new statements are doubles that nothing much would be added."""
    # Two statements in a row may stand in one sentence of the other text.
    spans = [*there, *(f"{one} {two}" for one, two in pairwise(there) if is_negated(one) == is_negated(two))]
    standing = [(statement, frozenset(content_terms(statement))) for statement in spans]
    whole = frozenset[str]().union(*(terms for _, terms in standing)) if standing else frozenset[str]()
    pairs: list[tuple[str, str]] = []
    said = 0
    for statement, terms in new:
        said += sum(term in whole for term in terms)
        for other, others in standing:
            if len(terms) >= least and is_double(statement, terms, other, others):
                pairs.append((statement, other))
                break
    if not pairs:
        return None
    total = sum(len(terms) for _, terms in new)
    return pairs[0] if len(pairs) >= WHOLE * len(new) or said >= NEAR * total else None


def is_double(statement: str, terms: Sequence[str], other: str, others: frozenset[str]) -> bool:
    """Whether two statements say the same: nearly the same words, the same numbers, both with or without a `not`."""
    if sum(term in others for term in terms) < NEAR * len(terms):
        return False
    if set(hard_facts(statement)) - set(hard_facts(other)):
        return False
    return is_negated(statement) == is_negated(other) or len(terms) <= 2


def is_negated(statement: str) -> bool:
    """Whether a statement denies or forbids something."""
    return any(word in NEGATIONS for word in words(statement)) or any(
        mark in statement for mark in ("不", "没", "ない", "않")
    )


def _plain_statements(text: str) -> list[str]:
    """Statements of a text that is no topic file."""
    return statements(f"\n{text}")
