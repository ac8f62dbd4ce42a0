"""Bodies of the three APIs as the client wrote them: where tool results are, and how one is changed in place. Pure.

Nothing else of a body is touched, so fields and blocks that nobody knows stay as they are.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast, get_args

from reverie.models.wire import as_object
from reverie.quick import dataclass
from reverie.types import Json, JsonObject

Api: TypeAlias = Literal["messages", "chat", "responses"]
APIS: tuple[str, ...] = get_args(Api)

ResultName: TypeAlias = tuple[str, int]
"""The id of a call, and which of the results with this id it is."""

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
    def name(self) -> ResultName:
        return self.id, self.number

    @property
    def content(self) -> Json:
        return self.holder.get(self.key)


def list_key(api: Api) -> str:
    """The field with the messages."""
    return "input" if api == "responses" else "messages"


def items_of(api: Api, body: Mapping[str, Any]) -> list[JsonObject]:
    """The messages of a body. A text as `input` is one message."""
    given = body.get(list_key(api))
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return objects_of(given)


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
        for given in objects_of(item.get("content")):
            if given.get("type") == "tool_use":
                yield str(given.get("id")), None, ""
            elif given.get("type") == "tool_result":
                yield str(given.get("tool_use_id")), given, "content"
    elif api == "chat":
        for call in objects_of(item.get("tool_calls")):
            yield str(call.get("id")), None, ""
        if item.get("role") == "tool":
            yield str(item.get("tool_call_id")), item, "content"
    elif item.get("type") in _OUTPUTS:
        yield str(item.get("call_id")), item, "output"
    elif str(item.get("type")).endswith("_call") and "call_id" in item:
        yield str(item["call_id"]), None, ""


def new_results(api: Api, body: Mapping[str, Any], longer_than: int) -> int:
    """The bytes of the results since the last answer whose texts have more characters than this."""
    found = 0
    for item in reversed(items_of(api, body)):
        parts = list(_parts_of(api, item))
        if item.get("role") == "assistant" or any(holder is None for _, holder, _ in parts):
            break
        contents = [holder.get(key) for _, holder, key in parts if holder is not None]
        found += sum(len(json.dumps(one)) for one in contents if len(text_of(one) or "") > longer_than)
    return found


def objects_of(given: Json) -> list[JsonObject]:
    """The objects of a list; of anything else, none."""
    return [as_object(one) for one in cast("list[Json]", given)] if isinstance(given, list) else []


def longest_text(api: Api, body: Mapping[str, Any]) -> int:
    """The characters of the longest text that is not a tool result."""
    found = 0
    for item in items_of(api, body):
        content = item.get("content")
        texts = [content] if item.get("role") != "tool" else []
        for text in (*texts, *(part.get("text") for part in objects_of(content) if part.get("type") != "tool_result")):
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
    for given in objects_of(content):
        if given.get("type") not in ("text", "input_text", "output_text") or not isinstance(given.get("text"), str):
            return None
        texts.append(cast(str, given["text"]))
    return "\n".join(texts)


def tool_names(api: Api, body: Mapping[str, Any]) -> list[str]:
    """The names of the tools that the client offers; server tools by their type."""
    found = list[str]()
    for named in objects_of(body.get("tools")):
        named = as_object(named.get("function")) or named
        found.append(str(named.get("name") or named.get("type") or ""))
    return found


def change_results(
    api: Api, body: JsonObject, given: Sequence[GivenResult], results: Mapping[ResultName, str]
) -> JsonObject:
    """A body in which these of its results have another text. All else is the same object; nothing changes in place."""
    changed = {id(one.holder): _with_text(one, results[one.name]) for one in given if one.name in results}
    if not changed:
        return body
    key = list_key(api)
    return {**body, key: [_with_parts(item, changed) for item in cast("list[Json]", body[key])]}


def _with_parts(item: Json, changed: Mapping[int, JsonObject]) -> Json:
    """An item with those of its parts that were changed, or the changed item itself."""
    if id(item) in changed:
        return changed[id(item)]
    content = as_object(item).get("content")
    if not isinstance(content, list) or not any(id(part) in changed for part in cast("list[Json]", content)):
        return item
    return {**as_object(item), "content": [changed.get(id(part), part) for part in cast("list[Json]", content)]}


def _with_text(result: GivenResult, text: str) -> JsonObject:
    marker = marker_inside(result.content)
    kept = {} if marker is None or "cache_control" in result.holder else {"cache_control": marker}
    return {**result.holder, result.key: text, **kept}


def marker_inside(content: Json) -> Json:
    """The last cache marker inside a content that is replaced; it moves to the result."""
    found = [part.get("cache_control") for part in objects_of(content)]
    return next((one for one in reversed(found) if one is not None), None)


def dump(body: Mapping[str, Any], *, finite: bool = True) -> bytes:
    """The body as bytes; also half of a surrogate pair survives. `finite`: raises `ValueError` for a number that JSON
    cannot write, e.g. one that was too large to be read."""
    return json.dumps(body, separators=(",", ":"), allow_nan=not finite).encode()


def results_to_change(given: Sequence[GivenResult], sent: Iterable[GivenResult]) -> dict[ResultName, str] | None:
    """The results whose text the engine changed; None if it left one out, because the history was compacted. Results
    with the same id are told apart by their order."""
    contents = {one.name: one.content for one in sent}
    found = dict[ResultName, str]()
    for one in given:
        renamed = f"{one.id}-{one.number}", 1  # a view needs ids that are unique
        name = one.name if one.name in contents else renamed
        if name not in contents:
            return None
        before, after = text_of(one.content), text_of(contents[name])
        if before and after is not None and after != before and before.strip():
            found[one.name] = after
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
