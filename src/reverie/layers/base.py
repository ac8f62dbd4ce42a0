"""What a layer is: it decides, and the session acts.

`plan(view, now)` is pure and says what it wants done; the session does it; `commit(view, results)` is pure again and
says what to record. So a layer can be tested without a disk, a clock or a model, and never knows the loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from reverie.errors import ModelError
from reverie.storage.transcript.records import Payload
from reverie.storage.transcript.view import View
from reverie.types import JsonObject, Message, Purpose, Usage


@dataclass(frozen=True, slots=True)
class Now:
    """What a plan may know beside the view. `used` and the thresholds are tokens."""

    time: datetime
    used: int
    window: int
    autocompact_at: int
    main_thread: bool
    effective: int = 0
    """What is left of the window for the prompt once room for the reply is set aside."""
    blocking: int = 0
    excess: int | None = None
    """After a prompt that was too long: by how many tokens, where the server said so."""


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Create this file, exclusively; "already there" counts as done."""

    path: Path
    data: bytes


@dataclass(frozen=True, slots=True)
class RunHook:
    event: str
    payload: JsonObject
    match_on: str | None = None


@dataclass(frozen=True, slots=True)
class AskFork:
    """Ask a fork of the conversation, once and without tools; its answer comes back as text.

    `messages` asks about these instead of the conversation as it stands; `system` replaces its system prompt: a plain
    request that shares no cache.
    """

    purpose: Purpose
    directive: str
    max_tokens: int
    messages: tuple[Message, ...] | None = None
    system: str | None = None


@dataclass(frozen=True, slots=True)
class ReadFile:
    """Read this file from disk, at most so many bytes; its text comes back."""

    path: Path
    max_bytes: int


@dataclass(frozen=True, slots=True)
class WaitFor:
    """Wait until no background task of this purpose runs, at most so long; `ok` says whether none does.

    A task that has run for longer than `ignore_after_s` is not waited for.
    """

    purpose: Purpose
    timeout_s: float
    ignore_after_s: float | None = None


Effect: TypeAlias = WriteFile | RunHook | AskFork | ReadFile | WaitFor


@dataclass(frozen=True, slots=True)
class EffectResult:
    """What came of one effect: `ok`, and the answer or the reason it failed; `error` is what a model raised."""

    ok: bool
    text: str = ""
    usage: Usage = field(default_factory=Usage)
    error: ModelError | None = None


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


Steps: TypeAlias = Generator[Sequence[Effect], Sequence[EffectResult], Commit]
"""A plan that goes on as results come in: yields what it wants done, is sent the results, returns what to record.

It is as pure as `plan` and `commit`: whoever drives it does everything that touches the world.
"""


class SteppedStage(Protocol):
    """A stage whose next step depends on what came of the one before."""

    @property
    def flag(self) -> str: ...

    def steps(self, view: View, now: Now) -> Steps | None:
        """The steps, or None when this stage has nothing to do (the cheap, usual answer)."""
        ...


CarryOut: TypeAlias = Callable[[Effect], Awaitable[EffectResult]]
