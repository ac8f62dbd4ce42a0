"""Bodies of the three APIs as the client wrote them: where tool results are, and how one is changed in place. Pure.

Nothing else of a body is touched, so fields and blocks that nobody knows stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
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

_RESULTS = {"chat": ("tool_call_id", "content"), "responses": ("call_id", "output")}
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output", "shell_call_output")


@dataclass(frozen=True, slots=True)
class GivenResult:
    """A tool result in a body. `holder[key]` is its content."""

    id: str
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
    return [as_object(one) for one in cast("list[Json]", given)] if isinstance(given, list) else []


def results_of(api: Api, body: Mapping[str, Any]) -> Iterator[GivenResult]:
    """Every tool result, in order."""
    for item in items_of(api, body):
        if api == "messages":
            content = item.get("content")
            for block in cast("list[Json]", content) if isinstance(content, list) else []:
                given = as_object(block)
                if given.get("type") == "tool_result":
                    yield GivenResult(str(given.get("tool_use_id")), given, "content")
        elif (api == "chat" and item.get("role") == "tool") or item.get("type") in _OUTPUTS:
            name, key = _RESULTS[api]
            yield GivenResult(str(item.get(name)), item, key)


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
    for part in cast("list[Json]", content):
        given = as_object(part)
        if given.get("type") not in ("text", "input_text", "output_text") or not isinstance(given.get("text"), str):
            return None
        texts.append(cast(str, given["text"]))
    return "\n".join(texts)


def tool_names(api: Api, body: Mapping[str, Any]) -> list[str]:
    """The names of the tools that the client offers; server tools by their type."""
    found = list[str]()
    given = body.get("tools")
    for tool in cast("list[Json]", given) if isinstance(given, list) else []:
        named = as_object(tool)
        named = as_object(named.get("function")) or named
        found.append(str(named.get("name") or named.get("type") or ""))
    return found


def change_results(api: Api, body: JsonObject, results: Mapping[str, str]) -> None:
    """Gives these results another text, in place. All else stays the same object."""
    for result in results_of(api, body):
        if (text := results.get(result.id)) is None:
            continue
        marker = _marker_inside(result.content)
        result.holder[result.key] = text
        if marker is not None and "cache_control" not in result.holder:
            result.holder["cache_control"] = marker


def _marker_inside(content: Json) -> Json:
    """The last cache marker inside a content that is replaced; it moves to the result."""
    parts = cast("list[Json]", content) if isinstance(content, list) else []
    found = [as_object(part).get("cache_control") for part in parts]
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


def results_to_change(given: Sequence[GivenResult], sent: Mapping[str, Json]) -> dict[str, str] | None:
    """The results whose text the engine changed, by id; None if it left one out, because the history was compacted."""
    found = dict[str, str]()
    for one in given:
        if one.id not in sent:
            return None
        before, after = text_of(one.content), text_of(sent[one.id])
        if before and after is not None and after != before and before.strip():
            found[one.id] = after
    return found
