"""A request in the form of the Messages API, and its prefix in a form that can be compared.

The same request always gives the same bytes. Blocks are shared by requests and never changed: a marker goes on a copy.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, cast

from reverie.models.base import UNPARSED_INPUT, Marker, Request
from reverie.origins import fence
from reverie.parsing import load_json
from reverie.types import ITEM, Json, JsonObject, Message, Origin, without_item

PROVIDERS = ("anthropic", "openai", "scripted", "embedded")

_SUFFIX_1M = re.compile(r"\[1m\]$", re.IGNORECASE)
_RENDERED_KEPT = 50_000
_SPECIAL = (ITEM, "thinking")
"""Blocks that are not sent as they are, or not always."""
_NOT_MARKABLE = ("thinking", "redacted_thinking", ITEM)


def model_id(name: str) -> str:
    """The server's name of a model: without our provider prefix and a `[1m]` suffix."""
    provider, colon, rest = name.partition(":")
    bare = rest if colon and provider in PROVIDERS else name
    return _SUFFIX_1M.sub("", bare)


def as_object(value: object) -> JsonObject:
    """The value if it is a JSON object, else an empty one."""
    return cast(JsonObject, value) if isinstance(value, dict) else {}


def read_input(raw: str) -> JsonObject:
    """The tool input that a model wrote; text that is not a JSON object is under `_unparsed`."""
    if not raw.strip():
        return {}
    try:
        given: Json = load_json(raw)
    except ValueError:
        return {UNPARSED_INPUT: raw}
    return cast(JsonObject, given) if isinstance(given, dict) else {UNPARSED_INPUT: raw}


def body(request: Request) -> JsonObject:
    """The request body with its cache markers. `betas` are sent in a header instead."""
    system: list[JsonObject] = [{"type": "text", "text": text} for text in request.system]
    tools: list[JsonObject] = [without_item(tool) for tool in request.tools if _is_ours(tool)]
    messages: list[JsonObject] = [
        {"role": message.role, "content": [_clean(block.wire()) for block in message.content]}
        for message in request.messages
    ]
    for marker in request.markers:
        _mark(marker, tools, system, messages)
    messages = [part for message in messages for part in _split_system(message)]
    schema = request.output_schema
    schema_format = None if schema is None else {"type": "json_schema", "schema": schema}
    output = {"effort": request.effort, "format": schema_format}
    made: JsonObject = {
        "model": model_id(request.model),
        "max_tokens": request.max_tokens,
        "tools": tools or None,
        "system": system or None,
        "messages": messages,
        "tool_choice": request.tool_choice,
        "thinking": request.thinking,
        "output_config": {key: value for key, value in output.items() if value is not None} or None,
        "context_management": request.context_management,
        "cache_edits": request.cache_edits,
    }
    return {key: value for key, value in made.items() if value is not None}


class Rendered:
    """Remembers the parts of messages that it has rendered, because the same messages are sent again and again."""

    def __init__(self) -> None:
        self._parts: dict[int, tuple[Message, tuple[str, ...]]] = {}

    def parts(self, message: Message) -> tuple[str, ...]:
        # By identity: messages are frozen, and their ids are not used again while they are kept here.
        found = self._parts.get(id(message))
        if found is None:
            if len(self._parts) >= _RENDERED_KEPT:
                self._parts.clear()
            found = self._parts[id(message)] = (message, _message_parts(message))
        return found[1]


def prefix_parts(request: Request, rendered: Rendered | None = None) -> list[str]:
    """The blocks of the prefix in the order of the server, as JSON lines without cache markers.

    If two requests share their first n parts, the second can read the cache up to there. Model and betas come first,
    because the whole cache depends on them; settings that only change how messages are read come before the messages.
    """
    parts = [_line({"model": model_id(request.model), "betas": request.betas})]
    parts += [_line({"tool": _without_marker(tool)}) for tool in request.tools]
    parts += [_line({"system": text}) for text in request.system]
    parts.append(
        _line({"thinking": request.thinking, "effort": request.effort, "tool_choice": request.tool_choice}),
    )
    each = rendered.parts if rendered else _message_parts
    for message in request.messages:
        parts += each(message)
    return parts


def count_shared(before: Sequence[str], after: Sequence[str]) -> int:
    """How many parts two prefixes have in common, from the start."""
    differ = (i for i, (old, new) in enumerate(zip(before, after, strict=False)) if old != new)
    return next(differ, min(len(before), len(after)))


def canonical(request: Request) -> bytes:
    """The whole prefix as bytes: a request that extends another one starts with its bytes."""
    return join_parts(prefix_parts(request))


def join_parts(parts: list[str]) -> bytes:
    return "".join(f"{part}\n" for part in parts).encode("utf-8", "surrogatepass")


def _message_parts(message: Message) -> tuple[str, ...]:
    blocks = [_clean(block.wire()) for block in message.content]
    sent, *system = _split_system({"role": message.role, "content": blocks})
    own = sent["content"] if sent["role"] == message.role else [sent]
    return tuple(_line({message.role: block}) for block in (*own, *system))


_line = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _is_ours(tool: JsonObject) -> bool:
    """Whether the Messages API knows the tool: of the tools of other APIs it knows only those with a schema."""
    return ITEM not in tool or "input_schema" in tool


def _split_system(message: JsonObject) -> list[JsonObject]:
    """The message, and after it the system messages that the caller put into it: they must end the turn."""
    blocks: list[Json] = message["content"]
    if not any(isinstance(block, dict) and block.get("type") in _SPECIAL for block in blocks):  # pyright: ignore[reportUnknownMemberType]
        return [message]
    items = [block["item"] for block in blocks if is_foreign(block) and block.get("api") == "messages"]
    if items:
        blocks = [block for block in blocks if not (is_foreign(block) and block.get("api") == "messages")]
    return [{**message, "content": _sendable(blocks)}, *items] if blocks or not items else items


def is_foreign(block: Json) -> bool:
    """Whether a block is an item, or a part of one, of another API."""
    return as_object(block).get("type") == ITEM


def _sendable(blocks: list[Json]) -> list[Json]:
    """Leaves out what the Messages API refuses: thinking without a signature, as other vendors' models have it, and
    items of other APIs. Of these, instructions become a text."""
    if not any(_is_unsigned(block) or is_foreign(block) for block in blocks):
        return blocks
    kept = [_instructions(block) if is_foreign(block) else block for block in blocks if not _is_unsigned(block)]
    return [block for block in kept if block is not None] or [{"type": "text", "text": "(no answer)"}]


def _instructions(block: JsonObject) -> JsonObject | None:
    item = as_object(block.get("item"))
    content = item.get("content")
    parts = cast(list[Any], content) if isinstance(content, list) else [{"text": content}]
    texts = [text for part in parts if isinstance(text := as_object(part).get("text"), str) and text.strip()]
    is_shown = item.get("role") in ("system", "developer") and texts
    return fence(Origin.CODE, "\n\n".join(texts)).wire() if is_shown else None


def _is_unsigned(block: Json) -> bool:
    made = as_object(block)
    return made.get("type") == "thinking" and not made.get("signature")


def _clean(block: Json) -> Json:
    """A block as the API accepts it: without markers of its own, and with a tool input that is an object."""
    if not isinstance(block, dict):
        return block
    given = cast(JsonObject, block)
    if "cache_control" in given:
        given = _without_marker(given)
    if given.get("type") == "tool_use" and not isinstance(given.get("input"), dict):
        return {**given, "input": {UNPARSED_INPUT: given.get("input")}}
    inner = given.get("content")
    if isinstance(inner, list) and any("cache_control" in part or is_foreign(part) for part in cast(list[Any], inner)):
        return {**given, "content": [_clean(part) for part in cast(list[Any], inner) if not is_foreign(part)]}
    return given


def _without_marker(block: JsonObject) -> JsonObject:
    return {key: value for key, value in block.items() if key != "cache_control"}


def _mark(marker: Marker, tools: list[JsonObject], system: list[JsonObject], messages: list[JsonObject]) -> None:
    """Puts a marker on a copy of its block, or of the nearest one before it that can have a marker."""
    control = {"type": "ephemeral"} if marker.ttl == "5m" else {"type": "ephemeral", "ttl": marker.ttl}
    if marker.section == "messages":
        blocks = cast(list[JsonObject], messages[marker.index]["content"])
        start = range(len(blocks))[marker.block]
        found = next((index for index in range(start, -1, -1) if _can_mark(blocks[index])), None)
        if found is not None:
            blocks[found] = {**blocks[found], "cache_control": control}
        return
    blocks = tools if marker.section == "tools" else system
    if blocks:
        index = min(marker.index, len(blocks) - 1)  # a tool of another API may be left out
        blocks[index] = {**blocks[index], "cache_control": control}


def _can_mark(block: Json) -> bool:
    given = as_object(block)
    kind = given.get("type")
    return bool(given) and kind not in _NOT_MARKABLE and (kind != "text" or bool(given.get("text")))
