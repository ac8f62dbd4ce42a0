"""Cache markers: those for clients that set none, and one before what was cleared. Pure.

Writing to the cache costs a quarter more than sending, and pays only if more requests follow. So a conversation writes
as much as it can afford, then more with each request that reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, cast

from reverie.models.wire import as_object
from reverie.proxy.bodies import ResultName, items_of, marker_inside, objects_of, results_of
from reverie.simulator.tokens import block_tokens, json_tokens, text_tokens
from reverie.types import Json, JsonObject

CACHED_S: Final = 280.0
"""Seconds for which a server keeps what our markers cover: five minutes, less the time on the way."""
_MOST_MARKERS = 4
_DEARER = 0.25
"""How much more a token costs if it is written to the cache and not only sent."""


class Marks(NamedTuple):
    """The cache markers for a client that sets none: how many messages they cover (0: only what is before them, -1:
    there are none), how many of those the cache has already, and what writing the rest costs more than sending it, in
    tokens of fresh input."""

    end: int = -1
    cached: int = -1
    price: float = 0.0

    def __bool__(self) -> bool:
        return self.end >= 0


NO_MARKS: Final = Marks()


def plan_marks(body: JsonObject, cached: int, allowance: float) -> Marks:
    """Markers for a body without any, with a price of at most this many tokens. The cache has the first messages
    already."""
    items, end, price = items_of("messages", body), cached, 0.0
    if cached < 0:
        tools, system = objects_of(body.get("tools")), body.get("system")
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
    return text_tokens(content) if isinstance(content, str) else sum(map(block_tokens, objects_of(content)))


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
    ends = (one for one in reversed(items_of("messages", body)) if marker_inside(one.get("content")) is not None)
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
    parts = [objects_of(one.get("content")) for one in items]
    first = next((at for at, own in enumerate(parts) if any(id(one) in changed_parts for one in own)), len(items))
    place = next((at for at in range(first - 1, -1, -1) if items[at].get("role") == "user"), len(items))
    places = _markers(items)
    later = next((at for at in places if at > place), None)
    if first >= len(items) - 1 or later is None or place in places:
        return body
    changed = {place: _marked(items[place], "content", marker_inside(items[later]["content"]))}
    if _count_markers(body) >= _MOST_MARKERS:
        if len(places) == 1:
            return body
        gone = later if later != places[-1] else places[0]
        changed[gone] = {**items[gone], "content": _unmarked(items[gone]["content"])}
    given = cast("list[Json]", body["messages"])
    return {**body, "messages": [changed.get(at, one) for at, one in enumerate(given)]}


def move_last_marker(body: JsonObject) -> JsonObject:
    """A body with the last marker of its messages at the end of the last one: what we added is cached as well."""
    items = items_of("messages", body)
    places = _markers(items)
    if not places or places[-1] == len(items) - 1:
        return body
    *_, at = places
    content = items[at]["content"]
    items[at] = {**items[at], "content": _unmarked(content)}
    items[-1] = _marked(items[-1], "content", marker_inside(content))
    return {**body, "messages": items}


def _count_markers(body: Mapping[str, Any]) -> int:
    parts: list[Json] = [body]
    for holder in (body, *items_of("messages", body)):
        for key in ("tools", "system", "content"):
            given = holder.get(key)
            parts += cast("list[Json]", given) if isinstance(given, list) else []
    return sum("cache_control" in as_object(part) for part in parts)


def _markers(items: Sequence[JsonObject]) -> list[int]:
    """The messages with a marker on one of their blocks."""
    return [at for at, one in enumerate(items) if marker_inside(one.get("content")) is not None]


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
