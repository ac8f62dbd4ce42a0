"""A request as the Messages API wants it, and its prefix in a form that can be compared.

Rendering is a pure function of the request: the same request always gives the same bytes. Blocks are shared between
requests, so nothing here changes one; a marker goes on a copy.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, cast

from reverie.models.base import UNPARSED_INPUT, Marker, Request
from reverie.parsing import load_json
from reverie.types import Json, JsonObject, Message

PROVIDERS = ("anthropic", "openai", "scripted", "embedded")

_SUFFIX_1M = re.compile(r"\[1m\]$", re.IGNORECASE)
_RENDERED_KEPT = 50_000
_NOT_MARKABLE = ("thinking", "redacted_thinking")


def model_id(name: str) -> str:
    """The name a server knows: without our provider prefix and without a `[1m]` suffix."""
    provider, colon, rest = name.partition(":")
    bare = rest if colon and provider in PROVIDERS else name
    return _SUFFIX_1M.sub("", bare)


def as_object(value: object) -> JsonObject:
    """The value if it is a JSON object, else an empty one."""
    return cast(JsonObject, value) if isinstance(value, dict) else {}


def read_input(raw: str) -> JsonObject:
    """What a model wrote as the input of a call; what is not an object stands as text under `_unparsed`."""
    if not raw.strip():
        return {}
    try:
        given: Json = load_json(raw)
    except ValueError:
        return {UNPARSED_INPUT: raw}
    return cast(JsonObject, given) if isinstance(given, dict) else {UNPARSED_INPUT: raw}


def body(request: Request) -> JsonObject:
    """The request body, cache markers in place. `betas` travel in a header and are not part of it."""
    system: list[JsonObject] = [{"type": "text", "text": text} for text in request.system]
    tools: list[JsonObject] = list(request.tools)
    messages: list[JsonObject] = [
        {"role": message.role, "content": [_sent(block.wire()) for block in message.content]}
        for message in request.messages
    ]
    for marker in request.markers:
        _mark(marker, tools, system, messages)
    for message in messages:
        message["content"] = _accepted(message["content"])
    made: JsonObject = {"model": model_id(request.model), "max_tokens": request.max_tokens}
    if tools:
        made["tools"] = tools
    if system:
        made["system"] = system
    made["messages"] = messages
    if request.tool_choice is not None:
        made["tool_choice"] = request.tool_choice
    if request.thinking is not None:
        made["thinking"] = request.thinking
    output: JsonObject = {}
    if request.effort is not None:
        output["effort"] = request.effort
    if request.output_schema is not None:
        output["format"] = {"type": "json_schema", "schema": request.output_schema}
    if output:
        made["output_config"] = output
    if request.context_management is not None:
        made["context_management"] = request.context_management
    if request.cache_edits is not None:
        made["cache_edits"] = request.cache_edits
    return made


class Rendered:
    """Remembers the parts of messages it has rendered, for callers that see the same messages again and again."""

    def __init__(self) -> None:
        self._parts: dict[int, tuple[Message, tuple[str, ...]]] = {}

    def parts(self, message: Message) -> tuple[str, ...]:
        # By identity: messages are frozen, and holding on to them keeps their ids from being used again.
        found = self._parts.get(id(message))
        if found is None:
            if len(self._parts) >= _RENDERED_KEPT:
                self._parts.clear()
            found = self._parts[id(message)] = (message, _message_parts(message))
        return found[1]


def prefix_parts(request: Request, rendered: Rendered | None = None) -> list[str]:
    """The prefix one block at a time, in the order a server reads it: JSON lines without cache markers.

    If two requests share their first n parts, a server's cache may be read up to there. What decides whether the
    cache is found at all (model, betas) comes first; what only invalidates messages comes just before them.
    """
    parts = [_line({"model": model_id(request.model), "betas": request.betas})]
    parts += [_line({"tool": _unmarked(tool)}) for tool in request.tools]
    parts += [_line({"system": text}) for text in request.system]
    parts.append(
        _line({"thinking": request.thinking, "effort": request.effort, "tool_choice": request.tool_choice}),
    )
    each = rendered.parts if rendered else _message_parts
    for message in request.messages:
        parts += each(message)
    return parts


def shared(before: Sequence[str], after: Sequence[str]) -> int:
    """How many parts two prefixes have in common, from the start."""
    differ = (i for i, (old, new) in enumerate(zip(before, after, strict=False)) if old != new)
    return next(differ, min(len(before), len(after)))


def canonical(request: Request) -> bytes:
    """The whole prefix as bytes: one request continues another if its bytes start with the other's."""
    return join_parts(prefix_parts(request))


def join_parts(parts: list[str]) -> bytes:
    return "".join(f"{part}\n" for part in parts).encode("utf-8", "surrogatepass")


def _message_parts(message: Message) -> tuple[str, ...]:
    blocks = _accepted([_sent(block.wire()) for block in message.content])
    return tuple(_line({message.role: block}) for block in blocks)


_line = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _accepted(blocks: list[Json]) -> list[Json]:
    """Without thinking that carries no signature: other vendors' models think so, and the Messages API refuses it."""
    if not any(_unsigned(block) for block in blocks):
        return blocks
    return [block for block in blocks if not _unsigned(block)] or [{"type": "text", "text": "(no answer)"}]


def _unsigned(block: Json) -> bool:
    made = as_object(block)
    return made.get("type") == "thinking" and not made.get("signature")


def _sent(block: Json) -> Json:
    """A block as the API takes it: no stray markers, and a tool input that is an object."""
    if not isinstance(block, dict):
        return block
    given = cast(JsonObject, block)
    if "cache_control" in given:
        given = _unmarked(given)
    if given.get("type") == "tool_use" and not isinstance(given.get("input"), dict):
        return {**given, "input": {UNPARSED_INPUT: given.get("input")}}
    inner = given.get("content")
    if isinstance(inner, list) and any("cache_control" in part for part in cast(list[Any], inner)):
        return {**given, "content": [_sent(part) for part in cast(list[Any], inner)]}
    return given


def _unmarked(block: JsonObject) -> JsonObject:
    if "cache_control" not in block:
        return block
    return {key: value for key, value in block.items() if key != "cache_control"}


def _mark(marker: Marker, tools: list[JsonObject], system: list[JsonObject], messages: list[JsonObject]) -> None:
    """Puts a marker on a copy of its block; if that cannot carry it, of the nearest before it in the message."""
    control = {"type": "ephemeral"} if marker.ttl == "5m" else {"type": "ephemeral", "ttl": marker.ttl}
    if marker.section == "messages":
        blocks = cast(list[JsonObject], messages[marker.index]["content"])
        start = range(len(blocks))[marker.block]
        found = next((index for index in range(start, -1, -1) if _markable(blocks[index])), None)
        if found is not None:
            blocks[found] = {**blocks[found], "cache_control": control}
        return
    blocks = tools if marker.section == "tools" else system
    blocks[marker.index] = {**blocks[marker.index], "cache_control": control}


def _markable(block: Json) -> bool:
    if not isinstance(block, dict):
        return False
    kind = cast(JsonObject, block).get("type")
    return kind not in _NOT_MARKABLE and not (kind == "text" and not cast(JsonObject, block).get("text"))
