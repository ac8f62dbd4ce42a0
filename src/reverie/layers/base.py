"""What a layer is: it decides, and the session acts.

`plan(view, now)` is pure and returns the wanted effects; the session carries them out; `commit(view, results)` is pure
too and returns what to record. So a layer can be tested without a disk, a clock or a model.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

from reverie.errors import ModelError
from reverie.events import Event
from reverie.models.base import Model
from reverie.permissions.rules import Decision, ToolCall
from reverie.quick import dataclass
from reverie.storage.transcript.records import Payload
from reverie.storage.transcript.view import Entry, View
from reverie.tools.base import Keeper, PathMapping, SeenFile, Tool, ToolOutput
from reverie.types import Block, JsonObject, Message, Purpose, ToolUseBlock, Usage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Now:
    """What a plan may know besides the view. `used` and the thresholds are tokens."""

    time: datetime
    used: int
    window: int
    autocompact_at: int
    main_thread: bool
    effective: int = 0
    """The window minus the room for the response."""
    blocking: int = 0
    broken: bool = False
    """The next request reads nothing from the cache, whatever a layer does: the model or the header changed."""
    excess: int | None = None
    """After a prompt that was too long: by how many tokens, if the server said it."""


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Creates this file exclusively. If the file is already there, the effect counts as done."""

    path: Path
    data: bytes


@dataclass(frozen=True, slots=True)
class RunHook:
    event: str
    payload: JsonObject
    match_on: str | None = None


@dataclass(frozen=True, slots=True)
class AskFork:
    """Asks a fork of the conversation once, without tools, and returns its answer as text.

    `messages` replaces the messages of the conversation, `system` its system prompt: then the request shares no cache.
    """

    purpose: Purpose
    directive: str
    max_tokens: int
    messages: tuple[Message, ...] | None = None
    system: str | None = None


@dataclass(frozen=True, slots=True)
class ReadFile:
    """Reads at most `max_bytes` of this file and returns its text."""

    path: Path
    max_bytes: int


@dataclass(frozen=True, slots=True)
class WaitFor:
    """Waits until no background task of this purpose runs; `ok` says whether none does.

    Ignores tasks that have run for longer than `ignore_after_s`.
    """

    purpose: Purpose
    timeout_s: float
    ignore_after_s: float | None = None


Effect: TypeAlias = WriteFile | RunHook | AskFork | ReadFile | WaitFor


@dataclass(frozen=True, slots=True)
class EffectResult:
    """The result of one effect: the answer or the reason why it failed; `error` is what a model raised.

    `cut_off`: the answer was longer than allowed.
    """

    ok: bool
    text: str = ""
    usage: Usage = field(default_factory=Usage)
    error: ModelError | None = None
    cut_off: bool = False


@dataclass(frozen=True, slots=True)
class Append:
    """One record to append, with fields of its own (such as a uuid that others name)."""

    what: Payload | Message
    fields: JsonObject = field(default_factory=dict[str, Any])


class BreakCause(StrEnum):
    """Why a request does not continue the last one."""

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
    """Another conversation begins here, with its own prefix."""


@dataclass(frozen=True, slots=True)
class Break:
    """An announced break of the prefix: its cause, and a sentence for the user."""

    cause: BreakCause
    why: str


@dataclass(frozen=True, slots=True)
class StageCommit:
    """What a stage wants to record, in order. `breaks` announces a break of the prefix."""

    payloads: tuple[Payload, ...] = ()
    appends: tuple[Append, ...] = ()
    breaks: Break | None = None
    notice: str | None = None


class Stage(Protocol):
    @property
    def flag(self) -> str:
        """The kill switch of this stage; empty if each of its parts has its own."""
        ...

    def plan(self, view: View, now: Now) -> Sequence[Effect] | None:
        """Returns the wanted effects, or None if this stage has nothing to do (the cheap, usual answer)."""
        ...

    def commit(self, view: View, now: Now, results: Sequence[EffectResult]) -> StageCommit: ...


Steps: TypeAlias = Generator[Sequence[Effect], Sequence[EffectResult], StageCommit]
"""A plan in steps: yields the wanted effects, receives their results, returns what to record. Pure, like `plan`."""


class SteppedStage(Protocol):
    """A stage whose next step depends on the results of the one before."""

    @property
    def flag(self) -> str: ...

    def steps(self, view: View, now: Now) -> Steps | None:
        """Returns the steps, or None if this stage has nothing to do (the cheap, usual answer)."""
        ...


CarryOut: TypeAlias = Callable[[Effect], Awaitable[EffectResult]]


class Companion:
    """Takes part in the rounds of a conversation and may add to them. These defaults add nothing."""

    async def answer_began(self) -> None:
        """Called when an answer begins to arrive: the request is in the cache now."""

    async def after_response(self) -> None:
        """Called when a response is recorded and its tools have not run yet."""

    async def replace_result(self, call: ToolUseBlock, output: ToolOutput) -> ToolOutput:
        """Called when a tool has run, before layer 1 decides. Returns the result that counts from now on."""
        del call
        return output

    async def after_result(self, call: ToolUseBlock, output: ToolOutput) -> Sequence[Block]:
        """Called when a result is recorded. Returns blocks to show next to the results."""
        del call, output
        return ()

    async def between_rounds(self) -> Sequence[Block]:
        """Called when all results of a round are recorded. Returns blocks to show next to them."""
        return ()

    async def may_stop(self, answer: str) -> str | Sequence[Block] | None:
        """Called when the model is done. A reason, or blocks that arrived, make it go on."""
        del answer
        return None


@dataclass(frozen=True, slots=True)
class ForkResult:
    """The result of a fork. `denied` lists the refused calls as `Tool: reason`; `model` is the one that answered."""

    reason: str
    text: str
    usage: Usage
    rounds: int
    denied: tuple[str, ...]
    model: str = ""


class Fork(Protocol):
    """A conversation at one moment, for a layer that needs an agent: the same bytes, so the same cache."""

    @property
    def view(self) -> View: ...

    @property
    def learnable(self) -> Sequence[Entry]:
        """The messages that extraction may look at."""
        ...

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
        enough: Callable[[Sequence[ToolUseBlock]], bool] | None = None,
    ) -> ForkResult:
        """Runs the fork to its end. `permission` decides every call.

        `tools` replace those of the conversation under the same names and schemas. `keeper` writes files by its own
        rules; files in `seen` may be edited without a read. `enough` decides after successful calls whether the fork is
        done.
        """
        ...

    def by(self, model: Model, why: Break) -> Fork:
        """Returns the same start for another model, which costs nothing."""
        ...

    def afresh(self, system: str, tools: Sequence[str], *, model: str = "") -> Fork:
        """Returns the start of a new conversation with this system prompt and only these tools."""
        ...


class Forks(Protocol):
    """Provides forks to the runner of a layer. The session passes it in."""

    def now(self) -> Fork:
        """Returns the conversation as it is when the fork runs."""
        ...

    def kept(self) -> Fork:
        """Returns the conversation as it is now, for a fork that runs later."""
        ...

    def may_begin(self, purpose: Purpose) -> str | None:
        """Returns None if such work may begin, by any model; else why not."""
        ...

    def unwanted(self, purpose: Purpose) -> str | None:
        """Returns why the conversation's own model must not do such work now; None if it may."""
        ...

    def takes_over(self, purpose: Purpose, why: str) -> None:
        """Reports, once per reason, that another model does such work."""
        ...

    async def attempt(self, purpose: Purpose, fork: Fork, work: Callable[[Fork], Awaitable[T]]) -> T:
        """Lets the conversation's model do the work, or the embedded one if that model cannot.

        The second time, `work` gets another fork and starts from the beginning: it must be safe to start twice.
        """
        ...
