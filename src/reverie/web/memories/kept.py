"""What the pages about memory keep between visits, as long as the server runs. Never written to disk."""

from __future__ import annotations

import secrets
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from reverie.quick import dataclass

if TYPE_CHECKING:
    from reverie.layers.l6_dreaming.proposal import Proposal
    from reverie.web.memories.dream_runs import DreamRun
    from reverie.web.memories.shelf import Shelf
    from reverie.web.memories.versions import VersionBook
    from reverie.web.site import Site

T = TypeVar("T")
Stamp = tuple[int, int]
Missing = tuple[float, tuple[str, ...]]
Recalled = list[tuple[str, str, tuple[str, ...]]]

_MOST: Final = 20


@dataclass(eq=False, slots=True)
class Kept:
    """All of it, most of it by the root of a memory directory."""

    shelves: dict[Path, Shelf] = field(default_factory=dict[Path, "Shelf"])
    books: dict[Path, VersionBook] = field(default_factory=dict[Path, "VersionBook"])
    runs: dict[Path, DreamRun] = field(default_factory=dict[Path, "DreamRun"])
    missing: dict[tuple[Path, str], Missing] = field(default_factory=dict[tuple[Path, str], Missing])
    """Names that a repository does not have, by checkout and text."""
    recalled: dict[Path, tuple[Stamp, Recalled]] = field(default_factory=dict[Path, tuple[Stamp, Recalled]])
    """What recall showed, by transcript."""
    drafts: dict[str, str] = field(default_factory=dict[str, str])
    """Texts that could not be saved, until the user has seen them."""
    decided: dict[str, Proposal] = field(default_factory=dict[str, "Proposal"])
    """Dreams that the user has decided about and may want back."""

    @classmethod
    def of(cls, site: Site) -> Kept:
        return site.keep(cls, cls)

    def keep_draft(self, text: str) -> str:
        """Keeps a text; returns the name by which the next page finds it."""
        name = secrets.token_hex(6)
        _add(self.drafts, name, text)
        return name

    def keep_decided(self, proposal: Proposal) -> None:
        _add(self.decided, proposal.id, proposal)


def _add(kept: dict[str, T], name: str, value: T) -> None:
    kept[name] = value
    while len(kept) > _MOST:
        kept.pop(next(iter(kept)))
