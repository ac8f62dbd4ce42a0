"""What the simulated model says: a protocol anyone can implement, an echo, and scripts.

A responder sees each request in the shape of the Messages API, whichever endpoint it came by. It decides content and
faults; it never counts or bills.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from reverie.models.script import Script, ScriptedReply
from reverie.models.script_syntax import Fault
from reverie.simulator.errors import ApiError

Reply = ScriptedReply
"""Content blocks as the API returns them, a stop reason, and optionally a fault, delays and a usage override."""

_ECHOED = 200


class Responder(Protocol):
    """Whoever answers. `purpose` is what the caller said the request is for (header `x-reverie-purpose`)."""

    async def reply(self, body: Mapping[str, Any], *, purpose: str = "main") -> Reply: ...


class EchoResponder:
    """Answers with the start of what the user said last; the same request always gets the same answer."""

    async def reply(self, body: Mapping[str, Any], *, purpose: str = "main") -> Reply:
        said = _last_text(cast("Sequence[Mapping[str, Any]]", body["messages"]))
        return Reply([{"type": "text", "text": f"You said: {said[:_ECHOED]}"}], "end_turn")


class ScriptResponder:
    """Plays a script: which reply is due follows from the request alone."""

    def __init__(self, script: Script) -> None:
        self._script = script

    async def reply(self, body: Mapping[str, Any], *, purpose: str = "main") -> Reply:
        messages = cast("Sequence[Mapping[str, Any]]", body["messages"])
        return self._script.reply([m for m in messages if m.get("role") != "system"], purpose=purpose)


def api_error(fault: Fault) -> ApiError | None:
    """The error a fault answers with; None for those that break the connection instead."""
    match fault.kind:
        case "overloaded":
            return ApiError(529, retry_after=fault.retry_after)
        case "rate-limited":
            return ApiError(429, retry_after=fault.retry_after)
        case "server-error":
            return ApiError(500, retry_after=fault.retry_after)
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
