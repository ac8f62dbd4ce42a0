"""Structured messages, which are for the program: a closed union, read from and written as JSON text.

Ending a process, approving a plan, being idle and asking for a permission each have a class. Any other text is plain
text for the model: reading never fails and never guesses. `describe` gives the text that a model sees.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import fields, replace
from enum import StrEnum
from typing import Any, ClassVar, TypeAlias, assert_never, cast, get_args

from reverie.agents.messages.message import AgentMessage
from reverie.parsing import load_json
from reverie.quick import dataclass
from reverie.storage.transcript.records import build
from reverie.types import JsonObject

_LONGEST = 1_000_000


class IdleState(StrEnum):
    """Why somebody is idle: ready for more, stopped by somebody, or broken."""

    AVAILABLE = "available"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ShutdownRequest:
    """The lead asks a teammate to end."""

    kind: ClassVar[str] = "shutdown_request"
    request_id: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ShutdownResponse:
    """The teammate ends (`approve`), or continues and says why. Without an id it answers the open request."""

    kind: ClassVar[str] = "shutdown_response"
    approve: bool
    request_id: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PlanApprovalResponse:
    """The lead lets a teammate carry out its plan, or asks for another plan."""

    kind: ClassVar[str] = "plan_approval_response"
    approve: bool
    request_id: str = ""
    feedback: str = ""


@dataclass(frozen=True, slots=True)
class IdleNotification:
    """A teammate is idle. `text`: its last answer, unless it sent that as a message; or the error."""

    kind: ClassVar[str] = "idle_notification"
    state: IdleState
    text: str = ""


@dataclass(frozen=True, slots=True)
class PermissionRequest:
    """A teammate wants to make a call that somebody must allow."""

    kind: ClassVar[str] = "permission_request"
    request_id: str
    tool: str
    input: JsonObject
    reason: str
    cwd: str = ""


@dataclass(frozen=True, slots=True)
class PermissionResponse:
    """The answer to a permission request."""

    kind: ClassVar[str] = "permission_response"
    request_id: str
    allow: bool
    reason: str = ""


Structured: TypeAlias = (
    ShutdownRequest
    | ShutdownResponse
    | PlanApprovalResponse
    | IdleNotification
    | PermissionRequest
    | PermissionResponse
)

_KINDS: dict[str, type[Structured]] = {kind.kind: kind for kind in get_args(Structured)}
FOR_MODELS = (ShutdownRequest, ShutdownResponse, PlanApprovalResponse)
"""What a model may send. The others belong to the program: a model cannot grant a permission or report for others."""


def new_request_id() -> str:
    """Returns a random id, so that nobody can answer a request that they did not get."""
    return secrets.token_hex(8)


def parse(text: str) -> Structured | None:
    """Returns the structured message in this text; None for any other text, however close."""
    if len(text) > _LONGEST or not text.lstrip().startswith("{"):
        return None
    try:
        raw: Any = load_json(text)
    except ValueError:
        return None
    return from_json(cast(JsonObject, raw)) if isinstance(raw, dict) else None


def from_json(raw: JsonObject) -> Structured | None:
    """Does the same for a JSON object. Unknown keys are ignored, wrong types are not."""
    kind = _KINDS.get(str(raw.get("type")))
    if kind is None:
        return None
    if kind is ShutdownRequest:
        raw = {"request_id": new_request_id(), **raw}
    if kind is IdleNotification:
        if raw.get("state") not in list(IdleState):
            return None
        raw = {**raw, "state": IdleState(raw["state"])}
    return build(kind, raw)


def render(message: Structured) -> str:
    """Returns the JSON text that `parse` reads."""
    body = {f.name: getattr(message, f.name) for f in fields(message)}
    return json.dumps({"type": message.kind, **body}, ensure_ascii=False)


def describe(message: AgentMessage, content: Structured) -> AgentMessage:
    """Returns the message with the text that the model reads."""
    return replace(message, text=_text(message.sender, content))


def _text(sender: str, message: Structured) -> str:
    match message:
        case ShutdownRequest(_, reason):
            return (
                f"{sender} asks you to end{_because(reason)}. If you have something to finish first, send {sender} "
                '{"type": "shutdown_response", "approve": false, "reason": "..."}; '
                "otherwise finish your turn."
            )
        case ShutdownResponse(approve, _, reason):
            return f"{sender} {'ends' if approve else 'does not end yet'}{_because(reason)}."
        case PlanApprovalResponse(approve, _, feedback):
            verdict = "Your plan is approved: carry it out." if approve else "Your plan is not approved: send another."
            return f"{verdict} {feedback}".strip()
        case IdleNotification(IdleState.AVAILABLE, text):
            return f"{sender} is idle. It said last:\n\n{text}" if text else f"{sender} is idle."
        case IdleNotification(IdleState.INTERRUPTED, text):
            return f"{sender} was interrupted{_because(text)}."
        case IdleNotification(_, text):
            return f"{sender} has failed{_because(text)}."
        case PermissionRequest(_, tool, _, reason):
            return f"{sender} asks whether it may use {tool}{_because(reason)}."
        case PermissionResponse(_, allow, reason):
            return f"{sender} {'allows' if allow else 'refuses'} it{_because(reason)}."
        case _:
            assert_never(message)


def _because(reason: str) -> str:
    said = " ".join(reason.split()).rstrip(".")
    return f": {said}" if said else ""


def mark_cut_off(text: str) -> str:
    """Marks an answer that was cut off, for another agent or the user."""
    return f"{text}\n\n[This answer is not complete: it was cut off at a limit of the model.]"
