"""From the view to a request: system, tools, messages, and where the cache markers stand.

Pure: the same view gives the same request. Markers stand on the end of the system prompt, on the ends of the two
requests before this one and on the end of this one. A request therefore always finds its predecessor's entry at a
marker, however many blocks a round added; the walk back of twenty blocks is never relied on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reverie.models.base import Capabilities, Marker, Request
from reverie.storage.records import SessionHeader
from reverie.types import Block, ImageBlock, Message, Purpose, TextBlock, ThinkingBlock, ToolResultBlock

MAX_IMAGES = 100
IMAGE_BATCH = 20  # left out in batches, so that the prefix does not break with every new image
IMAGE_LEFT_OUT = "[An older image was left out: a request holds at most 100.]"


def assemble(
    header: SessionHeader,
    messages: tuple[Message, ...],
    *,
    max_tokens: int,
    capabilities: Capabilities,
    purpose: Purpose = Purpose.MAIN,
    conversation: str = "",
    thread: str = "main",
    announced_break: str | None = None,
    reused: bool = True,
) -> Request:
    """The request for these messages. `reused`: a later request will extend it, so its end is worth a cache entry."""
    shown = limit_images(messages)
    if shown is not messages:
        announced_break = announced_break or "older images were left out"
    return Request(
        model=header.model,
        system=header.system,
        tools=header.tools,
        messages=shown,
        max_tokens=max_tokens,
        markers=place_markers(header, shown, reused=reused) if capabilities.cache_markers else (),
        thinking=header.thinking,
        effort=header.effort,
        betas=header.betas,
        purpose=purpose,
        conversation=conversation,
        thread=thread,
        announced_break=announced_break,
    )


def place_markers(header: SessionHeader, messages: Sequence[Message], *, reused: bool = True) -> tuple[Marker, ...]:
    """At most four: the end of the static part, the ends of the last two requests, the end of this one."""
    markers = list[Marker]()
    if header.system:
        markers.append(Marker("system", len(header.system) - 1, ttl=header.ttl))
    elif header.tools:
        markers.append(Marker("tools", len(header.tools) - 1, ttl=header.ttl))
    ends = [i for i, message in enumerate(messages) if message.role == "user"]
    if not reused and len(ends) > 1:
        ends = ends[:-1]
    for index in ends[-3:]:
        block = _last_markable(messages[index])
        if block is not None:
            markers.append(Marker("messages", index, block, ttl=header.ttl))
    return tuple(markers)


def _last_markable(message: Message) -> int | None:
    """Thinking and empty text cannot carry a marker."""
    for i in range(len(message.content) - 1, -1, -1):
        block = message.content[i]
        if not isinstance(block, ThinkingBlock) and not (isinstance(block, TextBlock) and not block.text):
            return i
    return None


def limit_images(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Keeps the newest hundred images; a text stands for each older one."""
    total = sum(_images(message.content) for message in messages)
    if total <= MAX_IMAGES:
        return messages
    excess = -(-(total - MAX_IMAGES) // IMAGE_BATCH) * IMAGE_BATCH
    out = list(messages)
    for i, message in enumerate(messages):
        if excess <= 0:
            break
        held = _images(message.content)
        if held:
            kept, excess = _without_images(message.content, excess)
            out[i] = replace(message, content=kept)
    return tuple(out)


def _images(blocks: Sequence[Block]) -> int:
    count = 0
    for block in blocks:
        if isinstance(block, ImageBlock):
            count += 1
        elif isinstance(block, ToolResultBlock) and isinstance(block.content, tuple):
            count += _images(block.content)
    return count


def _without_images(blocks: Sequence[Block], excess: int) -> tuple[tuple[Block, ...], int]:
    out = list[Block]()
    for block in blocks:
        if isinstance(block, ImageBlock) and excess > 0:
            out.append(TextBlock(IMAGE_LEFT_OUT, block.origin))
            excess -= 1
        elif isinstance(block, ToolResultBlock) and isinstance(block.content, tuple) and excess > 0:
            inner, excess = _without_images(block.content, excess)
            out.append(replace(block, content=inner))
        else:
            out.append(block)
    return tuple(out), excess
