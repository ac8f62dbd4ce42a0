"""Bodies of the three APIs as the client wrote them: where tool results are, and how one is changed in place. Pure.

Nothing else of a body is touched, so fields and blocks that nobody knows stay as they are.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast, get_args

from reverie.models.wire import as_object
from reverie.quick import dataclass
from reverie.simulator.tokens import block_tokens, json_tokens, text_tokens
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

CACHED_S: Final = 280.0
"""Seconds for which a server keeps what our markers cover: five minutes, less the time on the way."""
_DEARER = 0.25
"""How much more a token costs if it is written to the cache and not only sent."""
_MOST_MARKERS = 4
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
    marker = _marker_inside(result.content)
    kept = {} if marker is None or "cache_control" in result.holder else {"cache_control": marker}
    return {**result.holder, result.key: text, **kept}


def _marker_inside(content: Json) -> Json:
    """The last cache marker inside a content that is replaced; it moves to the result."""
    found = [part.get("cache_control") for part in _objects(content)]
    return next((one for one in reversed(found) if one is not None), None)


class Marks(NamedTuple):
    """The cache markers for a client that sets none: how many messages they cover (0: only what is before them, -1:
    there are none), how many of those the cache has already, and what writing the rest costs more than sending it, in
    tokens of fresh input."""

    end: int = -1
    cached: int = -1
    price: float = 0.0

    def __bool__(self) -> bool:
        return self.end >= 0


def plan_marks(body: JsonObject, cached: int, allowance: float) -> Marks:
    """Markers for a body without any, with a price of at most this many tokens. The cache has the first messages
    already."""
    items, end, price = items_of("messages", body), cached, 0.0
    if cached < 0:
        tools, system = _objects(body.get("tools")), body.get("system")
        price = _DEARER * (sum(map(json_tokens, tools)) + _tokens(system))
        end = 0 if price <= allowance and _marked(body, "system") is not body else -1
    so_far = price
    for at in range(max(0, cached), len(items)):
        so_far += _DEARER * _tokens(items[at].get("content"))
        if so_far > allowance:
            break
        if items[at].get("role") == "user" and _marked(items[at], "content") is not items[at]:
            end, price = at + 1, so_far
    return Marks(end, cached, price) if end >= 0 else Marks()


def _tokens(content: Json) -> int:
    return text_tokens(content) if isinstance(content, str) else sum(map(block_tokens, _objects(content)))


def set_markers(body: JsonObject, marks: Marks) -> JsonObject:
    """A body with cache markers at the end of the system prompt, of the last two user messages that are covered, and
    where the cache ends now: a server looks for it only near a marker. It shares the rest."""
    given = body.get("messages")
    items = list(cast("list[Json]", given)) if isinstance(given, list) else []
    places = [at for at, one in enumerate(items[: marks.end]) if as_object(one).get("role") == "user"][-2:]
    for place in {*places, marks.cached - 1} if marks.cached > 0 else places:
        items[place] = _marked(as_object(items[place]), "content")
    return {**_marked(body, "system"), **({"messages": items} if items else {})}


def has_free_marker(body: Mapping[str, Any], raw: bytes) -> bool:
    """Whether `mark_before` can set one: the client has set fewer than all, or more than one in its messages."""
    ends = (one for one in reversed(items_of("messages", body)) if _marker_inside(one.get("content")) is not None)
    needed = 1 if raw.count(b'"cache_control"') < _MOST_MARKERS else 2
    return sum(1 for _ in islice(ends, needed)) == needed


def mark_before(body: JsonObject, results: Collection[ResultName]) -> JsonObject:
    """A body with a marker at the end of the last user message before the first of these results, which were changed:
    the server reads its cache up to there. If the client has set all markers, another one in its messages goes, which
    reads nothing more; never its last one."""
    if not results:
        return body
    items = items_of("messages", body)
    changed_parts = {id(one.holder) for one in results_of("messages", body) if one.name in results}
    parts = [_objects(one.get("content")) for one in items]
    first = next((at for at, own in enumerate(parts) if any(id(one) in changed_parts for one in own)), len(items))
    place = next((at for at in range(first - 1, -1, -1) if items[at].get("role") == "user"), len(items))
    places = _markers(items)
    later = next((at for at in places if at > place), None)
    if first >= len(items) - 1 or later is None or place in places:
        return body
    changed = {place: _marked(items[place], "content", _marker_inside(items[later]["content"]))}
    if _count_markers(body) >= _MOST_MARKERS:
        if len(places) == 1:
            return body
        gone = later if later != places[-1] else places[0]
        changed[gone] = {**items[gone], "content": _unmarked(items[gone]["content"])}
    given = cast("list[Json]", body["messages"])
    return {**body, "messages": [changed.get(at, one) for at, one in enumerate(given)]}


def _count_markers(body: Mapping[str, Any]) -> int:
    parts: list[Json] = [body]
    for holder in (body, *items_of("messages", body)):
        for key in ("tools", "system", "content"):
            given = holder.get(key)
            parts += cast("list[Json]", given) if isinstance(given, list) else []
    return sum("cache_control" in as_object(part) for part in parts)


def _markers(items: Sequence[JsonObject]) -> list[int]:
    """The messages with a marker on one of their blocks."""
    return [at for at, one in enumerate(items) if _marker_inside(one.get("content")) is not None]


def _unmarked(content: Json) -> Json:
    parts = cast("list[Json]", content)
    return [{key: value for key, value in as_object(part).items() if key != "cache_control"} for part in parts]


def _marked(holder: JsonObject, key: str, mark: Json = None) -> JsonObject:
    mark = mark or {"type": "ephemeral"}
    content = holder.get(key)
    if isinstance(content, str) and content.strip():
        return {**holder, key: [{"type": "text", "text": content, "cache_control": mark}]}
    if isinstance(content, list) and content:
        *before, end = cast("list[Json]", content)
        last = as_object(end)
        if last.get("type") in ("text", "tool_result", "image", "document") and last.get("text") != "":
            return {**holder, key: [*before, {**last, "cache_control": mark}]}
    return holder


def dump(body: Mapping[str, Any]) -> bytes:
    """The body as bytes; also half of a surrogate pair survives."""
    return json.dumps(body, separators=(",", ":")).encode()


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
