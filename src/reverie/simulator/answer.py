"""An answer of the Messages API as a stream of events; and a reply cut at `max_tokens` or a stop sequence."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from reverie.errors import Unreachable
from reverie.models.base import UNPARSED_INPUT
from reverie.simulator.tokens import TEXT_BYTES_PER_TOKEN, block_tokens

Event = dict[str, Any]
_CHUNK = 64
_MOST_CHUNKS = 400


def cut_error() -> Unreachable:
    """The error of a stream that is cut."""
    return Unreachable("The connection was cut in the middle of the answer.")


def content_tokens(content: Sequence[Mapping[str, Any]]) -> int:
    """Output tokens of a reply, at least 1."""
    return max(1, sum(block_tokens(block) for block in content))


def cut_at_budget(content: Sequence[dict[str, Any]], budget: int) -> tuple[list[dict[str, Any]], bool]:
    """As much of a reply as fits into `budget` tokens, and whether anything was cut."""
    kept: list[dict[str, Any]] = []
    left = budget
    for block in content:
        needed = block_tokens(block)
        if needed > left:
            key = {"text": "text", "thinking": "thinking"}.get(str(block.get("type")))
            if key is not None and left > 0:
                cut = str(block[key]).encode()[: left * TEXT_BYTES_PER_TOKEN].decode("utf-8", "ignore")
                kept.append({**block, key: cut})
            return kept, True
        kept.append(block)
        left -= needed
    return kept, False


def cut_at_stop(content: Sequence[dict[str, Any]], sequences: Sequence[str]) -> tuple[list[dict[str, Any]], str | None]:
    """A reply up to the first stop sequence, and that sequence."""
    kept: list[dict[str, Any]] = []
    for block in content:
        text = block.get("text") if block.get("type") == "text" else None
        found = [(text.find(each), each) for each in sequences if each in text] if isinstance(text, str) else []
        if found:
            at, sequence = min(found)
            if at:
                kept.append({**block, "text": cast("str", text)[:at]})
            return kept, sequence
        kept.append(block)
    return kept, None


def events(message: Mapping[str, Any], *, cut_after: int | None = None) -> Iterator[Event]:
    """A message as a stream. `cut_after`: raises `Unreachable` after this number of characters of content."""
    usage = cast("Mapping[str, Any]", message["usage"])
    late = ("context_management", "content", "stop_reason", "stop_sequence", "cache_edits")
    head = {key: value for key, value in message.items() if key not in late}
    # The real server has produced about one token when it opens the stream.
    head |= {"content": [], "stop_reason": None, "stop_sequence": None}
    head["usage"] = {k: v for k, v in usage.items() if k != "iterations"} | {
        "output_tokens": min(1, cast("int", usage["output_tokens"]))
    }
    yield {"type": "message_start", "message": head}
    yield {"type": "ping"}
    left = cut_after
    for index, block in enumerate(cast("Sequence[Mapping[str, Any]]", message["content"])):
        empty, deltas = _pieces(block)
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            if left is not None:
                delta, size = _shorten(delta, left)
                left -= size
            yield {"type": "content_block_delta", "index": index, "delta": delta}
            if left is not None and left <= 0:
                raise cut_error()
        yield {"type": "content_block_stop", "index": index}
    if cut_after is not None:
        raise cut_error()
    end: Event = {
        "type": "message_delta",
        "delta": {"stop_reason": message["stop_reason"], "stop_sequence": message["stop_sequence"]},
        "usage": {key: value for key, value in usage.items() if key not in ("cache_creation", "service_tier")},
    }
    for key in ("context_management", "cache_edits"):
        if key in message:
            end[key] = message[key]
    yield end
    yield {"type": "message_stop"}


_TEXT_KEYS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


def _shorten(delta: Event, left: int) -> tuple[Event, int]:
    key = _TEXT_KEYS.get(str(delta["type"]))
    if key is None:
        return delta, 0
    text = str(delta[key])[:left]
    return {**delta, key: text}, len(text)


def _pieces(block: Mapping[str, Any]) -> tuple[Event, Iterator[Event]]:
    """A block as its stream opens it, and the deltas that follow."""
    match block.get("type"):
        case "text":
            return {**block, "text": ""}, _deltas("text_delta", "text", str(block["text"]))
        case "thinking":
            return {**block, "thinking": "", "signature": ""}, _thinking(block)
        case "tool_use":
            return {**block, "input": {}}, _deltas("input_json_delta", "partial_json", input_text(block.get("input")))
        case "compaction" if "signature" not in block:  # a signed one comes whole
            delta = {"type": "compaction_delta", "content": block.get("content")}
            return {**block, "content": None}, iter((delta,))
        case _:
            return dict(block), iter(())


def input_text(value: object) -> str:
    """A tool input as the model wrote it; input that is not valid JSON is `{"_unparsed": text}`."""
    if isinstance(value, Mapping) and UNPARSED_INPUT in value:
        return str(cast("Mapping[str, Any]", value)[UNPARSED_INPUT])
    return json.dumps(value, ensure_ascii=False)


def _thinking(block: Mapping[str, Any]) -> Iterator[Event]:
    yield from _deltas("thinking_delta", "thinking", str(block["thinking"]))
    yield {"type": "signature_delta", "signature": str(block.get("signature") or "")}


def _deltas(kind: str, key: str, text: str) -> Iterator[Event]:
    for chunk in chunks(text):
        yield {"type": kind, key: chunk}


def chunks(text: str) -> Iterator[str]:
    """A text in the pieces of a stream."""
    size = max(_CHUNK, len(text) // _MOST_CHUNKS)
    for start in range(0, len(text), size):
        yield text[start : start + size]
