"""A ranking as people and models see it, for a caller without a session: few inferred memories, none that nobody uses,
and the names that the repository does not have any more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import time

from reverie.memory.directory import Document
from reverie.memory.gate.last_use import UNUSED_DAYS, LastUse
from reverie.memory.gate.review import MarkedStatement, list_statements
from reverie.memory.opening import OpenedMemory
from reverie.memory.recall.ranker import LeftOut, RankedMemory, Ranking
from reverie.memory.recall.reminder import MAX_FILES, limit_inferred
from reverie.memory.references import RepoNames
from reverie.memory.taxonomy import Trust

Leads = dict[str, MarkedStatement | None]
FindMissing = Callable[[str], tuple[str, ...]]


def by_trust(
    ranking: Ranking, memory: OpenedMemory, most: int = MAX_FILES, *, read: Callable[[str], Document] | None = None
) -> tuple[Ranking, Leads]:
    """The ranking as a session shows it, with at most `most` memories. Also the first statement of each memory."""
    root, now = memory.directory.root, time()
    used, leads = LastUse(root), Leads()
    for one in ranking.shown:
        text = (read or memory.directory.read)(one.path).text
        leads[one.path] = next(iter(list_statements(one.path, text, memory.gate.marks, one.mtime)), None)

    def is_inferred(one: RankedMemory) -> bool:
        lead = leads[one.path]
        return lead is not None and lead.trust is Trust.INFERRED

    old = [one for one in ranking.shown if is_inferred(one) and used.is_unused(one.path, now)]
    fresh = [one for one in ranking.shown if one not in old]
    shown = limit_inferred(fresh, is_inferred, most)
    left_out = [LeftOut(one, f"inferred, and not used for {UNUSED_DAYS} days") for one in old]
    beyond = f"not among the best {most}"
    left_out += [
        LeftOut(one, "inferred, and others fit as well" if is_inferred(one) else beyond)
        for one in fresh
        if one not in shown
    ]
    silent = ranking.silent or ("" if shown else "what fits is inferred, and nobody used it for long")
    return replace(ranking, shown=tuple(shown), left_out=(*left_out, *ranking.left_out), silent=silent), leads


def missing_names_in(memory: OpenedMemory) -> FindMissing:
    """Looks up the names in the text of a memory that the repository of the folder does not have."""

    def ripgrep() -> Path:  # imported only for a memory that names a symbol
        from reverie.tools.ripgrep import find_ripgrep

        return find_ripgrep()

    return RepoNames(memory.places.checkout, ripgrep, memory.directory.root).find_missing
