"""The answers of the simulated model: a protocol that you can implement, an echo, and scripts.

A responder gets each request in the form of the Messages API, and decides on content and faults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from reverie.models.script import Script, ScriptedReply
from reverie.models.script_syntax import SERVER_FAULTS, Fault
from reverie.simulator.errors import ApiError

Reply = ScriptedReply
"""Content blocks as the API returns them, a stop reason, and optionally a fault, delays and a usage override."""

_ECHOED = 200


class Responder(Protocol):
    """Answers requests. `purpose` is from the header `x-reverie-purpose`."""

    async def reply(self, body: Mapping[str, Any], *, purpose: str = "main") -> Reply: ...


class EchoResponder:
    """Answers with the start of the user's last message."""

    async def reply(self, body: Mapping[str, Any], *, purpose: str = "main") -> Reply:
        text = _last_text(cast("Sequence[Mapping[str, Any]]", body["messages"]))
        return Reply([{"type": "text", "text": f"You said: {text[:_ECHOED]}"}], "end_turn")


class ScriptResponder:
    """Plays a script; the reply only depends on the request."""

    def __init__(self, script: Script) -> None:
        self._script = script

    async def reply(self, body: Mapping[str, Any], *, purpose: str = "main") -> Reply:
        messages = cast("Sequence[Mapping[str, Any]]", body["messages"])
        return self._script.reply([m for m in messages if m.get("role") != "system"], purpose=purpose)


def api_error(fault: Fault) -> ApiError | None:
    """The error of a fault; None if the fault breaks the connection."""
    match fault.kind:
        case "overloaded" | "rate-limited" | "server-error":
            return ApiError(SERVER_FAULTS[fault.kind][0], retry_after=fault.retry_after)
        case "prompt-too-long":
            return ApiError(400, f"prompt is too long: {fault.actual} tokens > {fault.limit} maximum")
        case "bad-request":
            return ApiError(400, fault.message or "Bad request")
        case "authentication":
            return ApiError(401)
        case "unreachable" | "cut":
            return None


def _last_text(messages: Sequence[Mapping[str, Any]]) -> str:
    for message in reversed(messages):
        if message.get("role") != "user":
            continue
        content = message.get("content")
        if isinstance(content, str):
            return content
        for block in reversed(cast("Sequence[Mapping[str, Any]]", content or ())):
            if block.get("type") == "text":
                return str(block["text"])
            if block.get("type") == "tool_result":
                inner = block.get("content")
                return inner if isinstance(inner, str) else "(a tool result)"
    return ""
