"""What every wire can do, the plain form of what a caller gives, and the fingerprint of a message.

A fingerprint covers what a message says, not how an SDK writes it down: no empty fields, no cache markers, no ids of
output items, no thinking, and arguments of calls as parsed JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar, Protocol, cast

from reverie.errors import UserError
from reverie.models.base import Request, Response
from reverie.quick import dataclass
from reverie.types import (
    ITEM,
    Block,
    DocumentBlock,
    ImageBlock,
    Json,
    JsonObject,
    Message,
    Origin,
    OtherBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)

ORIGIN = "reverie_origin"
"""The field with which a caller says who wrote a text. It is never sent."""

NOT_COUNTED = ("cache_control", ORIGIN, ITEM)
"""Fields that say nothing."""
_DEPTH = 100


@dataclass(frozen=True, slots=True)
class GivenMessage:
    """One message of the caller. An empty fingerprint: it says nothing that counts, and may be missing next time."""

    message: Message
    fingerprint: str


@dataclass(frozen=True, slots=True)
class GivenSystem:
    """The system prompt as texts, and as JSON how the caller wrote it, for `write_body`."""

    texts: tuple[str, ...] = ()
    form: JsonObject = field(default_factory=dict[str, Any])


class Wire(Protocol):
    """Converts between the items of one API and our messages. It keeps no state."""

    name: ClassVar[str]

    def read_system(self, system: object, raw: object) -> GivenSystem:
        """Reads the system prompt: what was given as such, and system messages at the start of the list."""
        ...

    def read_messages(self, raw: object, *, continued: bool = False) -> list[GivenMessage]:
        """Reads the list, without the system messages at its start; with them if it continues a conversation."""
        ...

    def read_tools(self, tools: object) -> tuple[JsonObject, ...]:
        """Reads tools as name, description and schema, with the rest of each definition."""
        ...

    def write_tools(self, tools: Sequence[JsonObject]) -> list[JsonObject]:
        """Returns the tools as the caller gave them."""
        ...

    def read_answer(self, response: object) -> list[GivenMessage]:
        """Reads a response as the messages in which the caller gives it back."""
        ...

    def read_response(self, response: object) -> Response:
        """Reads a response: an object of an SDK, or its JSON. Usage that is missing counts as zero."""
        ...

    def write_body(
        self, request: Request, extra: Mapping[str, Any] | None = None, system: JsonObject | None = None
    ) -> JsonObject:
        """Returns the arguments for the client. `extra`: settings of the caller; `system`: a `GivenSystem.form`."""
        ...


def plain(value: object, path: str = "messages", depth: int = 0) -> Json:
    """Returns the JSON of what a caller gives: objects of SDKs become what the SDK would send."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if depth > _DEPTH:
        raise UserError(f"{path[:80]} is nested deeper than {_DEPTH} levels.")
    if isinstance(value, Mapping):
        given = cast("Mapping[object, object]", value)
        return {str(key): plain(part, f"{path}.{key}", depth + 1) for key, part in given.items()}
    if isinstance(value, list | tuple):
        parts = cast("Sequence[object]", value)
        return [plain(part, f"{path}[{number}]", depth + 1) for number, part in enumerate(parts)]
    dump = getattr(value, "to_dict", None) or getattr(value, "model_dump", None)
    if callable(dump):
        return plain(dump(), path, depth + 1)
    raise UserError(f"{path} is {type(value).__name__}, and JSON cannot hold that.")


def plain_items(raw: object, path: str = "messages") -> list[JsonObject]:
    """Returns a list of items; a string is one message of the user."""
    if raw is None:
        return []
    if isinstance(raw, str):
        return [{"role": "user", "content": raw}]
    items = plain(raw, path)
    if not isinstance(items, list):
        raise UserError(f"{path} must be a list.")
    for number, item in enumerate(cast("list[object]", items)):
        if not isinstance(item, dict):
            raise UserError(f"{path}[{number}] must be an object, and it is {type(item).__name__}.")
    return cast("list[JsonObject]", items)


def plain_object(value: object, path: str) -> JsonObject:
    """Returns one object as JSON."""
    made = plain(value, path)
    if not isinstance(made, dict):
        raise UserError(f"{path} must be an object, and it is {type(value).__name__}.")
    return cast(JsonObject, made)


def request_id(response: object) -> str | None:
    """Returns the id of the request, which the SDKs keep beside the answer."""
    found = getattr(response, "_request_id", None)
    return found if isinstance(found, str) else None


def take_origin(given: JsonObject, otherwise: Origin) -> Origin:
    """Removes the origin that the caller names from a part of a message, and returns it. A mark can say that a text is
    not the user's; it never makes text of a tool or a model the user's."""
    named = given.pop(ORIGIN, None)
    found = Origin.named(named) if isinstance(named, str) else otherwise
    return found if otherwise.is_users or not found.is_given else otherwise


def fingerprint(role: str, blocks: Sequence[Block], name: Json = None) -> str:
    """Returns the fingerprint of a message: a hash over its role and what its blocks say."""
    said = [part for block in blocks if (part := _said(block)) is not None]
    text = json.dumps([role, name or None, said], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _said(block: Block) -> list[Json] | None:
    match block:
        case TextBlock():
            return ["text", block.text] if block.text.strip() else None
        case ToolUseBlock():
            return ["call", block.id, block.name, block.input]
        case ToolResultBlock():
            inner = (TextBlock(block.content),) if isinstance(block.content, str) else block.content or ()
            said = [part for one in inner if (part := _said(one)) is not None]
            return ["result", block.tool_use_id, said, bool(block.is_error)]
        case ImageBlock() | DocumentBlock():
            return ["media", counted(block.source)]
        case OtherBlock(raw={"type": "redacted_thinking"}) | ThinkingBlock():
            return None
        case OtherBlock(raw={"type": "reverie_item", "item": dict() as item}):  # pyright: ignore[reportUnknownVariableType]
            given = cast(JsonObject, counted(item))
            names = () if given.get("type") == "item_reference" else ("id", "status")
            return ["item", {key: value for key, value in given.items() if key not in names}]
        case OtherBlock():
            return ["other", counted(block.raw)]


def counted(value: Json) -> Json:
    """Returns a value without empty fields, cache markers and marks of ours."""
    if isinstance(value, list):
        return [counted(part) for part in cast("list[Json]", value)]
    if not isinstance(value, dict):
        return value
    parts = ((key, counted(part)) for key, part in cast(JsonObject, value).items() if key not in NOT_COUNTED)
    return {key: part for key, part in parts if part is not None and part not in ("", [], {})}
