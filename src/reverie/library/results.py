"""What `Memory` returns: small frozen records for programs. Trust is `confirmed` (the user said it), `inferred` (it
follows from what was said) or None (nobody judged it)."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Literal

from reverie.quick import dataclass


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a memory. `id` is for `Memory.confirm` and `Memory.reject`."""

    id: str
    text: str
    trust: str | None
    evidence: str
    """The words that it rests on, in one line; empty if nothing is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A memory. `name` is its file, relative to the memory directory."""

    name: str
    title: str
    description: str
    type: str | None
    """`user`, `feedback`, `project`, `reference`, or None."""
    text: str
    """The text below the head of the file."""
    trust: str | None
    evidence: str
    modified: datetime
    age: str
    """`today`, `yesterday` or `N days ago`."""
    path: Path
    statements: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled(Remembered):
    """A memory that fits a message. A higher `score` fits better; `why` says which signals it has."""

    score: float
    why: str
    missing: tuple[str, ...] = ()
    """Files and symbols that it names and that the repository does not have any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """What became of a text to remember."""

    action: Literal["added", "confirmed", "unchanged", "held"]
    """`unchanged`: memory says it already. `confirmed`: it does, and these words confirm it. `held`: all of it waits in
    the inbox."""
    name: str
    type: str
    title: str
    trust: str | None
    held: tuple[str, ...] = ()
    """Statements that wait for the user in the inbox."""
    waiting: str = ""
    """The id of what waits, for `Memory.confirm` and `Memory.reject`."""
    warnings: tuple[str, ...] = ()
    """Sentences for the user, such as which other memory may be about the same."""
    note: str = ""
    """One sentence for the agent that wrote, if not everything was stored."""
    undo: str = ""
    """The version, for `Memory.undo`; empty if nothing was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """A memory that was removed. `also_in` are memories that say much the same; `undo` brings it back."""

    name: str
    undo: str
    """The version, for `Memory.undo`; empty if nothing was removed."""
    also_in: tuple[str, ...] = ()
    text: str = ""
    """What it said."""
    waiting: str = ""
    """The id of the question, if statements stay until the user decides."""
    note: str = ""
    """One sentence for the agent that asked, if not everything was removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryVersion:
    """One version of the memory directory. `files` says what it did to each: `add`, `change` or `remove`."""

    id: str
    when: datetime
    writer: str
    """`user`, `agent`, `extraction`, `dream`, `import` or `hand`."""
    subject: str
    why: str
    files: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Something that the user decides about."""

    id: str
    kind: Literal["held", "inferred", "dream"]
    """`held`: it is not a memory yet. `inferred`: it is one, and nobody confirmed it. `dream`: a whole proposal."""
    names: tuple[str, ...]
    """The memories that it is about."""
    statements: tuple[str, ...] = ()
    removes: tuple[str, ...] = ()
    """What would be gone."""
    other_lines: tuple[str, ...] = ()
    """Other lines of the proposed memory: a yes stores them too."""
    question: str = ""
    why: str = ""
    """Why it waits, or the words that it rests on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What became of a decision about something that waited."""

    id: str
    confirmed: bool
    names: tuple[str, ...]
    undo: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """What was learnt from a conversation."""

    changes: dict[str, str]
    """What was done to each memory: `remembered`, `updated` or `forgot`."""
    turns: int
    """How many turns were read now;"""
    skipped: int
    """and how many were read by an earlier call."""
    refused: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """Sentences about what failed, such as a model that did not answer. Other work was done all the same."""
    cost_usd: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Dreamt:
    """What a dream did. `summary` says it in a sentence."""

    outcome: Literal["landed", "unchanged", "proposed"]
    """`landed`: memory changed, as one version. `proposed`: it waits, see `Memory.inbox`."""
    summary: str
    names: tuple[str, ...]
    """The memories that it changed, or would change."""
    waiting: str = ""
    """The id of the proposal, for `Memory.confirm` and `Memory.reject`."""
    undo: str = ""
    cost_usd: float = 0.0
