"""The boundary between Reverie and a model: one request type, one stream of events, one protocol.

A request has everything that decides its bytes, and its purpose. A model turns it into events and its vendor's errors
into those of `reverie.errors`. It does not retry, and does not write to the transcript.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import field
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from reverie.quick import dataclass
from reverie.types import Block, JsonObject, Message, Purpose, Usage

Ttl: TypeAlias = Literal["5m", "1h"]

PURPOSE_HEADER = "x-reverie-purpose"
"""The header with the purpose of a request. Only servers on this machine get it: the simulator needs it."""

UNPARSED_INPUT = "_unparsed"
"""A tool input that is not a JSON object arrives as `{UNPARSED_INPUT: text}`, and the tool call gets an error."""


@dataclass(frozen=True, slots=True)
class Marker:
    """A cache marker on a block. In `messages`, `index` is the message and `block` the block in it (-1: the last)."""

    section: Literal["tools", "system", "messages"]
    index: int
    block: int = -1
    ttl: Ttl = "5m"


@dataclass(frozen=True, slots=True)
class Request:
    """A complete request. The same request always renders to the same bytes."""

    model: str
    system: tuple[str, ...]
    tools: tuple[JsonObject, ...]
    messages: tuple[Message, ...]
    max_tokens: int
    markers: tuple[Marker, ...] = ()
    tool_choice: JsonObject | None = None
    thinking: JsonObject | None = None
    effort: str | None = None
    betas: tuple[str, ...] = ()
    context_management: JsonObject | None = None
    cache_edits: JsonObject | None = None
    output_schema: JsonObject | None = None
    purpose: Purpose = Purpose.MAIN
    conversation: str = ""
    thread: str = "main"
    announced_break: str | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """A complete response."""

    id: str
    model: str
    content: tuple[Block, ...]
    stop_reason: str
    usage: Usage
    request_id: str | None = None
    applied_edits: tuple[JsonObject, ...] = ()
    raw_usage: JsonObject = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of every stream. A stream that ends without it was cut and raises `Unreachable`."""

    response: Response


ModelEvent: TypeAlias = TextDelta | ThinkingDelta | ToolCallStarted | Finished


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an endpoint understands beyond plain messages."""

    cache_markers: bool = False
    ttls: tuple[Ttl, ...] = ()
    context_edits: bool = False
    cache_edits: bool = False
    images: bool = True
    output_schema: bool = False


@runtime_checkable
class Model(Protocol):
    """Answers requests. Cancelling the task that iterates `stream` must end the connection and all work for it."""

    @property
    def name(self) -> str:
        """The full name, such as `anthropic:claude-sonnet-4-5`."""
        ...

    @property
    def capabilities(self) -> Capabilities: ...

    def stream(self, request: Request) -> AsyncIterator[ModelEvent]: ...

    async def close(self) -> None: ...
