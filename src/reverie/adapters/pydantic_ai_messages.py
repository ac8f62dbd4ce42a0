"""The messages of pydantic-ai as blocks of the Messages API, and back. A part that no layer changed stays the caller's
own object. Parts that have no block of their own are passed as blocks that no layer touches."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import Any

from pydantic_ai.messages import (
    ERROR_OUTCOMES,
    BinaryContent,
    CachePoint,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from reverie.quick import dataclass
from reverie.types import JsonObject


@dataclass(frozen=True, slots=True)
class _Piece:
    """A block, and the part and the message that it comes from. A user's prompt with several items has several."""

    message: ModelMessage
    part: Any
    block: JsonObject


@dataclass(slots=True)
class _Made:
    """A message that is built: the parts, and the message of the caller that they come from."""

    role: str
    source: ModelMessage | None
    parts: list[Any] = field(default_factory=list[Any])

    def takes(self, role: str, piece: _Piece | None) -> bool:
        """Whether a block of this role belongs to this message: it is new, or comes from the same one."""
        return self.role == role and (piece is None or self.source is None or self.source is piece.message)

    def message(self) -> ModelMessage:
        if self.source is None:
            return ModelRequest(parts=self.parts) if self.role == "user" else ModelResponse(parts=self.parts)
        old = self.source.parts
        is_same = len(old) == len(self.parts) and all(a is b for a, b in zip(old, self.parts, strict=True))
        return self.source if is_same else replace(self.source, parts=self.parts)


@dataclass(frozen=True, slots=True)
class History:
    """The caller's history. `system`: the system prompts at its start, which stay there whatever the layers do."""

    system: tuple[SystemPromptPart, ...]
    messages: list[JsonObject]
    pieces: tuple[_Piece, ...]

    @classmethod
    def of(cls, messages: Sequence[ModelMessage]) -> History:
        system, first = list[SystemPromptPart](), messages[0] if messages else None
        if isinstance(first, ModelRequest):
            system = [part for part in first.parts if isinstance(part, SystemPromptPart)]
        pieces = list[_Piece]()
        made = list[JsonObject]()
        for message in messages:
            parts = [part for part in message.parts if not any(part is one for one in system)]
            found = [_Piece(message, part, block) for part in parts for block in _blocks(part)]
            pieces += found
            role = "user" if isinstance(message, ModelRequest) else "assistant"
            if found:
                made.append({"role": role, "content": [piece.block for piece in found]})
        return cls(tuple(system), made, tuple(pieces))

    def rebuild(self, messages: Iterable[JsonObject]) -> list[ModelMessage]:
        """The messages to send, from those of a prepared request."""
        known = defaultdict[str, deque[_Piece]](deque)
        for piece in self.pieces:
            known[_key(piece.block)].append(piece)
        made, used = list[_Made](), set[int]()
        if self.system:
            made.append(_Made("user", None, list(self.system)))
        for role, block in ((one["role"], block) for one in messages for block in one["content"]):
            same = known[_key(block)]
            piece = same.popleft() if same else None
            if not made or not made[-1].takes(role, piece):
                made.append(_Made(role, None))
            if piece is None:
                made[-1].parts.append(self._new(role, block))
                continue
            made[-1].source = piece.message
            if id(piece.part) not in used:
                used.add(id(piece.part))
                made[-1].parts.append(_changed(piece, block))
        return [one.message() for one in made]

    def _new(self, role: str, block: JsonObject) -> Any:
        match block:
            case {"type": "tool_use"}:
                return ToolCallPart(block["name"], block["input"], block["id"])
            case {"type": "tool_result", "tool_use_id": str(call)}:
                names = (one.part.tool_name for one in self.pieces if one.block.get("id") == call)
                return ToolReturnPart(next(names, "unknown"), _text(block.get("content")), call)
            case _:
                text = str(block.get("text") or json.dumps(block))
                return UserPromptPart(text) if role == "user" else TextPart(text)


def read_response(response: ModelResponse) -> JsonObject:
    """A response as the engine observes it. pydantic-ai's input tokens include those of the cache."""
    used = response.usage
    usage = {
        "input_tokens": max(0, used.input_tokens - used.cache_read_tokens - used.cache_write_tokens),
        "output_tokens": used.output_tokens,
        "cache_read_input_tokens": used.cache_read_tokens,
        "cache_creation_input_tokens": used.cache_write_tokens,
        "cache_creation": {"ephemeral_1h_input_tokens": used.cache_write_1h_tokens},
    }
    calls = any(isinstance(part, ToolCallPart) for part in response.parts)
    return {
        "id": response.provider_response_id,
        "model": response.model_name,
        "content": [block for part in response.parts for block in _blocks(part)],
        "stop_reason": "tool_use" if calls else "end_turn",
        "usage": usage,
    }


def _blocks(part: Any) -> Iterator[JsonObject]:
    """The blocks of a part."""
    match part:
        case UserPromptPart(content=str(text)) | TextPart(content=text):
            yield {"type": "text", "text": text}
        case UserPromptPart():
            for item in part.content:
                if not isinstance(item, CachePoint):
                    yield _content(item)
        case ToolCallPart():
            yield {
                "type": "tool_use",
                "id": part.tool_call_id,
                "name": part.tool_name,
                "input": part.args_as_dict(),
            }
        case ToolReturnPart():
            said = part.content_items(mode="str", wrap_if_error=False)
            content = (
                "\n".join(map(str, said)) if all(isinstance(one, str) for one in said) else list(map(_content, said))
            )
            yield _result(part.tool_call_id, content, part.outcome in ERROR_OUTCOMES)
        case ThinkingPart():
            yield {"type": "thinking", "thinking": part.content, "signature": part.signature or ""}
        case _ if getattr(part, "part_kind", "") == "retry-prompt" and part.tool_name is not None:
            yield _result(part.tool_call_id, part.model_response(), True)
        case _ if hasattr(part, "model_response"):
            yield {"type": "text", "text": part.model_response()}
        case _:
            yield {"type": f"pydantic_ai_{part.part_kind.replace('-', '_')}", "said": repr(part)}


def _result(call: str, content: Any, is_error: bool) -> JsonObject:
    block: JsonObject = {"type": "tool_result", "tool_use_id": call, "content": content}
    return {**block, "is_error": True} if is_error else block


def _content(item: Any) -> JsonObject:
    match item:
        case str():
            return {"type": "text", "text": item}
        case TextContent():
            return {"type": "text", "text": item.content}
        case ImageUrl():
            return {"type": "image", "source": {"type": "url", "url": item.url}}
        case BinaryContent() if item.is_image:
            source = {"type": "base64", "media_type": item.media_type, "data": item.base64}
            return {"type": "image", "source": source}
        case _:
            return {"type": f"pydantic_ai_{item.kind.replace('-', '_')}", "said": item.identifier}


def _key(block: JsonObject) -> str:
    """What equal blocks share. A call and a result are known by their id, whatever the layers make of them."""
    kind = str(block.get("type"))
    if kind in ("tool_use", "tool_result"):
        return f"{kind} {block.get('id') or block.get('tool_use_id')}"
    return json.dumps({name: value for name, value in block.items() if name != "cache_control"}, sort_keys=True)


def _changed(piece: _Piece, block: JsonObject) -> Any:
    """The part of the caller, with the result that a layer has put into its place."""
    if block.get("type") != "tool_result" or block.get("content") == piece.block.get("content"):
        return piece.part
    return replace(piece.part, content=_text(block.get("content")))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(one.get("text") or json.dumps(one)) for one in content or ())
