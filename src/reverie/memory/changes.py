"""Plain data about a change of memory: who writes, on what evidence, which files, and what the write gate sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from reverie.errors import ReverieError
from reverie.memory.taxonomy import Trust, is_index, is_log, is_topic
from reverie.quick import dataclass
from reverie.storage.history.versions import Version
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
    at: str = ""
    """When it was said: an ISO date or time; empty if unknown."""
    is_new: bool = True
    """Whether it belongs to what the writer looks at now. Older text shows where words come from, but anchors
    nothing."""


@dataclass(frozen=True, slots=True)
class WriteInfo:
    """Who writes and why; the version stores it."""

    writer: Writer
    why: str
    session: str = ""
    message: str = ""
    evidence: tuple[Evidence, ...] = ()
    confirms: bool = False
    """The user has seen exactly this text and wants it: an edit of their own, the confirm key."""
    notes: bool = False
    """The conversation cannot be seen from here: what the user did not say is stored as the agent's note, and waits
    only if it names an address or is against what the user confirmed."""


@dataclass(frozen=True, slots=True)
class Mark:
    """How far one statement is trusted, and the words of the user that it rests on."""

    trust: Trust
    how: str = ""
    """`typed`, `entered`, `yes`, `key` (the user confirmed it) or `adopted`; empty for a conclusion of the writer."""
    quote: str = ""
    at: str = ""
    session: str = ""
    message: str = ""
    span: tuple[int, int] = (0, 0)
    """Where the quote is in the message."""
    source: str = ""
    """The origin of adopted text."""
    contradicts: str = ""
    """A memory of the team that says something else."""


@dataclass(frozen=True, slots=True)
class ProposedWrite:
    """One file that is about to be written, as the gate sees it. The gate judges what is new in `text` compared with
    `before`, and what is gone."""

    name: str
    text: str | None
    """The whole new content; None removes the file."""
    before: str | None
    """The present content; None if the file is new."""
    writer: Writer
    evidence: tuple[Evidence, ...] = ()
    restores: bool = False
    """An earlier version comes back (undo, restore): its origin was judged then, secrets are judged again."""
    together: Mapping[str, str | None] = field(default_factory=lambda: MappingProxyType({}))
    """The other files of the same change with their new content; None if the file is removed."""
    session: str = ""
    confirms: bool = False
    notes: bool = False
    is_draft: bool = False
    """More files of the same change may follow: what disappears is judged at the end."""

    @property
    def names(self) -> set[str]:
        """The files of the whole change."""
        return {self.name, *self.together}

    @property
    def is_index(self) -> bool:
        return is_index(self.name)

    @property
    def is_log(self) -> bool:
        return is_log(self.name)

    @property
    def is_topic(self) -> bool:
        return is_topic(self.name)


@dataclass(frozen=True, slots=True)
class Decision:
    """How a write ends. Lines that wait for the user are not part of `text`."""

    text: str | None
    """What is stored: the proposal, a part of it, or what was there before. None: no file."""
    name: str = ""
    """Another name for a new file, if the proposed one is not from the user; empty: as proposed."""
    marks: Mapping[str, Mark] = field(default_factory=lambda: MappingProxyType({}))
    """Each new statement that is stored, with its mark."""
    held: tuple[str, ...] = ()
    """Statements that wait in the inbox."""
    item: str = ""
    """The id in the inbox."""
    note: str = ""
    """One sentence for the writer, if not everything was stored as proposed."""


Gate = Callable[[ProposedWrite], Decision | None]
"""Decides how a write ends (None: as proposed), or raises a `ReverieError` to refuse it; the sentence says what to do
instead and never repeats a secret. Called for every file of every change under the directory's lock: it writes only the
inbox."""

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


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a change: its version, None if nothing changed, and the gate's decision per file."""

    version: Version | None
    decisions: Mapping[str, Decision]

    @property
    def note(self) -> str:
        """What the writer should know: what was kept for the user, and why."""
        return " ".join(one.note for one in self.decisions.values() if one.note)

    @property
    def held(self) -> tuple[str, ...]:
        return tuple(text for one in self.decisions.values() for text in one.held)

    def name_of(self, name: str) -> str:
        """The name that a file has got."""
        decided = self.decisions.get(name)
        return decided.name or name if decided else name


class ChangedUnderneath(ReverieError):
    """Files changed since the caller read them, and nothing was written. Read them again, merge, and try again."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        listed, was = ", ".join(self.names), "was" if len(self.names) == 1 else "were"
        super().__init__(f"{listed} {was} changed by somebody else; nothing was written. Read again, then retry.")
