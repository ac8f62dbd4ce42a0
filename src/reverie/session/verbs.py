"""The verbs that other commands send to a live session over its socket, with one handler per verb.

Each handler takes a JSON object and returns one. A mistake in it is a UserError.
"""

from __future__ import annotations

from collections.abc import Mapping

from reverie.agents.messages.roster import AgentMode, Member
from reverie.agents.spawn import Spawner
from reverie.context.compactor import Compactor
from reverie.context.window_fill import fill
from reverie.errors import UserError
from reverie.layers.l3_session_notes.keeper import NoteKeeper
from reverie.runtime.live import Handler
from reverie.runtime.tasks import Tasks
from reverie.session.assembly import Assembly
from reverie.types import JsonObject, Purpose

_LISTED = 50
_LINE = 200


def verbs(session: Assembly) -> Mapping[str, Handler]:
    """Returns the handlers of one session by verb."""

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

    async def agents(_request: JsonObject) -> JsonObject:
        spawner, tasks = session.agents.spawner, session.tasks
        return {"agents": [agent_json(spawner, tasks, member) for member in running_agents(spawner)]}

    async def aside(request: JsonObject) -> JsonObject:
        question = request.get("question")
        if not isinstance(question, str):
            raise UserError("question must be text")
        return {"answer": await session.ask_aside(question)}

    return {
        "status": status,
        "permit": permit,
        "dream": dream,
        "cancel": cancel,
        "context": context,
        "agents": agents,
        "aside": aside,
        **session.tasks.verbs(),
        **session.messages.verbs(),
        **_context_verbs(session.engine.compactor, session.engine.notes),
    }


def running_agents(spawner: Spawner) -> list[Member]:
    """Returns the running agents of a session, each after the one that started it."""

    def below(id: str) -> list[Member]:
        return [found for member in spawner.roster.children(id) for found in (member, *below(member.id))]

    return below(spawner.main.member.id)


def agent_json(spawner: Spawner, tasks: Tasks, member: Member) -> JsonObject:
    """Returns one agent in the form that programs read."""
    seconds = {info.id: info.seconds for info in tasks.running}
    return {
        "id": member.id,
        "name": member.name,
        "mode": member.mode.value,
        "state": member.state.value,
        "title": member.title,
        "doing": member.doing,
        "parent": member.parent if member.mode is not AgentMode.MAIN else None,
        "depth": spawner.roster.depth(member.id),
        "seconds": round(seconds.get(member.id, 0.0), 1),
    }


def _context_verbs(compactor: Compactor, note_keeper: NoteKeeper) -> Mapping[str, Handler]:
    async def compact(request: JsonObject) -> JsonObject:
        walk = compactor.preview if request.get("preview") else compactor.compact
        done = await walk(_text(request, "text") or "", from_=_text(request, "from"), up_to=_text(request, "up_to"))
        return {"compacted": done.to_json()}

    async def undo(request: JsonObject) -> JsonObject:
        return {"undone": (await compactor.undo(fit=bool(request.get("fit")))).to_json()}

    async def rewind(request: JsonObject) -> JsonObject:
        message = _text(request, "message")
        if message is None:
            raise UserError("say which message: its uuid, or -1 for the last one")
        return {"rewound": compactor.rewind(message)}

    async def messages(_request: JsonObject) -> JsonObject:
        said = compactor.messages()[-_LISTED:]
        listed = [
            {"back": -(len(said) - at), "uuid": entry.uuid, "text": " ".join(entry.message.text.split())[:_LINE]}
            for at, entry in enumerate(said)
        ]
        return {"messages": listed}

    async def clear(_request: JsonObject) -> JsonObject:
        await compactor.clear()
        return {"cleared": True}

    async def pin(request: JsonObject) -> JsonObject:
        return {"pin": compactor.pin(_text(request, "text") or "")}

    async def unpin(request: JsonObject) -> JsonObject:
        return {"unpinned": compactor.unpin(_text(request, "id") or "")}

    async def pins(_request: JsonObject) -> JsonObject:
        return {"pins": compactor.pins}

    async def notes(_request: JsonObject) -> JsonObject:
        info = await note_keeper.update_now().wait()
        return {"state": info.state.value, "error": info.error, "path": str(note_keeper.path)}

    return {
        "compact": compact,
        "undo": undo,
        "rewind": rewind,
        "messages": messages,
        "clear": clear,
        "pin": pin,
        "unpin": unpin,
        "pins": pins,
        "notes": notes,
    }


def _text(request: JsonObject, key: str) -> str | None:
    value = request.get(key)
    if value is None or isinstance(value, str):
        return value
    raise UserError(f"{key} must be text")
