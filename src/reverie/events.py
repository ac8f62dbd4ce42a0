"""All events of a session: a closed union with one class per event.

Every front end (chat, `run --json`, the socket) matches on these. `to_json` gives the form for programs.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar, TypeAlias

from reverie.quick import dataclass
from reverie.types import Json, JsonObject, Purpose, Usage


@dataclass(frozen=True, slots=True)
class SessionOpened:
    kind: ClassVar[str] = "session_opened"
    session_id: str
    model: str
    cwd: str
    resumed: bool


@dataclass(frozen=True, slots=True)
class TurnStarted:
    kind: ClassVar[str] = "turn_started"
    uuid: str


@dataclass(frozen=True, slots=True)
class TextStreamed:
    kind: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingStreamed:
    kind: ClassVar[str] = "thinking"
    text: str


@dataclass(frozen=True, slots=True)
class AnswerRestarted:
    """The streamed part of this answer is void: the request is sent again."""

    kind: ClassVar[str] = "answer_restarted"
    reason: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    kind: ClassVar[str] = "tool_started"
    id: str
    name: str
    input: Json


@dataclass(frozen=True, slots=True)
class ToolFinished:
    kind: ClassVar[str] = "tool_finished"
    id: str
    name: str
    text: str
    is_error: bool
    seconds: float
    how: str = ""
    """How it was allowed to run: "sandbox" or "asked"; empty for other ways."""


@dataclass(frozen=True, slots=True)
class PermissionAsked:
    """The session waits until `session.gate.settle(id, answer)` is called, or the turn is cancelled."""

    kind: ClassVar[str] = "permission_asked"
    id: str
    tool: str
    input: Json
    reason: str
    cwd: str = ""  # the folder for relative paths in `input`
    rules: tuple[str, ...] = ()
    """The rules for an answer that holds for this session, or always. None: it can be allowed only once."""
    saves_to: str = ""
    """The file in which "always" saves the rules. Empty: "always" cannot be chosen."""
    tried: tuple[str, ...] = ()
    """What the call tried in the sandbox and could not do. Empty: it has not run yet."""
    choices: tuple[str, ...] = ()
    """The profiles in which it may run again, least first: workspace, repository, free."""


@dataclass(frozen=True, slots=True)
class Retrying:
    kind: ClassVar[str] = "retrying"
    reason: str
    seconds: float
    attempt: int


@dataclass(frozen=True, slots=True)
class RoundFinished:
    """A response is recorded. `used` is the context in tokens; `cut_off`: it ended at the output limit."""

    kind: ClassVar[str] = "round_finished"
    usage: Usage
    used: int
    window: int
    percent_left: int
    cut_off: bool = False


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence for the user; never sent to the model. `level`: info, warning or error."""

    kind: ClassVar[str] = "notice"
    text: str
    level: str = "info"
    source: str = "session"


@dataclass(frozen=True, slots=True)
class TaskChanged:
    """A background task started, made progress or ended."""

    kind: ClassVar[str] = "task_changed"
    id: str
    purpose: Purpose
    title: str
    state: str
    progress: str = ""


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The turn is over. `reason`: answered, cut_off, cancelled, refused, failed, max_rounds, blocked."""

    kind: ClassVar[str] = "turn_ended"
    reason: str
    text: str
    usage: Usage
    rounds: int
    error: str | None = None
    exit_code: int = 0


Event: TypeAlias = (
    SessionOpened
    | TurnStarted
    | TextStreamed
    | ThinkingStreamed
    | AnswerRestarted
    | ToolStarted
    | ToolFinished
    | PermissionAsked
    | Retrying
    | RoundFinished
    | Notice
    | TaskChanged
    | TurnEnded
)


def to_json(event: Event) -> JsonObject:
    """Returns the event as one JSON object with a `type`."""
    body: dict[str, Any] = asdict(event)
    return {"type": event.kind, **body}
