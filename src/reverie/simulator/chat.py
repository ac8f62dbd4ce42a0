"""The chat-completions API of the simulator: turns requests into the form of the Messages API, and answers back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

from reverie.models.base import UNPARSED_INPUT
from reverie.models.openai_items import chat_tool
from reverie.simulator.answer import chunks, cut_error, input_text
from reverie.simulator.check import check_model, check_objects
from reverie.simulator.errors import ApiError, invalid
from reverie.simulator.reading import read_value
from reverie.types import Usage

Object = Mapping[str, Any]
_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]+$")
_CHOICES = {"auto": "auto", "required": "any", "none": "none"}
_REASONS = {"tool_use": "tool_calls", "max_tokens": "length", "model_context_window_exceeded": "length"}


def to_messages(body: Object) -> dict[str, Any]:
    """A chat request in the form of the Messages API."""
    check_model(body.get("model"), "you must provide a model parameter")
    given = check_objects(body.get("messages"), "messages")
    if not given:
        raise invalid("Invalid 'messages': empty array. Expected an array with minimum length 1.")
    _check_settings(body)
    for number, message in enumerate(given):
        _check_message(message, f"messages[{number}]")
    _check_pairs(given)
    system: list[dict[str, Any]] = []
    turns: list[dict[str, Any]] = []
    for message in given:
        role, content = message.get("role"), message.get("content")
        if role in ("system", "developer"):
            blocks = _text_blocks(content)
            if turns:
                turns.append({"role": "system", "content": blocks})
            else:
                system.extend(blocks)
        elif role == "tool":
            add(turns, "user", [_result(message)])
        elif role == "assistant":
            add(turns, "assistant", [*_text_blocks(content), *map(_call, _calls(message))])
        else:
            add(turns, "user", _user_blocks(content))
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    tools = [chat_tool(tool) for tool in check_objects(body.get("tools"), "tools")]
    made = {"model": body["model"], "system": system, "tools": tools, "messages": turns, "max_tokens": limit}
    return made | fixed_form(body.get("tool_choice"), body.get("response_format"), tools)


def fixed_form(choice: object, form: object, tools: Sequence[Object]) -> dict[str, Any]:
    """The `tool_choice` and the format of an answer, in the form of the Messages API."""
    made: dict[str, Any] = {}
    if isinstance(choice, Mapping):
        named = cast("Object", choice)
        named = cast("Object", named.get("function") or named.get("custom") or named)
        name = named.get("name")
        if name not in [tool.get("name") for tool in tools]:
            raise invalid(f"Invalid value for 'tool_choice': the tool '{name}' is not in 'tools'.")
        made["tool_choice"] = {"type": "tool", "name": name}
    elif choice is not None:
        if not isinstance(choice, str) or choice not in _CHOICES:
            known = ", ".join(map(repr, _CHOICES))
            raise invalid(f"Invalid value for 'tool_choice'. Supported values are: {known}, or an object.")
        if choice == "required" and not tools:
            raise invalid("Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.")
        made["tool_choice"] = {"type": _CHOICES[choice]}
    if isinstance(form, Mapping) and cast("Object", form).get("type") in ("json_schema", "json_object"):
        given = cast("Object", form)
        inner = given.get("json_schema") or given
        schema = cast("Object", inner).get("schema") if isinstance(inner, Mapping) else None
        made["output_config"] = {"format": {"type": "json_schema", "schema": schema or {}}}
    return made


def _check_settings(body: Object) -> None:
    for name in ("max_tokens", "max_completion_tokens"):
        limit = body.get(name)
        if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
            raise invalid(f"Invalid type for '{name}': expected an integer of at least 1.")
    if not isinstance(body.get("stream") or False, bool):
        raise invalid("Invalid type for 'stream': expected a boolean.")
    expect(body.get("stream_options"), Mapping, "stream_options")
    check_temperature(body.get("temperature"))
    for number, tool in enumerate(check_objects(body.get("tools"), "tools")):
        expect(tool.get("function"), Mapping, f"tools[{number}].function")
        function = cast("Object", tool.get("function") or tool)
        check_tool_name(function.get("name"), f"tools[{number}].function.name")


def check_tool_name(name: object, path: str) -> None:
    """Refuses a name that is not a string or has odd characters; None is fine."""
    expect(name, str, path)
    if isinstance(name, str) and not _TOOL_NAME.fullmatch(name):
        raise invalid(
            f"Invalid '{path}': string does not match pattern. Expected a string that matches the pattern "
            f"'{_TOOL_NAME.pattern}'."
        )


def check_temperature(value: object) -> None:
    """Refuses a temperature out of range."""
    if value is not None and (not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 2):
        raise invalid(f"Invalid 'temperature': expected a decimal from 0 to 2, but got {str(value)[:40]} instead.")


def _check_message(message: Object, path: str) -> None:
    role = message.get("role")
    if role not in _ROLES:
        raise invalid(f"Invalid value for '{path}.role'. Supported values are: {', '.join(map(repr, _ROLES))}.")
    content = message.get("content")
    if not isinstance(content, str):
        for number, part in enumerate(check_objects(content, f"{path}.content")):
            expect(part.get("type"), str, f"{path}.content[{number}].type")
            expect(part.get("text"), str, f"{path}.content[{number}].text")
            expect(part.get("image_url"), Mapping, f"{path}.content[{number}].image_url")
    expect(message.get("tool_call_id"), str, f"{path}.tool_call_id")
    for number, call in enumerate(check_objects(message.get("tool_calls"), f"{path}.tool_calls")):
        place = f"{path}.tool_calls[{number}]"
        if not call.get("id"):
            raise invalid(f"Missing required parameter: '{place}.id'.")
        expect(call["id"], str, f"{place}.id")
        expect(call.get("function"), Mapping, f"{place}.function")
        function = cast("Object", call.get("function") or {})
        expect(function.get("name"), str, f"{place}.function.name")
        expect(function.get("arguments"), str, f"{place}.function.arguments")


def expect(value: object, wanted: type, path: str) -> None:
    """Refuses a value of another type; None is fine."""
    if value is not None and not isinstance(value, wanted):
        raise invalid(f"Invalid type for '{path}': expected {'a string' if wanted is str else 'an object'}.")


def _check_pairs(messages: Sequence[Object]) -> None:
    waiting: dict[str, None] = {}
    for message in messages:
        if message.get("role") == "tool":
            name = str(message.get("tool_call_id"))
            if name not in waiting:
                raise invalid(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                    "'tool_calls'."
                )
            del waiting[name]
            continue
        _refuse_waiting(waiting)
        waiting = {str(call.get("id")): None for call in _calls(message)}
    _refuse_waiting(waiting)


def _refuse_waiting(waiting: Mapping[str, None]) -> None:
    if waiting:
        raise invalid(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. The following tool_call_ids did not have response messages: " + ", ".join(waiting)
        )


def _calls(message: Object) -> list[Object]:
    return cast("list[Object]", message.get("tool_calls") or []) if message.get("role") == "assistant" else []


def add(turns: list[dict[str, Any]], role: str, blocks: list[dict[str, Any]]) -> None:
    """Adds blocks to the last turn if it has the same role, else as a new turn."""
    if turns and turns[-1]["role"] == role:
        cast("list[dict[str, Any]]", turns[-1]["content"]).extend(blocks)
    else:
        turns.append({"role": role, "content": blocks})


def _text_blocks(content: object) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    parts = cast("list[Object]", content or [])
    return [{"type": "text", "text": str(part["text"])} for part in parts if part.get("text")]


def _user_blocks(content: object) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return _text_blocks(content)
    blocks: list[dict[str, Any]] = []
    for part in cast("list[Object]", content or []):
        match part.get("type"):
            case "text":
                blocks.append({"type": "text", "text": part.get("text", "")})
            case "image_url":
                blocks.append({"type": "image", "source": part.get("image_url")})
            case _:
                blocks.append({"type": "document", "source": dict(part)})
    return blocks


def _result(message: Object) -> dict[str, Any]:
    content = message.get("content")
    text = content if isinstance(content, str) else "\n".join(b["text"] for b in _text_blocks(content))
    return {"type": "tool_result", "tool_use_id": message.get("tool_call_id"), "content": text}


def _call(call: Object) -> dict[str, Any]:
    function = cast("Object", call.get("function") or {})
    given = read_arguments(str(function.get("arguments") or "{}"))
    return {"type": "tool_use", "id": call.get("id"), "name": function.get("name"), "input": given}


def read_arguments(arguments: str) -> object:
    """The arguments of a call; text that is not JSON is under `_unparsed`."""
    try:
        return read_value(arguments)
    except ApiError:
        return {UNPARSED_INPUT: arguments}


def too_long(tokens: int, window: int) -> ApiError:
    """The error for a prompt that does not fit."""
    return invalid(
        f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens. "
        "Please reduce the length of the messages."
    )


def usage_wire(usage: Usage) -> dict[str, Any]:
    """The usage in the form of the chat-completions API."""
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_input_tokens, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }


def completion(message_id: str, model: str, content: Sequence[Object], stop: str, usage: Usage, at: int) -> Object:
    """A complete answer, without thinking, which this API does not have."""
    text = "".join(str(block["text"]) for block in content if block.get("type") == "text")
    calls = [_wire_call(block) for block in content if block.get("type") == "tool_use"]
    message: dict[str, Any] = {"role": "assistant", "content": text or None, "refusal": None}
    if calls:
        message["tool_calls"] = calls
    return {
        "id": message_id,
        "object": "chat.completion",
        "created": at,
        "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": _REASONS.get(stop, "stop")}],
        "usage": usage_wire(usage),
        "service_tier": "default",
    }


def _wire_call(block: Object) -> dict[str, Any]:
    function = {"name": block["name"], "arguments": input_text(block.get("input"))}
    return {"id": block["id"], "type": "function", "function": function}


def stream_chunks(
    message_id: str, model: str, content: Sequence[Object], stop: str, usage: Usage | None, at: int, cut: int | None
) -> Iterator[dict[str, Any]]:
    """An answer as a stream, with `usage` in a separate last chunk; raises `Unreachable` after `cut` characters."""
    frame = {"id": message_id, "object": "chat.completion.chunk", "created": at, "model": model}
    left = cut

    def chunk(delta: Object, finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**frame, "choices": [choice]} | ({} if usage is None else {"usage": None})

    yield chunk({"role": "assistant", "content": ""})
    for text, make_delta in _pieces(content):
        if left is not None:
            text = text[:left]
            left -= len(text)
        yield chunk(make_delta(text))
        if left is not None and left <= 0:
            raise cut_error()
    if cut is not None:
        raise cut_error()
    yield chunk({}, _REASONS.get(stop, "stop"))
    if usage is not None:
        yield {**frame, "choices": [], "usage": usage_wire(usage)}


def _pieces(content: Sequence[Object]) -> Iterator[tuple[str, Callable[[str], Object]]]:
    """The pieces of an answer, each with the function that makes a delta of its text."""
    number = 0
    for block in content:
        if block.get("type") == "text":
            for text in chunks(str(block["text"])):
                yield text, lambda piece: {"content": piece}
        elif block.get("type") == "tool_use":
            yield "", partial(_call_delta, number, block)
            for text in chunks(input_text(block.get("input"))):
                yield text, partial(_call_delta, number, None)
            number += 1


def _call_delta(number: int, first: Object | None, text: str) -> Object:
    """The first delta of a call names it; the others have its arguments."""
    if first is None:
        return {"tool_calls": [{"index": number, "function": {"arguments": text}}]}
    function = {"name": first["name"], "arguments": ""}
    return {"tool_calls": [{"index": number, "id": first["id"], "type": "function", "function": function}]}
