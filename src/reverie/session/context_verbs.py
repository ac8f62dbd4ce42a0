"""What a person may do to a session's context, as verbs: for commands, and for the socket of a live session.

Each takes a JSON object and gives one. A mistake in it is a UserError, as everywhere.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from reverie.context.compactor import Compactor
from reverie.errors import UserError
from reverie.layers.l3_session_notes.keeper import NoteKeeper
from reverie.types import JsonObject

Verb = Callable[[JsonObject], Awaitable[JsonObject]]
_LISTED = 50
_LINE = 200


def context_verbs(compactor: Compactor, note_keeper: NoteKeeper) -> Mapping[str, Verb]:
    """The handlers of one session, by verb."""

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
