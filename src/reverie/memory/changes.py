"""What a change of memory is made of: who writes, on what evidence, which files, and what the write gate is shown.

Plain data shared by the directory, the write gate and every writer. Nothing here touches the disk.
"""

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
    """A person, through a command or a slash command."""
    AGENT = "agent"
    """The main agent, with its file tools."""
    EXTRACTION = "extraction"
    DREAM = "dream"
    HAND = "hand"
    """Somebody with an editor, or another program; noticed at the next touch."""
    IMPORT = "import"


@dataclass(frozen=True, slots=True)
class Evidence:
    """A block of the conversation that a write rests on."""

    origin: Origin
    """Only `PERSON` is the user speaking."""
    text: str
    message: str = ""
    """The uuid of the message it stands in."""


@dataclass(frozen=True, slots=True)
class WriteInfo:
    """Who writes and why; ends up in the version."""

    writer: Writer
    why: str
    session: str = ""
    message: str = ""
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class ProposedWrite:
    """One file about to be written, as the gate sees it. Judge what is new in `text` compared with `before`."""

    name: str
    """Relative to the memory directory."""
    text: str
    before: str | None
    """What stands there now; None if the file is new."""
    writer: Writer
    evidence: tuple[Evidence, ...] = ()
    restores: bool = False
    """An earlier version comes back (undo, restore): its origin was judged then; secrets are judged again."""
    together: Mapping[str, str | None] = field(default_factory=lambda: MappingProxyType({}))
    """The other files of the same change with what they shall hold; None: the file goes."""

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
"""Raises a `ReverieError` to refuse; the sentence says what to do instead and never repeats a secret.

Called for every file of every write, under the directory's lock: it may read the directory, never write to it.
"""

ABSENT: Final = "absent"
"""As a `Change.base`: the file must not exist."""


@dataclass(frozen=True, slots=True)
class Change:
    """One file of a transaction."""

    name: str
    text: str | None
    """What the file shall hold; None removes it."""
    base: str | None = None
    """The digest of what the caller saw (`Document.digest`), or `ABSENT`. None: whatever stands there now."""
    reason: str = ""
    """Why this file, where a version has more than one."""


class ChangedUnderneath(ReverieError):
    """Files are no longer what the caller saw; nothing was written. Read them again, merge, and try again."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        listed = ", ".join(self.names)
        was = "was" if len(self.names) == 1 else "were"
        super().__init__(
            f"{listed} {was} changed by somebody else meanwhile; nothing was written. Read again, then retry."
        )
