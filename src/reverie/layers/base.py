"""What a layer is: it decides, and the session acts.

`plan(view, now)` is pure and says what it wants done; the session does it; `commit(view, results)` is pure again and
says what to record. So a layer can be tested without a disk, a clock or a model, and never knows the loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from reverie.storage.records import Payload
from reverie.storage.view import View
from reverie.types import JsonObject, Message, Purpose, Usage


@dataclass(frozen=True, slots=True)
class Now:
    """What a plan may know beside the view. `used` and the thresholds are tokens."""

    time: datetime
    used: int
    window: int
    autocompact_at: int
    main_thread: bool
    manual: str | None = None


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Create this file, exclusively; "already there" counts as done."""

    path: Path
    data: bytes


@dataclass(frozen=True, slots=True)
class RunHook:
    event: str
    payload: JsonObject


@dataclass(frozen=True, slots=True)
class AskFork:
    """Ask a fork of the conversation; its answer comes back as text."""

    purpose: Purpose
    directive: str
    max_tokens: int


@dataclass(frozen=True, slots=True)
class ReadFile:
    """Read this file from disk, at most so many bytes; its text comes back."""

    path: Path
    max_bytes: int


@dataclass(frozen=True, slots=True)
class WaitFor:
    """Wait until no background task of this purpose runs, at most so long; `ok` says whether none does."""

    purpose: Purpose
    timeout_s: float


Effect: TypeAlias = WriteFile | RunHook | AskFork | ReadFile | WaitFor


@dataclass(frozen=True, slots=True)
class EffectResult:
    """What came of one effect: `ok`, and the answer or the reason it failed."""

    ok: bool
    text: str = ""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Append:
    """One record to append, with fields of its own (a uuid that others name, what it belongs to)."""

    what: Payload | Message
    fields: JsonObject = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Commit:
    """What a stage wants recorded, in order. `breaks_prefix` announces a break of the prefix and says why."""

    payloads: tuple[Payload, ...] = ()
    appends: tuple[Append, ...] = ()
    breaks_prefix: str | None = None
    notice: str | None = None


class Stage(Protocol):
    @property
    def flag(self) -> str:
        """The kill switch this stage obeys; empty if each of its parts asks one of its own."""
        ...

    def plan(self, view: View, now: Now) -> Sequence[Effect] | None:
        """What should be done, or None when this stage has nothing to do (the cheap, usual answer)."""
        ...

    def commit(self, view: View, now: Now, results: Sequence[EffectResult]) -> Commit: ...


CarryOut: TypeAlias = Callable[[Effect], Awaitable[EffectResult]]
