"""Memories in the requests of a client: one more text at the end of the message for which they were recalled. Pure.

The engine decides and remembers; here its texts go to their places. A marker of the client stays where it was, and all
other messages stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import cast

from reverie.library.wires import GivenMessage
from reverie.models.tokens import estimate_text
from reverie.models.wire import as_object
from reverie.proxy.bodies import Api, items_of, list_key
from reverie.proxy.book import hashed
from reverie.quick import dataclass
from reverie.storage.transcript.foreign import words_of_user
from reverie.types import Json, JsonObject, TextBlock, Usage

_TEXTS = ("text", "input_text")
_PROMPT = 20
"""Characters of a prompt that is not repeated by accident."""
_CACHED = 0.1
"""The price of a token that is read from the cache, in tokens of fresh input."""


def prompts_in(said: Iterable[GivenMessage]) -> list[bytes]:
    """The hashes of the texts that a model gives to tools in an answer."""
    calls = (call for one in said for call in one.message.tool_uses)
    return _hashes(text for call in calls for text in as_object(call.input).values())


def asked_in(given: Iterable[GivenMessage]) -> list[bytes]:
    """The hashes of the texts with which a conversation begins, up to its first answer."""
    first = takewhile(lambda one: one.message.role == "user", given)
    return _hashes(block.text for one in first for block in one.message.content if isinstance(block, TextBlock))


def _hashes(texts: Iterable[Json]) -> list[bytes]:
    words = (text.strip() for text in texts if isinstance(text, str))
    return [hashed("prompt", text) for text in words if len(text) >= _PROMPT]


@dataclass(frozen=True, slots=True)
class WithMemories:
    """A body with the memories in it, and about how many tokens they have."""

    body: JsonObject
    tokens: int = 0


def add_memories(api: Api, body: JsonObject, added: Sequence[tuple[int, str]]) -> WithMemories:
    """A body with these texts, each with how many messages follow its place. Nothing changes in place."""
    items = items_of(api, body) if added else []
    counted = [at for at, item in enumerate(items) if item.get("type") != "reasoning"]
    changed, tokens = dict[int, JsonObject](), 0
    for after, text in added:
        end = counted[len(counted) - after - 1] if after < len(counted) else -1
        at = _last_said(items, end)
        if at is not None:
            changed[at] = _with_text(api, changed.get(at, items[at]), text)
            tokens += estimate_text(text)
    if not changed:
        return WithMemories(body)
    key, given = list_key(api), body.get(list_key(api))
    if isinstance(given, str):
        return WithMemories({**body, key: changed[0]["content"]}, tokens)
    made = [changed.get(at, item) for at, item in enumerate(cast("list[Json]", given))]
    return WithMemories({**body, key: made}, tokens)


def _last_said(items: list[JsonObject], end: int) -> int | None:
    """The last message up to this place in which the user says something, after the last answer."""
    for at in range(end, -1, -1):
        item = items[at]
        if item.get("role") == "assistant" or str(item.get("type")).endswith("_call"):
            return None
        if item.get("role") == "user" and item.get("type") in (None, "message") and _says(item.get("content")):
            return at
    return None


def _says(content: Json) -> bool:
    """Whether a content has words of the user, and not only what a client puts into its messages."""
    if isinstance(content, str):
        return bool(words_of_user(content))
    parts = [as_object(part) for part in cast("list[Json]", content)] if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if part.get("type") in _TEXTS)
    return any(isinstance(text, str) and words_of_user(text) for text in texts)


def _with_text(api: Api, item: JsonObject, text: str) -> JsonObject:
    """A message with one more text at its end. A plain text stays one, unless blocks are as good."""
    content = item.get("content")
    if isinstance(content, str) and api != "messages":
        return {**item, "content": f"{content}\n\n{text}"}
    before = [{"type": "text", "text": content}] if isinstance(content, str) else cast("list[Json]", content)
    return {**item, "content": [*before, {"type": "input_text" if api == "responses" else "text", "text": text}]}


def price(tokens: int, new: int, usage: Usage) -> float:
    """About what the memories of one request cost, in tokens of fresh input. `new` of their tokens were not in the
    request before; the others are read from the cache if anything is."""
    return new + (tokens - new) * (_CACHED if usage.cache_read_input_tokens else 1.0)
