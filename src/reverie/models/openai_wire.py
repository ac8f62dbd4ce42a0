"""A request in the form of the chat-completions API.

Local servers understand less than the vendor: so contents are plain strings where possible, and optional fields are
left out unless they are needed. Thinking, cache markers and context edits are not part of this API.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, assert_never, cast

from reverie.models import wire
from reverie.models.base import Request
from reverie.models.wire import as_object
from reverie.types import (
    Block,
    DocumentBlock,
    ImageBlock,
    Json,
    JsonObject,
    Message,
    OtherBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)

_EFFORTS = {"max": "xhigh"}
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


def body(request: Request, *, vendor: bool) -> JsonObject:
    """The request body. `vendor`: OpenAI's own dialect, which wants `max_completion_tokens`."""
    made: JsonObject = {
        "model": wire.model_id(request.model),
        "messages": list(_messages(request)),
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_completion_tokens" if vendor else "max_tokens": request.max_tokens,
    }
    tools = [tool_item(tool) for tool in request.tools if "input_schema" in tool]
    if tools:
        made["tools"] = tools
        made |= _tool_choice(as_object(request.tool_choice))
    if request.effort is not None:
        made["reasoning_effort"] = _EFFORTS.get(request.effort, request.effort)
    if request.output_schema is not None:
        schema = request.output_schema
        made["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": schema, "strict": is_strict(schema)},
        }
    return made


def tool_item(tool: JsonObject) -> JsonObject:
    """The definition of a tool."""
    described = {"name": tool["name"], "description": tool.get("description", ""), "parameters": tool["input_schema"]}
    return {"type": "function", "function": described}


def _tool_choice(choice: JsonObject) -> JsonObject:
    if not choice:
        return {}
    named = {"type": "function", "function": {"name": choice.get("name")}}
    kind = str(choice.get("type"))
    made: JsonObject = {"tool_choice": named if kind == "tool" else _CHOICES.get(kind, "auto")}
    return made | ({"parallel_tool_calls": False} if choice.get("disable_parallel_tool_use") else {})


def is_strict(schema: Json) -> bool:
    """Whether a schema fits strict mode: every object is closed and every property required."""
    if isinstance(schema, list):
        return all(is_strict(part) for part in cast(list[Any], schema))
    given = as_object(schema)
    if given.get("type") == "object":
        names = set(as_object(given.get("properties")))
        if given.get("additionalProperties") is not False or names != set(given.get("required") or []):
            return False
    return all(is_strict(part) for part in given.values())


def _messages(request: Request) -> Iterator[JsonObject]:
    if request.system:
        yield {"role": "system", "content": "\n\n".join(request.system)}
    for message in request.messages:
        if message.role == "assistant":
            yield assistant_item(message)
        else:
            yield from _user(message)


def assistant_item(message: Message) -> JsonObject:
    """The item of an assistant message."""
    if not message.tool_uses:
        return {"role": "assistant", "content": message.text}
    calls = [(call.id, call.name, json.dumps(call.input, ensure_ascii=False)) for call in message.tool_uses]
    return {
        "role": "assistant",
        "content": message.text or None,
        "tool_calls": [
            {"id": call, "type": "function", "function": {"name": name, "arguments": given}}
            for call, name, given in calls
        ],
    }


def _user(message: Message) -> Iterator[JsonObject]:
    """Tool results are separate messages and must come first. They can only hold text, so their images follow."""
    images: list[Block] = []
    for block in message.content:
        if isinstance(block, ToolResultBlock):
            yield result_item(block)
            inner = block.content if isinstance(block.content, tuple) else ()
            images += [part for part in inner if isinstance(part, ImageBlock)]
    parts = [part for block in (*images, *message.content) for part in user_parts(block)]
    if parts:
        is_text = all(part["type"] == "text" for part in parts)
        yield {"role": "user", "content": "\n\n".join(part["text"] for part in parts) if is_text else parts}


def result_item(block: ToolResultBlock) -> JsonObject:
    """The item of a tool result."""
    text = block.text
    if isinstance(block.content, tuple) and any(isinstance(part, ImageBlock) for part in block.content):
        text = f"{text}\n(The image follows.)".lstrip()
    if block.is_error and not text.lower().startswith("error"):
        text = f"Error: {text}"
    return {"role": "tool", "tool_call_id": block.tool_use_id, "content": text}


def user_parts(block: Block) -> list[JsonObject]:
    """The parts of a user item for a block."""
    match block:
        case TextBlock(text):
            return [{"type": "text", "text": text}] if text else []
        case ImageBlock(source):
            return [{"type": "image_url", "image_url": {"url": image_url(as_object(source))}}]
        case DocumentBlock(source):
            given = as_object(source)
            text = given.get("data") if given.get("type") == "text" else None
            return [{"type": "text", "text": str(text or "(A document that this model cannot read was left out.)")}]
        case ThinkingBlock() | ToolUseBlock() | ToolResultBlock() | OtherBlock():
            return []
        case _:
            assert_never(block)


def image_url(source: JsonObject) -> str:
    """The address of an image, with its data in it if it has any."""
    if source.get("type") == "base64":
        return f"data:{source.get('media_type')};base64,{source.get('data')}"
    return str(source.get("url") or "")
