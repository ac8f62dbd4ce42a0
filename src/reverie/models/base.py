"""The boundary between Reverie and whoever thinks: one request type, one stream of events, one protocol.

A request carries everything that decides its bytes, and what it is for. A model turns it into events and maps its
vendor's errors to `reverie.errors`; it never retries, never decides policy, never touches the transcript.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from reverie.types import Block, JsonObject, Message, Purpose, Usage

Ttl: TypeAlias = Literal["5m", "1h"]

PURPOSE_HEADER = "x-reverie-purpose"
"""What a request is for. Sent to servers on this machine only: the simulator plays scripts and keeps books by it."""

UNPARSED_INPUT = "_unparsed"
"""A model's tool input that is not a JSON object arrives as `{UNPARSED_INPUT: text}`, to be answered by an error."""


@dataclass(frozen=True, slots=True)
class Marker:
    """A cache marker: `section` and the index of the block it stands on.

    `tools` and `system` count their blocks; `messages` names a message and a block in it (-1 is the last).
    """

    section: Literal["tools", "system", "messages"]
    index: int
    block: int = -1
    ttl: Ttl = "5m"


@dataclass(frozen=True, slots=True)
class Request:
    """One request, complete: the same request always renders to the same bytes."""

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
    """A complete answer."""

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
    """Always the last event, exactly once; a stream that ends without it was cut and raises `Unreachable`."""

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
    """Who answers. Cancelling the task that iterates `stream` must end the connection and leave nothing running."""

    @property
    def name(self) -> str:
        """The full name a user would type, such as `anthropic:claude-sonnet-4-5`."""
        ...

    @property
    def capabilities(self) -> Capabilities: ...

    def stream(self, request: Request) -> AsyncIterator[ModelEvent]: ...

    async def close(self) -> None: ...
