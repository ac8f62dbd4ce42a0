"""Messages of a caller as a recorded conversation, for extraction. Each message gets a name made of it and all before
it: so a longer version of the same conversation is recognised, and its old turns are not read twice."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from reverie.errors import UserError
from reverie.layers.l5_extraction.recordings import Recording
from reverie.origins import escape_tags, fence_block, split_material
from reverie.paths import Places
from reverie.storage.transcript.foreign import is_injected
from reverie.storage.transcript.view import Entry
from reverie.types import Block, JsonObject, Message, Origin, Role, TextBlock, parse_block

ORIGIN_FIELD = "reverie_origin"
"""The field of a text block that says whose text it is; it is removed."""
_NOT_SAID = ("system", "developer")


def read_origin(name: object, default: Origin = Origin.ENTERED) -> Origin:
    """The origin that a caller names; `UserError` if the name is unknown."""
    if name is None:
        return default
    if isinstance(name, str) and name in Origin._value2member_map_:
        return Origin(name)
    known = ", ".join(origin.value for origin in Origin)
    raise UserError(f"{str(name)[:40]!r} is not an origin; there are {known}.")


def make_recording(messages: Sequence[JsonObject], places: Places, origin: str | None = None) -> Recording:
    """A recording of messages in the shape of the Messages API. `origin` counts for text of user messages."""
    entries, name, now = list[Entry](), "", datetime.now(UTC).isoformat(timespec="seconds")
    for number, given in enumerate(messages, 1):
        message = _read_message(given, number, read_origin(origin))
        if message is None:
            continue
        told = json.dumps([name, message.wire()], ensure_ascii=False, default=str)
        name = str(uuid.UUID(hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()[:32]))
        said: Any = given.get("timestamp")
        entries.append(Entry(name, message, said if isinstance(said, str) else now))
    first = (entries[0].uuid or "") if entries else "nothing"
    return Recording(places.project / f"messages-{first[:18]}", tuple(entries))


def _read_message(given: object, number: int, typed: Origin) -> Message | None:
    if not isinstance(given, dict):
        raise UserError(f"Message {number} is {type(given).__name__}: give dictionaries with `role` and `content`.")
    raw = cast(JsonObject, given)
    role, content = raw.get("role"), raw.get("content")
    if role in _NOT_SAID:
        return None
    if role not in ("user", "assistant") or not isinstance(content, str | list):
        raise UserError(f"Message {number} needs a `role` (user or assistant) and a `content` (a text or a list).")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else cast(list[Any], content)
    blocks = tuple(block for part in parts for block in _read_part(part, role, typed))
    return Message(role, blocks) if blocks else None


def _read_part(part: Any, role: Role, typed: Origin) -> Iterable[Block]:
    if role == "assistant":
        return (parse_block(part, Origin.MODEL),)
    raw = cast(JsonObject, part) if isinstance(part, dict) else {}
    text, marked = raw.get("text"), raw.get(ORIGIN_FIELD)
    if raw.get("type") != "text" or not isinstance(text, str):
        return (parse_block(part, Origin.TOOL if raw.get("type") == "tool_result" else typed),)
    if not text.strip():
        return ()
    origin = read_origin(marked, typed)
    if not origin.is_users:
        return (fence_block(TextBlock(text, origin)),)
    if marked is None and is_injected(text):  # an agent wrote it, although it was sent as the user's
        return (fence_block(TextBlock(text, Origin.IMPORTED)),)
    return split_material(escape_tags(text), origin)
