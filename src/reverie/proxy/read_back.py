"""The tool with which a model reads copies back through the proxy, in the three APIs: who gets it, which calls are
ours, and how the server's side of an answer is written. Pure.

The server sees our calls and their results; the client sees neither.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, cast

from reverie.library.read_tool import READ_TOOL, read_tool
from reverie.models.wire import as_object, read_input
from reverie.proxy.bodies import Api, list_key, marker_inside, objects_of, tool_names
from reverie.quick import dataclass
from reverie.text.patterns import late
from reverie.types import Json, JsonObject

_ABOUT = "Reads a tool result that is kept under an id: its `id`, and `offset` (in characters) to read on."
_ENDS = {"messages": "end_turn", "chat": "stop"}
_READERS = late(
    r"(?i)(?:read|view|cat|open_?file|str_replace_based_edit_tool|str_replace_editor|text_editor)"
    r"|(?:.*[_.:/-])?(?:(?:read|view|get|fetch|open|cat)_?(?:text_)?files?(?:_contents?|_text)?|file_?(?:read|view)(?:er)?"
    r"|(?:local_)?shell|powershell|exec|(?:bash|shell|terminal)(?:_tool)?"
    r"|(?:bash|shell|terminal|exec|execute|run)(?:_?(?:in_?)?(?:shell|bash|terminal))?_?(?:commands?|cmd|bash|shell)"
    r"|run_?in_?terminal)"
)
"""Names of tools that surely read files or run commands. Each is the whole name, perhaps after that of a server."""


@dataclass(frozen=True, slots=True)
class OwnCall:
    """A call of our tool."""

    id: str
    input: JsonObject


@dataclass(frozen=True, slots=True)
class ReadResult:
    """What our tool returns."""

    call: str
    text: str
    is_error: bool = False


def reads_files(names: Collection[str]) -> bool:
    """Whether one of these tools surely reads files or runs commands."""
    return any(_READERS.fullmatch(name) for name in names)


def make_tool(api: Api, names: Collection[str]) -> JsonObject:
    """The definition of our tool, with a name that no other tool has."""
    tool: JsonObject = read_tool(api, key="id", about=_ABOUT)
    if api == "responses":
        tool["strict"] = False  # else the server wants all parameters in each call
    number = 1
    while (name := READ_TOOL if number == 1 else f"{READ_TOOL}_{number}") in names:
        number += 1
    if api == "chat":
        return {**tool, "function": {**tool["function"], "name": name}}
    return {**tool, "name": name}


def name_of(tool: JsonObject) -> str:
    return str((as_object(tool.get("function")) or tool)["name"])


def with_tool(api: Api, body: JsonObject, tool: JsonObject) -> JsonObject:
    """A body with our tool after those of the client. Without tools, or with one of the same name, it stays."""
    given = body.get("tools")
    if not isinstance(given, list) or not given or name_of(tool) in tool_names(api, body):
        return body
    return {**body, "tools": [*cast("list[Json]", given), tool]}


# Calls in an answer.


def _calls(api: Api, message: Mapping[str, Any]) -> Iterator[tuple[str, str, Json]]:
    """The id, name and input of each call in an answer."""
    if api == "messages":
        for block in objects_of(message.get("content")):
            if block.get("type") == "tool_use":
                yield str(block.get("id")), str(block.get("name")), block.get("input")
    elif api == "chat":
        for call in objects_of(said_in_chat(message).get("tool_calls")):
            function = as_object(call.get("function")) or as_object(call.get("custom"))
            yield str(call.get("id")), str(function.get("name")), function.get("arguments")
    else:
        for item in objects_of(message.get("output")):
            if str(item.get("type")).endswith("_call") and "call_id" in item:
                yield str(item["call_id"]), str(item.get("name")), item.get("arguments")


def _choice(message: Mapping[str, Any]) -> JsonObject:
    return as_object(next(iter(objects_of(message.get("choices"))), None))


def said_in_chat(message: Mapping[str, Any]) -> JsonObject:
    """The message of a chat completion."""
    return as_object(_choice(message).get("message"))


def own_calls(api: Api, message: Mapping[str, Any], tool: str) -> list[OwnCall]:
    """The calls of our tool in an answer."""
    return [
        OwnCall(call, read_input(given) if isinstance(given, str) else as_object(given))
        for call, name, given in _calls(api, message)
        if name == tool
    ]


def has_other_calls(api: Api, message: Mapping[str, Any], tool: str) -> bool:
    return any(name != tool for _, name, _ in _calls(api, message))


def is_whole(api: Api, message: Mapping[str, Any]) -> bool:
    """Whether an answer ended with its calls, and was not cut in the middle of one."""
    if api == "messages":
        return message.get("stop_reason") == "tool_use"
    if api == "chat":
        return _choice(message).get("finish_reason") in ("tool_calls", "stop")
    return message.get("status", "completed") == "completed"


def without_calls(api: Api, message: JsonObject, tool: str, *, ends: bool = False) -> JsonObject:
    """An answer without the calls of our tool. `ends`: there is no other call for the client to answer."""
    if api == "messages":
        content = [one for one in objects_of(message.get("content")) if not is_own_block(one, tool)]
        return {**message, "content": content, **({"stop_reason": _ENDS[api]} if ends else {})}
    if api == "responses":
        return {**message, "output": [one for one in objects_of(message.get("output")) if not is_own_block(one, tool)]}
    said = said_in_chat(message)
    calls = [one for one in objects_of(said.get("tool_calls")) if as_object(one.get("function")).get("name") != tool]
    kept = {key: value for key, value in said.items() if key != "tool_calls"}
    first, *others = objects_of(message.get("choices"))
    first = {**first, "message": {**kept, "tool_calls": calls} if calls else kept}
    first |= {"finish_reason": _ENDS[api]} if ends else {}
    return {**message, "choices": [first, *others]}


def is_own_block(block: Mapping[str, Any], tool: str) -> bool:
    """Whether a block of a message or an item of a response is a call of our tool."""
    return block.get("type") in ("tool_use", "function_call") and block.get("name") == tool


def without_echo(api: Api, message: JsonObject, tool: str) -> JsonObject:
    """A response without our tool among the tools of the request, which the responses API repeats."""
    given = objects_of(message.get("tools")) if api == "responses" else []
    kept = [one for one in given if one.get("name") != tool]
    return message if len(kept) == len(given) else {**message, "tools": kept}


# The server's side.


def said_items(api: Api, message: Mapping[str, Any], body: Mapping[str, Any]) -> list[JsonObject]:
    """An answer as a client gives it back in the next request."""
    if api == "messages":
        return [{"role": "assistant", "content": message.get("content") or []}]
    if api == "chat":
        said = {key: value for key, value in said_in_chat(message).items() if value not in (None, [])}
        return [{"content": None, **said, "role": "assistant"}]
    items = [
        {key: value for key, value in one.items() if value is not None} for one in objects_of(message.get("output"))
    ]
    if body.get("store") is not False:
        return items
    kept = [one for one in items if one.get("type") != "reasoning" or one.get("encrypted_content")]
    return [{key: value for key, value in one.items() if key != "id"} for one in kept]  # nobody kept them by their ids


def result_parts(api: Api, results: Sequence[ReadResult]) -> list[JsonObject]:
    """Results as items; in the Messages API as blocks of a user message."""
    if api == "chat":
        return [{"role": "tool", "tool_call_id": one.call, "content": one.text} for one in results]
    if api == "responses":
        return [{"type": "function_call_output", "call_id": one.call, "output": one.text} for one in results]
    made = [{"type": "tool_result", "tool_use_id": one.call, "content": one.text} for one in results]
    return [{**part, "is_error": True} if one.is_error else part for part, one in zip(made, results, strict=True)]


def result_items(api: Api, results: Sequence[ReadResult]) -> list[JsonObject]:
    """Results as the items that follow the answer with their calls."""
    parts = result_parts(api, results)
    return [{"role": "user", "content": parts}] if api == "messages" else parts


def with_results_first(item: JsonObject, blocks: Sequence[JsonObject]) -> JsonObject:
    """A user message of the Messages API with these results before its own content."""
    content = item.get("content")
    own = [{"type": "text", "text": content}] if isinstance(content, str) else cast("list[Json]", content or [])
    return {**item, "content": [*blocks, *own]}


def with_marker_of(item: JsonObject, before: JsonObject) -> JsonObject:
    """An answer of the Messages API with the cache marker that the client has set in its form of it."""
    mark, content = marker_inside(before.get("content")), objects_of(item.get("content"))
    places = [at for at, one in enumerate(content) if one.get("type") in ("text", "tool_use")]
    if mark is None or not places:
        return item
    marked = {**content[places[-1]], "cache_control": mark}
    return {**item, "content": [marked if at == places[-1] else one for at, one in enumerate(content)]}


def with_items(api: Api, body: JsonObject, items: Sequence[JsonObject]) -> JsonObject:
    """A body with other messages."""
    return {**body, list_key(api): list(items)}
