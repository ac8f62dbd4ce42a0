"""Makes a request from the view: system, tools, messages and the places of the cache markers. Pure.

Markers are at the end of the system prompt, where the turn began, at the end of the last request and at the end of this
one. So a request always finds the entry of the last one at a marker, however many blocks a round added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from reverie.layers.l2_microcompact.stage import BETA
from reverie.models.base import Capabilities, Marker, Request, Ttl
from reverie.storage.transcript.records import SessionHeader
from reverie.types import (
    ITEM,
    Block,
    ImageBlock,
    JsonObject,
    Message,
    Purpose,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
)

LOOKBACK = 20
"""How many blocks a server looks back from a marker, including the marker's own."""
MAX_IMAGES = 100
IMAGE_BATCH = 20  # left out in batches, so that the prefix does not break with every new image
IMAGE_LEFT_OUT = "[An older image was left out: a request holds at most 100.]"

End = tuple[int, int]
"""Where a request ends: the message and the block of its last marker."""


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
    sent: End | None = None,
    own_from: int | None = None,
    shared: End | None = None,
    same: int | None = None,
    images_left_out: int = 0,
    cache_edits: JsonObject | None = None,
    server_edits: JsonObject | None = None,
) -> Request:
    """Returns the request for these messages. `reused`: a later request continues it, so its end gets a cache entry.

    `sent` is where the last request of this thread ended; `own_from`, in a fork, its first own message; `shared`, in a
    fork child, where the part ends that it shares with its siblings. `same`: after an announced break, how many
    messages are unchanged. Layer 2 sets `cache_edits` and `server_edits`; endpoints without them do not get them.
    """
    shown = without_images(messages, images_left_out) if images_left_out else messages
    markers: tuple[Marker, ...] = ()
    if capabilities.cache_markers:
        ttl = header.ttl if header.ttl in capabilities.ttls else "5m"
        markers = place_markers(
            header, shown, ttl=ttl, reused=reused, sent=sent, own_from=own_from, shared=shared, same=same
        )
    managed = (server_edits or None) if capabilities.context_edits else None
    added = (BETA,) if managed is not None else ()
    return Request(
        model=header.model,
        system=header.system,
        tools=header.tools,
        messages=shown,
        max_tokens=_with_thinking(max_tokens, header.thinking),
        markers=markers,
        thinking=header.thinking,
        effort=header.effort,
        betas=(*header.betas, *(beta for beta in added if beta not in header.betas)),
        context_management=managed,
        cache_edits=cache_edits if capabilities.cache_edits else None,
        purpose=purpose,
        conversation=conversation,
        thread=thread,
        announced_break=announced_break,
    )


def _with_thinking(max_tokens: int, thinking: JsonObject | None) -> int:
    """Adds room for the answer: the thinking budget is part of the prefix, so a short answer cannot lower it."""
    budget = int((thinking or {}).get("budget_tokens") or 0)
    return max_tokens if budget < max_tokens else budget + max_tokens


def place_markers(
    header: SessionHeader,
    messages: Sequence[Message],
    *,
    ttl: Ttl = "5m",
    reused: bool = True,
    sent: End | None = None,
    own_from: int | None = None,
    shared: End | None = None,
    same: int | None = None,
) -> tuple[Marker, ...]:
    """Returns at most four markers in the order of the prompt; a longer lifetime never follows a shorter one.

    The messages of a fork are read again within seconds or never, so they are kept for 5 minutes only.
    """
    markers = list[Marker]()
    if header.system:
        markers.append(Marker("system", len(header.system) - 1, ttl=ttl))
    elif header.tools:
        markers.append(Marker("tools", len(header.tools) - 1, ttl=ttl))
    for index, block in sorted(_ends(messages, reused, sent, shared, same)):
        own = own_from is not None and index >= own_from
        markers.append(Marker("messages", index, block, ttl="5m" if own else ttl))
    return tuple(markers)


def _ends(
    messages: Sequence[Message], reused: bool, sent: End | None, shared: End | None, same: int | None
) -> list[End]:
    """Returns the three ends that are worth a marker, the most useful first."""
    asked = [i for i in range(len(messages) - 1, -1, -1) if messages[i].role == "user"]  # newest first
    if not asked:
        return []
    last = asked[0]
    wanted = [_end(messages, last)]
    # The end of the last request; after an announced break, the last end before the change.
    before = next((i for i in asked[1:] if same is None or i < same), None)
    wanted += [_end(messages, before)] if before is not None else []
    if shared is not None and shared[0] == last:
        wanted.append(shared)  # its siblings' requests are the same up to here
    if sent is not None and sent[0] == last and wanted[0][1] - sent[1] >= LOOKBACK:
        # The last request was not answered, and much was added to its last message.
        wanted.append(sent)
    # Models that drop the thinking of a finished turn continue from its start; so does an edited last message.
    began = next((i for i in asked[1:] if not isinstance(messages[i].content[0], ToolResultBlock)), None)
    if began is not None:
        wanted.append(_end(messages, began))
    wanted += [_end(messages, i) for i in asked[2:4]]
    found = list(dict.fromkeys(end for end in wanted if end[1] >= 0))
    return found[:3] if reused else [end for end in found if end != wanted[0]][:3]


def count_unchanged(before: Sequence[Message], now: Sequence[Message]) -> int:
    """Returns how many messages from the start two requests share. Most of them are the same objects."""
    pairs = zip(before, now, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1] or pair[0] == pair[1], pairs))


def end_of(messages: Sequence[Message]) -> End | None:
    """Returns where a request with these messages ends."""
    return _end(messages, len(messages) - 1) if messages and messages[-1].role == "user" else None


def _end(messages: Sequence[Message], index: int) -> End:
    blocks = messages[index].content
    for i in range(len(blocks) - 1, -1, -1):
        block = blocks[i]
        if not isinstance(block, ThinkingBlock) and not (isinstance(block, TextBlock) and not block.text):
            return index, i
    return index, -1


class ImageCount:
    """Counts the images of a growing conversation; looks only at what is new."""

    def __init__(self) -> None:
        self._messages: Sequence[Message] = ()
        self._images = 0

    def left_out(self, messages: Sequence[Message]) -> int:
        """Returns how many of the oldest images do not fit into a request."""
        same = count_unchanged(self._messages, messages)
        self._images += sum(_images(message.content) for message in messages[same:])
        self._images -= sum(_images(message.content) for message in self._messages[same:])
        self._messages = messages
        return max(0, -(-(self._images - MAX_IMAGES) // IMAGE_BATCH) * IMAGE_BATCH)


def without_images(messages: tuple[Message, ...], count: int) -> tuple[Message, ...]:
    """Replaces the `count` oldest images by a text each."""
    out = list(messages)
    for i, message in enumerate(messages):
        if count <= 0:
            break
        if _images(message.content):
            kept, count = _without_images(message.content, count)
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
            rest = {ITEM: block.extra[ITEM]} if ITEM in block.extra else {}
            out.append(TextBlock(IMAGE_LEFT_OUT, block.origin, rest))
            excess -= 1
        elif isinstance(block, ToolResultBlock) and isinstance(block.content, tuple) and excess > 0:
            inner, excess = _without_images(block.content, excess)
            out.append(replace(block, content=inner))
        else:
            out.append(block)
    return tuple(out), excess
