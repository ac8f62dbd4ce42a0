"""What other commands may ask of a live session over its socket, a handler a verb.

`reverie tasks`, `reverie context` and the like act on the running session through these instead of beside it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from reverie.context.window_fill import fill
from reverie.errors import UserError
from reverie.session.agent_verbs import agent_verbs
from reverie.session.context_verbs import context_verbs
from reverie.types import JsonObject, Purpose

if TYPE_CHECKING:
    from reverie.session.session import Session

Verb = Callable[[JsonObject], Awaitable[JsonObject]]


def verbs(session: Session) -> Mapping[str, Verb]:
    """The handlers of one session, by verb."""

    async def status(_request: JsonObject) -> JsonObject:
        budget = session.conversation.budget()
        return {
            "session": session.id,
            "model": session.model_name,
            "cwd": str(session.parts.places.cwd),
            "busy": session.busy,
            "used": budget.used,
            "window": budget.window,
        }

    async def cancel(_request: JsonObject) -> JsonObject:
        return {"cancelled": session.cancel()}

    async def context(_request: JsonObject) -> JsonObject:
        return {"context": fill(session.parts.log.view, session.conversation.thresholds).to_json()}

    async def dream(_request: JsonObject) -> JsonObject:
        if session.dreaming is None:
            return {"running": None}
        running = session.dreaming.running
        tasks = [info.id for info in session.tasks.running if info.purpose is Purpose.DREAM]
        return {
            "memory": str(session.dreaming.directory.root),
            "running": running.to_json() if running is not None else None,
            "task": tasks[0] if tasks else None,
        }

    async def permit(request: JsonObject) -> JsonObject:
        if session.letters.post.team is None:
            raise UserError("The questions of this session are answered where it is open.")
        allow, always = request.get("allow") is True, request.get("always") is True
        return {"settled": session.gate.answer(str(request.get("id")), allow=allow, always=always)}

    return {
        "status": status,
        "permit": permit,
        "dream": dream,
        "cancel": cancel,
        "context": context,
        **session.tasks.verbs(),
        **session.letters.verbs(),
        **context_verbs(session),
        **agent_verbs(session),
    }
