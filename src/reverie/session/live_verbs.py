"""What other commands may ask of a live session over its socket, a handler a verb.

`reverie tasks`, `reverie context` and the like act on the running session through these instead of beside it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from reverie.context.engine import Engine
from reverie.context.window_fill import fill
from reverie.errors import UserError
from reverie.paths import Places
from reverie.runtime.tasks import Tasks
from reverie.session.agent_verbs import agent_verbs
from reverie.session.context_verbs import context_verbs
from reverie.session.messages import SessionMessages
from reverie.session.gate import PermissionGate
from reverie.session.session_agents import SessionAgents
from reverie.storage.transcript.view import View
from reverie.types import JsonObject, Purpose


class LiveSession(Protocol):
    """What the verbs need of a session."""

    @property
    def id(self) -> str: ...

    @property
    def model_name(self) -> str: ...

    @property
    def busy(self) -> bool: ...

    @property
    def places(self) -> Places: ...

    @property
    def view(self) -> View: ...

    engine: Engine
    tasks: Tasks
    messages: SessionMessages
    gate: PermissionGate
    agents: SessionAgents

    def cancel(self) -> bool: ...

    async def ask_aside(self, question: str) -> str: ...


Verb = Callable[[JsonObject], Awaitable[JsonObject]]


def verbs(session: LiveSession) -> Mapping[str, Verb]:
    """The handlers of one session, by verb."""

    async def status(_request: JsonObject) -> JsonObject:
        budget = session.engine.conversation.budget()
        return {
            "session": session.id,
            "model": session.model_name,
            "cwd": str(session.places.cwd),
            "busy": session.busy,
            "used": budget.used,
            "window": budget.window,
        }

    async def cancel(_request: JsonObject) -> JsonObject:
        return {"cancelled": session.cancel()}

    async def context(_request: JsonObject) -> JsonObject:
        return {"context": fill(session.view, session.engine.conversation.thresholds).to_json()}

    async def dream(_request: JsonObject) -> JsonObject:
        if session.engine.dreaming is None:
            return {"running": None}
        running = session.engine.dreaming.running
        tasks = [info.id for info in session.tasks.running if info.purpose is Purpose.DREAM]
        return {
            "memory": str(session.engine.dreaming.directory.root),
            "running": running.to_json() if running is not None else None,
            "task": tasks[0] if tasks else None,
        }

    async def permit(request: JsonObject) -> JsonObject:
        if session.messages.messenger.team is None:
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
        **session.messages.verbs(),
        **context_verbs(session.engine.compactor, session.engine.notes),
        **agent_verbs(session.agents.spawner, session.tasks, session.ask_aside),
    }
