"""Plain data about a change of memory: who writes, on what evidence, which files, and what the write gate sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from reverie.errors import ReverieError
from reverie.memory.taxonomy import is_index, is_log, is_topic
from reverie.types import Origin


class Writer(StrEnum):
    """Who changes memory."""

    USER = "user"
    """The user, through a command or a slash command."""
    AGENT = "agent"
    """The main agent, with its file tools."""
    EXTRACTION = "extraction"
    DREAM = "dream"
    HAND = "hand"
    """An editor or another program; noticed at the next access."""
    IMPORT = "import"


@dataclass(frozen=True, slots=True)
class Evidence:
    """A block of the conversation that a write rests on."""

    origin: Origin
    """Only the user's own origins count as the user speaking."""
    text: str
    message: str = ""
    """The uuid of the message that has it."""


@dataclass(frozen=True, slots=True)
class WriteInfo:
    """Who writes and why; the version stores it."""

    writer: Writer
    why: str
    session: str = ""
    message: str = ""
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class ProposedWrite:
    """One file that is about to be written, as the gate sees it. The gate judges what is new in `text` compared with
    `before`."""

    name: str
    text: str
    before: str | None
    """The present content; None if the file is new."""
    writer: Writer
    evidence: tuple[Evidence, ...] = ()
    restores: bool = False
    """An earlier version comes back (undo, restore): its origin was judged then, secrets are judged again."""
    together: Mapping[str, str | None] = field(default_factory=lambda: MappingProxyType({}))
    """The other files of the same change with their new content; None if the file is removed."""

    @property
    def is_index(self) -> bool:
        return is_index(self.name)

    @property
    def is_log(self) -> bool:
        return is_log(self.name)

    @property
    def is_topic(self) -> bool:
        return is_topic(self.name)


Gate = Callable[[ProposedWrite], None]
"""Raises a `ReverieError` to refuse a write; the sentence says what to do instead and never repeats a secret. Called
for every file of every write under the directory's lock: it may read the directory, never write to it."""

ABSENT: Final = "absent"
"""As a `Change.base`: the file must not exist."""


@dataclass(frozen=True, slots=True)
class Change:
    """One file of a transaction."""

    name: str
    text: str | None
    """The new content; None removes the file."""
    base: str | None = None
    """The digest of what the caller saw (`Document.digest`), or `ABSENT`. None: any present content."""
    reason: str = ""
    """Why this file changes, where a version has more than one."""


class ChangedUnderneath(ReverieError):
    """Files changed since the caller read them, and nothing was written. Read them again, merge, and try again."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        listed, was = ", ".join(self.names), "was" if len(self.names) == 1 else "were"
        super().__init__(f"{listed} {was} changed by somebody else; nothing was written. Read again, then retry.")
