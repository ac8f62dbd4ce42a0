"""Messages, content blocks, usage and records: frozen, in the shape of the Messages API, and lossless.

One message type is used from the transcript to the model boundary. Unknown keys are kept and written back. Every block
has an origin, because later layers judge a statement by its author. Nothing here reads or writes a file.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from reverie.quick import dataclass

Json: TypeAlias = Any
JsonObject: TypeAlias = dict[str, Any]
Role: TypeAlias = Literal["user", "assistant"]

ITEM = "reverie_item"
"""The reserved key for the rest of an item of another API (`library/wires`). It is stored, and never sent."""


def without_item(value: JsonObject) -> JsonObject:
    """Returns a block, a tool or the rest of a block without the reserved key."""
    return {key: part for key, part in value.items() if key != ITEM} if ITEM in value else value


class Origin(StrEnum):
    """Who produced a block, set where the text comes in (docs/decisions/0023-origins.md)."""

    TYPED = "typed"
    ENTERED = "entered"
    PASTED = "pasted"
    PIPED = "piped"
    MODEL = "model"
    TOOL = "tool"
    PAGE = "page"
    HOOK = "hook"
    PLAN = "plan"
    SUMMARY = "summary"
    NOTES = "notes"
    RECALLED = "recalled"
    AGENT = "agent"
    TEAM = "team"
    IMPORTED = "imported"
    CODE = "code"

    @property
    def is_users(self) -> bool:
        """Whether the user wrote it. Only the user gives orders."""
        return self in (Origin.TYPED, Origin.ENTERED)

    @property
    def is_given(self) -> bool:
        """Whether it came with a message of the user: their own words, or material they piped or pasted."""
        return self.is_users or self in (Origin.PASTED, Origin.PIPED)

    @staticmethod
    def named(name: str) -> Origin:
        """Returns the origin with this name; older names are known, and unknown names become IMPORTED."""
        return _NAMED.get(name, Origin.IMPORTED)


_NAMED = {origin.value: origin for origin in Origin} | {
    "person": Origin.ENTERED,
    "web": Origin.PAGE,
    "injected": Origin.CODE,
}


class Purpose(StrEnum):
    """What a request is for; every token is booked for one of these."""

    MAIN = "main"
    RECALL = "recall"
    NOTES = "notes"
    COMPACTION = "compaction"
    EXTRACTION = "extraction"
    DREAM = "dream"
    AGENT = "agent"
    SIDE_QUESTION = "side_question"
    PROGRESS = "progress"
    CLEANUP = "cleanup"  # a task like the others, without a model


@dataclass(frozen=True, slots=True)
class TextBlock:
    text: str
    origin: Origin = Origin.CODE
    extra: JsonObject = field(default_factory=dict[str, Any])

    def wire(self) -> JsonObject:
        return {"type": "text", "text": self.text, **without_item(self.extra)}


@dataclass(frozen=True, slots=True)
class ThinkingBlock:
    thinking: str
    signature: str | None = None
    extra: JsonObject = field(default_factory=dict[str, Any])
    origin: Origin = Origin.MODEL

    def wire(self) -> JsonObject:
        signed = {} if self.signature is None else {"signature": self.signature}
        return {"type": "thinking", "thinking": self.thinking, **signed, **without_item(self.extra)}


@dataclass(frozen=True, slots=True)
class ToolUseBlock:
    id: str
    name: str
    input: Json
    extra: JsonObject = field(default_factory=dict[str, Any])
    origin: Origin = Origin.MODEL

    def wire(self) -> JsonObject:
        return {"type": "tool_use", "id": self.id, "name": self.name, "input": self.input, **without_item(self.extra)}


@dataclass(frozen=True, slots=True)
class ToolResultBlock:
    """The result of a tool. `content` is plain text, a list of blocks, or missing, exactly as it was given."""

    tool_use_id: str
    content: str | tuple[Block, ...] | None
    is_error: bool | None = None
    origin: Origin = Origin.TOOL
    extra: JsonObject = field(default_factory=dict[str, Any])

    def wire(self) -> JsonObject:
        out: JsonObject = {"type": "tool_result", "tool_use_id": self.tool_use_id}
        if isinstance(self.content, tuple):
            out["content"] = [block.wire() for block in self.content]
        elif self.content is not None:
            out["content"] = self.content
        if self.is_error is not None:
            out["is_error"] = self.is_error
        return {**out, **without_item(self.extra)}

    @property
    def text(self) -> str:
        """The text of the result, without images and documents."""
        if isinstance(self.content, tuple):
            return "\n".join(block.text for block in self.content if isinstance(block, TextBlock))
        return self.content or ""


@dataclass(frozen=True, slots=True)
class ImageBlock:
    source: Json
    origin: Origin = Origin.TOOL
    extra: JsonObject = field(default_factory=dict[str, Any])

    def wire(self) -> JsonObject:
        return {"type": "image", "source": self.source, **without_item(self.extra)}


@dataclass(frozen=True, slots=True)
class DocumentBlock:
    source: Json
    origin: Origin = Origin.TOOL
    extra: JsonObject = field(default_factory=dict[str, Any])

    def wire(self) -> JsonObject:
        return {"type": "document", "source": self.source, **without_item(self.extra)}


@dataclass(frozen=True, slots=True)
class OtherBlock:
    """A block of an unknown kind (or not an object at all), kept unchanged."""

    raw: Json
    origin: Origin = Origin.CODE

    def wire(self) -> Json:
        return self.raw


Block: TypeAlias = TextBlock | ThinkingBlock | ToolUseBlock | ToolResultBlock | ImageBlock | DocumentBlock | OtherBlock


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of one response: the four fields of the API, and the split of the cache write by TTL."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_creation_5m: int = 0
    cache_creation_1h: int = 0

    @property
    def prompt(self) -> int:
        """The tokens of the whole prompt, cached or not."""
        return self.input_tokens + self.cache_read_input_tokens + self.cache_creation_input_tokens

    @property
    def total(self) -> int:
        """The size of the context after this response."""
        return self.prompt + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_input_tokens + other.cache_read_input_tokens,
            self.cache_creation_input_tokens + other.cache_creation_input_tokens,
            self.cache_creation_5m + other.cache_creation_5m,
            self.cache_creation_1h + other.cache_creation_1h,
        )

    @staticmethod
    def parse(raw: Json) -> Usage | None:
        """Reads the usage object of the API, or None. A cache write without a split counts as 5 minutes."""
        if not isinstance(raw, Mapping):
            return None
        usage: Mapping[str, Any] = raw  # pyright: ignore[reportUnknownVariableType]
        written = _count(usage.get("cache_creation_input_tokens"))
        split = usage.get("cache_creation")
        hour = _count(split.get("ephemeral_1h_input_tokens")) if isinstance(split, Mapping) else 0  # pyright: ignore
        return Usage(
            input_tokens=_count(usage.get("input_tokens")),
            output_tokens=_count(usage.get("output_tokens")),
            cache_read_input_tokens=_count(usage.get("cache_read_input_tokens")),
            cache_creation_input_tokens=written,
            cache_creation_5m=max(0, written - hour),
            cache_creation_1h=hour,
        )

    def wire(self) -> JsonObject:
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cache_read_input_tokens": self.cache_read_input_tokens,
            "cache_creation_input_tokens": self.cache_creation_input_tokens,
            "cache_creation": {
                "ephemeral_5m_input_tokens": self.cache_creation_5m,
                "ephemeral_1h_input_tokens": self.cache_creation_1h,
            },
        }


_MOST_TOKENS = 10**12
"""No request has more: a larger number in a file is wrong, and sums of it do not fit into a float."""


def _count(value: Json) -> int:
    return min(value, _MOST_TOKENS) if isinstance(value, int) and value > 0 else 0


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `plain`: its content was a bare string. `starts`: where each of its joined records starts."""

    role: Role
    content: tuple[Block, ...]
    plain: bool = False
    fields: JsonObject = field(default_factory=dict[str, Any])
    starts: tuple[int, ...] = field(default=(), compare=False)

    @property
    def records(self) -> tuple[tuple[Block, ...], ...]:
        """The blocks of each record in this message, in order."""
        bounds = (0, *(at for at in self.starts if 0 < at < len(self.content)), len(self.content))
        return tuple(self.content[start:end] for start, end in itertools.pairwise(bounds))

    @property
    def id(self) -> str | None:
        """The message id of the API; records split from one response share it."""
        return _text(self.fields.get("id"))

    @property
    def usage(self) -> Usage | None:
        return Usage.parse(self.fields.get("usage"))

    @property
    def text(self) -> str:
        """All text blocks, joined by newlines."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextBlock))

    @property
    def tool_uses(self) -> tuple[ToolUseBlock, ...]:
        return tuple(block for block in self.content if isinstance(block, ToolUseBlock))

    @property
    def tool_results(self) -> tuple[ToolResultBlock, ...]:
        return tuple(block for block in self.content if isinstance(block, ToolResultBlock))

    def wire(self) -> JsonObject:
        """The form for the API: only role and content."""
        return {"role": self.role, "content": [block.wire() for block in self.content]}

    def stored(self) -> JsonObject:
        """The form for the transcript: everything, in the form it was read."""
        content: Json = [_stored(block) for block in self.content]
        if self.plain and len(self.content) == 1 and isinstance(self.content[0], TextBlock):
            content = self.content[0].text
        return {**self.fields, "role": self.role, "content": content}


def _stored(block: Block) -> Json:
    kept = {} if isinstance(block, OtherBlock) else block.extra
    return {**block.wire(), ITEM: kept[ITEM]} if ITEM in kept else block.wire()


def parse_block(raw: Json, origin: Origin) -> Block:
    """Parses one content block; an unexpected shape becomes an OtherBlock, never an error."""
    if not isinstance(raw, dict):
        return OtherBlock(raw, origin)
    rest: JsonObject = dict(raw)  # pyright: ignore[reportUnknownArgumentType]
    match rest:
        case {"type": "text", "text": str(text)}:
            return TextBlock(text, origin, _without(rest, "type", "text"))
        case {"type": "thinking", "thinking": str(thinking)} if isinstance(rest.get("signature", ""), str):
            extra = _without(rest, "type", "thinking", "signature")
            return ThinkingBlock(thinking, rest.get("signature"), extra)
        case {"type": "tool_use", "id": str(call), "name": str(name), "input": given}:
            return ToolUseBlock(call, name, given, _without(rest, "type", "id", "name", "input"))
        case {"type": "tool_result", "tool_use_id": str(call)} if isinstance(rest.get("is_error", False), bool):
            content = rest.get("content")
            if not (("content" in rest and isinstance(content, str | list)) or "content" not in rest):
                return OtherBlock(rest, origin)
            parsed = tuple(parse_block(part, origin) for part in content) if isinstance(content, list) else content  # pyright: ignore
            extra = _without(rest, "type", "tool_use_id", "content", "is_error")
            return ToolResultBlock(call, parsed, rest.get("is_error"), origin, extra)
        case {"type": "image", "source": source}:
            return ImageBlock(source, origin, _without(rest, "type", "source"))
        case {"type": "document", "source": source}:
            return DocumentBlock(source, origin, _without(rest, "type", "source"))
        case _:
            return OtherBlock(rest, origin)


def parse_message(raw: JsonObject, origins: Sequence[Origin]) -> Message | None:
    """Parses a message, or returns None. `origins` has one origin per block, and the last one counts for the rest."""
    role, content = raw.get("role"), raw.get("content")
    if role not in ("user", "assistant") or not isinstance(content, str | list):
        return None
    fields = _without(raw, "role", "content")
    given = list(origins) or [Origin.MODEL if role == "assistant" else Origin.ENTERED]
    if isinstance(content, str):
        return Message(role, (TextBlock(content, given[0]),), True, fields)
    parts: list[Json] = content  # pyright: ignore[reportUnknownVariableType]
    blocks = tuple(parse_block(part, given[min(i, len(given) - 1)]) for i, part in enumerate(parts))
    return Message(role, blocks, False, fields)


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _without(raw: JsonObject, *keys: str) -> JsonObject:
    return {key: value for key, value in raw.items() if key not in keys}


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a transcript. `data` is the object on disk, without the message; it never changes."""

    data: JsonObject
    message: Message | None = None

    @property
    def type(self) -> str:
        return str(self.data.get("type", ""))

    @property
    def subtype(self) -> str | None:
        return _text(self.data.get("subtype"))

    @property
    def uuid(self) -> str | None:
        return _text(self.data.get("uuid"))

    @property
    def parent(self) -> str | None:
        return _text(self.data.get("parentUuid"))

    @property
    def timestamp(self) -> str | None:
        return _text(self.data.get("timestamp"))

    @property
    def is_sidechain(self) -> bool:
        return bool(self.data.get("isSidechain"))

    def stored(self) -> JsonObject:
        """The JSON object to write; reading it gives an equal record."""
        return self.data if self.message is None else {**self.data, "message": self.message.stored()}
