"""Bodies of the three APIs as the client wrote them: where tool results are, and how one is changed in place. Pure.

Nothing else of a body is touched, so fields and blocks that nobody knows stay as they are.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

from reverie.models.wire import as_object
from reverie.quick import dataclass
from reverie.types import Json, JsonObject

Api: TypeAlias = Literal["messages", "chat", "responses"]

PATHS: Mapping[str, Api] = {
    "/v1/messages": "messages",
    "/v1/chat/completions": "chat",
    "/chat/completions": "chat",
    "/v1/responses": "responses",
    "/responses": "responses",
}
"""Which paths are conversations. Some clients have the version in their base URL."""

_OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output", "shell_call_output")


@dataclass(frozen=True, slots=True)
class GivenResult:
    """A tool result in a body. `holder[key]` is its content. `number`: it is the n-th one with this id."""

    id: str
    number: int
    holder: JsonObject
    key: str

    @property
    def content(self) -> Json:
        return self.holder.get(self.key)


def items_of(api: Api, body: Mapping[str, Any]) -> list[JsonObject]:
    """The messages of a body. A text as `input` is one message."""
    given = body.get("input" if api == "responses" else "messages")
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return _objects(given)


def results_of(api: Api, body: Mapping[str, Any]) -> Iterator[GivenResult]:
    """Every tool result, in order. Left out are those that answer no open call before them: a view repairs them."""
    asked, told = Counter[str](), Counter[str]()
    for item in items_of(api, body):
        for call, holder, key in _parts_of(api, item):
            if holder is None:
                asked[call] += 1
            elif told[call] < asked[call]:
                told[call] += 1
                yield GivenResult(call, told[call], holder, key)


def _parts_of(api: Api, item: JsonObject) -> Iterator[tuple[str, JsonObject | None, str]]:
    """The calls (without a holder) and results of one item."""
    if api == "messages":
        for given in _objects(item.get("content")):
            if given.get("type") == "tool_use":
                yield str(given.get("id")), None, ""
            elif given.get("type") == "tool_result":
                yield str(given.get("tool_use_id")), given, "content"
    elif api == "chat":
        for call in _objects(item.get("tool_calls")):
            yield str(call.get("id")), None, ""
        if item.get("role") == "tool":
            yield str(item.get("tool_call_id")), item, "content"
    elif item.get("type") in _OUTPUTS:
        yield str(item.get("call_id")), item, "output"
    elif str(item.get("type")).endswith("_call") and "call_id" in item:
        yield str(item["call_id"]), None, ""


def _objects(given: Json) -> list[JsonObject]:
    return [as_object(one) for one in cast("list[Json]", given)] if isinstance(given, list) else []


def longest_text(api: Api, body: Mapping[str, Any]) -> int:
    """The characters of the longest text that is not a tool result."""
    found = 0
    for item in items_of(api, body):
        content = item.get("content")
        texts = [content] if item.get("role") != "tool" else []
        for text in (*texts, *(part.get("text") for part in _objects(content) if part.get("type") != "tool_result")):
            found = max(found, len(text) if isinstance(text, str) else 0)
    return found


def last_calls(api: Api, body: Mapping[str, Any]) -> str:
    """The tool calls of the newest answer in a body, as one text."""
    found = list[str]()
    for item in reversed(items_of(api, body)):
        if item.get("role") == "assistant" or str(item.get("type")).endswith("_call"):
            calls = item.get("tool_calls") if api == "chat" else item if api == "responses" else item.get("content")
            found.append(json.dumps(calls, ensure_ascii=False))
        elif found:
            break
    return "\n".join(found)


def text_of(content: Json) -> str | None:
    """The text of a result; None if it has anything else, e.g. an image."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    texts = list[str]()
    for given in _objects(content):
        if given.get("type") not in ("text", "input_text", "output_text") or not isinstance(given.get("text"), str):
            return None
        texts.append(cast(str, given["text"]))
    return "\n".join(texts)


def tool_names(api: Api, body: Mapping[str, Any]) -> list[str]:
    """The names of the tools that the client offers; server tools by their type."""
    found = list[str]()
    for named in _objects(body.get("tools")):
        named = as_object(named.get("function")) or named
        found.append(str(named.get("name") or named.get("type") or ""))
    return found


def change_results(changes: Sequence[tuple[GivenResult, str]]) -> None:
    """Gives results another text, in the body that they are in. All else stays the same object."""
    for result, text in changes:
        marker = _marker_inside(result.content)
        result.holder[result.key] = text
        if marker is not None and "cache_control" not in result.holder:
            result.holder["cache_control"] = marker


def _marker_inside(content: Json) -> Json:
    """The last cache marker inside a content that is replaced; it moves to the result."""
    found = [part.get("cache_control") for part in _objects(content)]
    return next((one for one in reversed(found) if one is not None), None)


def set_markers(body: JsonObject, users: int = 2) -> None:
    """Sets cache markers at the end of the system prompt and of the last user messages, in place."""
    mark: JsonObject = {"type": "ephemeral"}
    asked = [one for one in items_of("messages", body) if one.get("role") == "user"][-users:]
    for holder, key in ((body, "system"), *((one, "content") for one in asked)):
        content = holder.get(key)
        if isinstance(content, str) and content.strip():
            holder[key] = [{"type": "text", "text": content, "cache_control": mark}]
        elif isinstance(content, list) and content:
            last = as_object(cast("list[Json]", content)[-1])
            if last.get("type") in ("text", "tool_result", "image", "document") and last.get("text") != "":
                last["cache_control"] = mark


def dump(body: Mapping[str, Any]) -> bytes:
    """The body as bytes; also half of a surrogate pair survives."""
    return json.dumps(body, separators=(",", ":")).encode()


def results_to_change(
    given: Sequence[GivenResult], sent: Iterable[GivenResult]
) -> list[tuple[GivenResult, str]] | None:
    """The results whose text the engine changed; None if it left one out, because the history was compacted. Results
    with the same id are told apart by their order."""
    contents = {(one.id, one.number): one.content for one in sent}
    found = list[tuple[GivenResult, str]]()
    for one in given:
        renamed = f"{one.id}-{one.number}", 1  # a view needs ids that are unique
        key = renamed if (one.id, one.number) not in contents else (one.id, one.number)
        if key not in contents:
            return None
        before, after = text_of(one.content), text_of(contents[key])
        if before and after is not None and after != before and before.strip():
            found.append((one, after))
    return found


def kept_by_server(api: Api, body: Mapping[str, Any]) -> str:
    """The name of the history that the server keeps, if a request has only what is new; else empty."""
    if api != "responses":
        return ""
    for key in ("previous_response_id", "conversation"):
        named = body.get(key)
        named = as_object(named).get("id") or named
        if isinstance(named, str) and named:
            return named
    return ""
