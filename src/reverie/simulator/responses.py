"""The Responses API of the simulator: turns requests into the form of the Messages API, and answers back.

Codex and the OpenAI SDKs speak it. An item of a kind that we do not know is kept as it is: it counts, and nobody reads
it.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from reverie.models.openai_items import CALLS, RESULTS, responses_tool
from reverie.simulator import chat
from reverie.simulator.answer import chunks, cut_error, input_text
from reverie.simulator.check import check_model, check_objects
from reverie.simulator.errors import invalid
from reverie.types import Usage

Object = Mapping[str, Any]
_ROLES = ("user", "assistant", "system", "developer")
_STREAMED = {
    "message": ("text", "response.output_text"),
    "function_call": ("arguments", "response.function_call_arguments"),
    "custom_tool_call": ("input", "response.custom_tool_call_input"),
}
"""By kind of item: the field that is streamed, and the name of its events."""
_SEALED = "sim_"
"""The beginning of what this server sealed: the rest is a summary."""
_SUMMARISE = "Write a summary of this conversation, so that it can go on with your summary alone."


def to_messages(body: Object, earlier: Object | None = None) -> dict[str, Any]:
    """A request in the form of the Messages API. `earlier`: system and messages of the response that it continues."""
    check_model(body.get("model"), "Missing required parameter: 'model'.")
    _check_settings(body)
    system = list(cast("list[dict[str, Any]]", earlier["system"])) if earlier else []
    turns = [{**turn, "content": list(turn["content"])} for turn in earlier["messages"]] if earlier else []
    for number, item in enumerate(_items(body.get("input"))):
        _add_item(item, f"input[{number}]", system, turns)
    if not turns:
        raise invalid("Missing required parameter: 'input'.")
    _check_pairs(turns)
    tools = [responses_tool(tool) for tool, _ in _flat_tools(body)]
    text = cast("Object", body.get("text") or {})
    limit = body.get("max_output_tokens")
    made = {"model": body["model"], "tools": tools, "system": system, "messages": turns, "max_tokens": limit}
    return made | chat.fixed_form(body.get("tool_choice"), text.get("format"), tools)


def with_instructions(plain: Object, body: Object) -> dict[str, Any]:
    """The request with its `instructions`, which are not kept for the requests that continue it."""
    given = body.get("instructions")
    first = [{"type": "text", "text": given}] if isinstance(given, str) and given else []
    return {**plain, "system": [*first, *plain["system"]]}


def with_summary_asked(plain: Object) -> dict[str, Any]:
    """The request with the question for a summary, as the server asks it to compact a conversation."""
    turns = [*plain["messages"], {"role": "user", "content": [{"type": "text", "text": _SUMMARISE}]}]
    return {**plain, "messages": turns}


def compaction(name: str, plain: Object, content: Sequence[Object], usage: Usage, at: int) -> dict[str, Any]:
    """A compacted conversation: what the user said, and one sealed item for everything else."""
    said = [
        {"type": "input_text", "text": block["text"]}
        for turn in cast("list[Object]", plain["messages"])
        if turn["role"] == "user"
        for block in cast("list[Object]", turn["content"])
        if block.get("type") == "text"
    ]
    frame = {"type": "message", "role": "user", "status": "completed"}
    output = [{**frame, "id": f"msg_{name}_{number}", "content": [part]} for number, part in enumerate(said)]
    summary = "".join(str(block["text"]) for block in content if block.get("type") == "text")
    sealed = _SEALED + urlsafe_b64encode(summary.encode("utf-8", "replace")).decode()
    item = {"type": "compaction", "id": f"cmp_{name}", "encrypted_content": sealed}
    made = {"id": name, "object": "response.compaction", "created_at": at}
    return {**made, "output": [*output, item], "usage": usage_wire(usage)}


def _unsealed(given: object) -> str:
    """The summary in what this server sealed; empty for anything else."""
    if not isinstance(given, str) or not given.startswith(_SEALED):
        return ""
    try:
        return urlsafe_b64decode(given.removeprefix(_SEALED)).decode()
    except ValueError:
        return ""


def _check_settings(body: Object) -> None:
    limit = body.get("max_output_tokens")
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        raise invalid("Invalid type for 'max_output_tokens': expected an integer of at least 1.")
    if not isinstance(body.get("stream") or False, bool):
        raise invalid("Invalid type for 'stream': expected a boolean.")
    chat.expect(body.get("text"), Mapping, "text")
    chat.expect(body.get("previous_response_id"), str, "previous_response_id")
    if not isinstance(body.get("instructions"), str):
        check_objects(body.get("instructions"), "instructions")
    chat.check_temperature(body.get("temperature"))


def _items(given: object) -> list[Object]:
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return list(check_objects(given, "input"))


def _add_item(item: Object, path: str, system: list[dict[str, Any]], turns: list[dict[str, Any]]) -> None:
    kind = item.get("type") or "message"
    chat.expect(kind, str, f"{path}.type")
    if kind == "message":
        role = item.get("role")
        if role not in _ROLES:
            raise invalid(f"Invalid value for '{path}.role'. Supported values are: {', '.join(map(repr, _ROLES))}.")
        blocks = _content(item.get("content"), f"{path}.content")
        if role in ("user", "assistant"):
            chat.add(turns, role, blocks)
        elif turns:
            turns.append({"role": "system", "content": blocks})
        else:
            system.extend(blocks)
    elif kind in CALLS:
        chat.add(turns, "assistant", [_call(item, path)])
    elif kind in RESULTS:
        chat.add(turns, "user", [_result(item, path)])
    elif kind == "compaction" and (summary := _unsealed(item.get("encrypted_content"))):
        chat.add(turns, "assistant", [{"type": "text", "text": summary}])
    elif kind != "reasoning":  # we never send any, and what others send is sealed
        chat.add(turns, "assistant", [{"type": "item", "item": dict(item)}])


def _content(content: object, path: str) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    blocks: list[dict[str, Any]] = []
    for number, part in enumerate(check_objects(content, path)):
        text = part.get("text") or part.get("refusal")
        chat.expect(text, str, f"{path}[{number}].text")
        if part.get("type") == "input_image":
            blocks.append({"type": "image", "source": {"url": part.get("image_url") or part.get("file_id")}})
        elif part.get("type") == "input_file":
            blocks.append({"type": "document", "source": dict(part)})
        elif text:
            blocks.append({"type": "text", "text": text})
    return blocks


def _call(item: Object, path: str) -> dict[str, Any]:
    name, call_id = item.get("name") or "local_shell", item.get("call_id")
    chat.expect(name, str, f"{path}.name")
    _require_id(call_id, path)
    if item.get("type") == "function_call":
        chat.expect(item.get("arguments"), str, f"{path}.arguments")
        given = chat.read_arguments(str(item.get("arguments") or "{}"))
    else:
        given = {"input": item["input"]} if "input" in item else {"action": item.get("action")}
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def _result(item: Object, path: str) -> dict[str, Any]:
    _require_id(item.get("call_id"), path)
    output = item.get("output")
    content = output if isinstance(output, str) else _content(output, f"{path}.output")
    return {"type": "tool_result", "tool_use_id": item["call_id"], "content": content}


def _require_id(value: object, path: str) -> None:
    if not value:
        raise invalid(f"Missing required parameter: '{path}.call_id'.")
    chat.expect(value, str, f"{path}.call_id")


def _check_pairs(turns: Sequence[Object]) -> None:
    """Every output answers a call before it, and every call has an output."""
    waiting: dict[str, None] = {}
    for turn in turns:
        for block in cast("Sequence[Object]", turn["content"]):
            if block.get("type") == "tool_use":
                waiting[block["id"]] = None
            elif block.get("type") == "tool_result":
                if block["tool_use_id"] not in waiting:
                    raise invalid(f"No tool call found for function call output with call_id {block['tool_use_id']}.")
                del waiting[block["tool_use_id"]]
    if waiting:
        raise invalid(f"No tool output found for function call {next(iter(waiting))}.")


def _flat_tools(body: Object) -> Iterator[tuple[Object, Object]]:
    """All tools, each with what a call of it adds: the namespace that it is in."""
    for number, tool in enumerate(check_objects(body.get("tools"), "tools")):
        chat.check_tool_name(tool.get("name"), f"tools[{number}].name")
        chat.expect(tool.get("type"), str, f"tools[{number}].type")
        if tool.get("type") != "namespace":
            yield tool, {}
            continue
        for place, inner in enumerate(check_objects(tool.get("tools"), f"tools[{number}].tools")):
            chat.check_tool_name(inner.get("name"), f"tools[{number}].tools[{place}].name")
            yield inner, {"namespace": tool.get("name")}


def _output(response_id: str, body: Object, content: Sequence[Object]) -> list[dict[str, Any]]:
    """The items of an answer, without thinking, which this server does not show."""
    tools = {tool.get("name"): (tool.get("type"), extra) for tool, extra in _flat_tools(body)}
    items: list[dict[str, Any]] = []
    for block in content:
        name = f"{response_id.removeprefix('resp_')}_{len(items)}"
        if block.get("type") == "text":
            part: dict[str, Any] = {"type": "output_text", "text": block["text"], "annotations": [], "logprobs": []}
            message = {"id": f"msg_{name}", "type": "message", "status": "completed", "role": "assistant"}
            items.append({**message, "content": [part]})
        elif block.get("type") == "tool_use":
            kind, extra = tools.get(block["name"], ("function", {}))
            call = {"id": f"fc_{name}", "call_id": block["id"], "name": block["name"], "status": "completed", **extra}
            if kind == "custom":
                given = cast("Object", block.get("input") or {}).get("input")
                shown = given if isinstance(given, str) else input_text(block.get("input"))
                items.append({"type": "custom_tool_call", **call, "input": shown})
            else:
                items.append({"type": "function_call", **call, "arguments": input_text(block.get("input"))})
    return items


def usage_wire(usage: Usage) -> dict[str, Any]:
    """The usage in the form of the Responses API."""
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cache_read_input_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.total,
    }


def response(name: str, body: Object, content: Sequence[Object], stop: str, usage: Usage, at: int) -> dict[str, Any]:
    """A complete answer."""
    cut = stop in ("max_tokens", "model_context_window_exceeded")
    shown = ("instructions", "metadata", "tools", "tool_choice", "text", "reasoning", "previous_response_id", "store")
    given = {key: body[key] for key in shown if body.get(key) is not None}
    return {
        "id": name,
        "object": "response",
        "created_at": at,
        "status": "incomplete" if cut else "completed",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "model": body["model"],
        "output": _output(name, body, content),
        "parallel_tool_calls": bool(body.get("parallel_tool_calls", True)),
        "tool_choice": "auto",
        "tools": [],
        **given,
        "max_output_tokens": body.get("max_output_tokens"),
        "temperature": body.get("temperature", 1.0),
        "top_p": body.get("top_p", 1.0),
        "usage": usage_wire(usage),
    }


def events(answer: dict[str, Any], cut: int | None) -> Iterator[dict[str, Any]]:
    """An answer as a stream; raises `Unreachable` after `cut` characters."""
    for number, event in enumerate(_events(answer, cut)):
        yield {**event, "sequence_number": number}


def _events(answer: dict[str, Any], cut: int | None) -> Iterator[dict[str, Any]]:
    begun: dict[str, Any] = {**answer, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    left = cut
    for index, item in enumerate(cast("list[dict[str, Any]]", answer["output"])):
        place = {"item_id": item["id"], "output_index": index}
        for event, text in _item_events(item, place):
            if left is not None and len(text) >= max(left, 1):
                yield {**event, "delta": text[:left]}
                raise cut_error()
            left = None if left is None else left - len(text)
            yield event
    if cut is not None:
        raise cut_error()
    yield {"type": f"response.{answer['status']}", "response": answer}


def _item_events(item: dict[str, Any], place: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """The events of an item, each with the text that it adds."""
    index = {"output_index": place["output_index"]}
    key, kind = _STREAMED[item["type"]]
    part: dict[str, Any] | None = None
    extra: dict[str, Any] = {}
    empty: dict[str, Any] = {**item, "status": "in_progress", key: ""}
    if item["type"] == "message":
        (part,) = item["content"]
        place, extra = {**place, "content_index": 0}, {"logprobs": []}
        empty = {**item, "status": "in_progress", "content": []}
    text = str(item[key] if part is None else part[key])
    yield {"type": "response.output_item.added", **index, "item": empty}, ""
    if part is not None:
        yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}, ""
    for piece in chunks(text):
        yield {"type": f"{kind}.delta", **place, "delta": piece, **extra}, piece
    yield {"type": f"{kind}.done", **place, key: text, **extra}, ""
    if part is not None:
        yield {"type": "response.content_part.done", **place, "part": part}, ""
    yield {"type": "response.output_item.done", **index, "item": item}, ""
