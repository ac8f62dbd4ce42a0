"""What a layer is: it decides, and the session acts.

`plan(view, now)` is pure and says what it wants done; the session does it; `commit(view, results)` is pure again and
says what to record. So a layer can be tested without a disk, a clock or a model, and never knows the loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

from reverie.errors import ModelError
from reverie.events import Event
from reverie.permissions.rules import Decision, ToolCall
from reverie.storage.transcript.records import Payload
from reverie.storage.transcript.view import View
from reverie.tools.base import Keeper, PathMapping, SeenFile, Tool, ToolOutput
from reverie.types import Block, JsonObject, Message, Purpose, ToolUseBlock, Usage

T = TypeVar("T")


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


class BreakCause(StrEnum):
    """Why a request does not extend the one before it."""

    CLEARED = "cleared"
    FOLDED = "folded"
    COMPACTED = "compacted"
    TAKEN_BACK = "taken_back"
    EMPTIED = "emptied"
    RESUMED = "resumed"
    HEADER = "header"
    MODEL = "model"
    IMAGES = "images"
    SERVER_EDITS = "server_edits"
    APART = "apart"
    """Another conversation begins here, with a prefix of its own."""


@dataclass(frozen=True, slots=True)
class Break:
    """An announced break of the prefix: what causes it, and a sentence for the user."""

    cause: BreakCause
    why: str


@dataclass(frozen=True, slots=True)
class Commit:
    """What a stage wants recorded, in order. `breaks` announces a break of the prefix."""

    payloads: tuple[Payload, ...] = ()
    appends: tuple[Append, ...] = ()
    breaks: Break | None = None
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


class Companion:
    """Somebody beside a conversation who is told of its rounds and may add to them. The answers here add nothing."""

    async def after_response(self) -> None:
        """A response is recorded, and its tools have not run yet."""

    async def after_result(self, call: ToolUseBlock, output: ToolOutput) -> Sequence[Block]:
        """A result is recorded; what comes back is shown to the model beside the results."""
        del call, output
        return ()

    async def between_rounds(self) -> Sequence[Block]:
        """All results of a round are in; what comes back is shown to the model beside them."""
        return ()

    async def may_stop(self, answer: str) -> str | Sequence[Block] | None:
        """The model is done; a reason, or something that arrived, means that it must go on."""
        del answer
        return None


@dataclass(frozen=True, slots=True)
class ForkResult:
    """What a fork came to. `denied` lists the calls it was refused, as `Tool: reason`."""

    reason: str
    text: str
    usage: Usage
    rounds: int
    denied: tuple[str, ...]


class Fork(Protocol):
    """A conversation at one moment, for a layer that needs an agent of its own: same bytes, so the same cache."""

    @property
    def view(self) -> View: ...

    @property
    def tools(self) -> Mapping[str, Tool]: ...

    async def run(
        self,
        directive: str,
        *,
        purpose: Purpose,
        permission: Callable[[ToolCall], Awaitable[Decision]],
        max_rounds: int,
        max_tokens: int | None = None,
        tools: Mapping[str, Tool] | None = None,
        map_path: PathMapping | None = None,
        keeper: Callable[[Path], Keeper | None] | None = None,
        seen: Mapping[Path, SeenFile] | None = None,
        progress: Callable[[str], None] = ...,
        emit: Callable[[Event], None] = ...,
        kind: str = "",
        question: str = "",
        enough: Callable[[Sequence[ToolUseBlock]], bool] | None = None,
    ) -> ForkResult:
        """Runs the fork to its end. `permission` decides every call.

        `tools` run in place of the conversation's, under the same names and schemas. `keeper` writes files by rules of
        its own, `seen` may be edited without having been read. `question` is what the user asks, where they do.
        `enough` says of calls that went well whether the fork is done with them.
        """
        ...

    def afresh(self, system: str, tools: Sequence[str], *, model: str = "") -> Fork:
        """The beginning of a conversation of its own: this system prompt, and only these tools."""
        ...


class Forks(Protocol):
    """Where the runner of a layer gets its forks. The session passes it in."""

    def now(self) -> Fork:
        """The conversation as it is when the fork runs."""
        ...

    def kept(self) -> Fork:
        """The conversation as it is now, for a fork that runs later."""
        ...

    def may_begin(self, purpose: Purpose) -> str | None:
        """None if such work may begin, by whichever model; else why not."""
        ...

    def unwanted(self, purpose: Purpose) -> str | None:
        """Why the conversation's own model must not be asked for such work now; None if it may be."""
        ...

    def takes_over(self, purpose: Purpose, why: str) -> None:
        """Says, once per reason, that something else than the conversation's model does such work."""
        ...

    async def attempt(self, purpose: Purpose, fork: Fork, work: Callable[[Fork], Awaitable[T]]) -> T:
        """Has the work done by the conversation's model, or by the embedded one where that one cannot.

        The second time `work` gets another fork and starts from the beginning: it must be safe to start twice.
        """
        ...
