"""Shortens a conversation that is too long for its own summary: drops first rounds, replaces images by words. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from reverie.types import Block, DocumentBlock, ImageBlock, Message, Origin, TextBlock, ToolResultBlock

IMAGE = "[An image was here.]"
DOCUMENT = "[A document was here.]"
LEFT_OUT = "(The beginning of the conversation is left out here: it did not fit.)"
_SHARE_OF_ROUNDS = 5
_CUT = "\n[… cut: too long to be summarised whole …]\n"


def without_media(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Replaces every image and document by a short marker."""
    return tuple(replace(message, content=_in_words(message.content)) for message in messages)


def without_restored(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Drops what an earlier compaction read from disk again: the next one does so anyway."""
    return tuple(replace(message, content=_without_files(message) or message.content) for message in messages)


def _without_files(message: Message) -> tuple[Block, ...]:
    restored = (Origin.TOOL, Origin.PLAN)
    return tuple(b for b in message.content if not (isinstance(b, TextBlock) and b.origin in restored))


def _in_words(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    out = list[Block]()
    for block in blocks:
        match block:
            case ImageBlock():
                out.append(TextBlock(IMAGE, block.origin))
            case DocumentBlock():
                out.append(TextBlock(DOCUMENT, block.origin))
            case ToolResultBlock(content=tuple() as inner):
                out.append(replace(block, content=_in_words(inner)))
            case _:
                out.append(block)
    return tuple(out)


def rounds(messages: Sequence[Message]) -> list[list[Message]]:
    """Groups the messages by round: a response and what answers it. Messages before the first are a round too."""
    found: list[list[Message]] = []
    for message in messages:
        if message.role == "assistant" or not found:
            found.append([])
        found[-1].append(message)
    return found


def shorter(
    messages: Sequence[Message], excess: int | None, weigh: Callable[[Message], int]
) -> tuple[Message, ...] | None:
    """Drops rounds from the front until `excess` tokens are gone; a fifth of the rounds if `excess` is not known.

    At least one round goes and at least one stays; the rest begins with a user message. None if nothing can go.
    """
    all_rounds = [part for part in rounds(messages) if part[0].text != LEFT_OUT or len(part) > 1]
    if len(all_rounds) < 2:
        return None
    if excess is None:
        going = max(1, len(all_rounds) // _SHARE_OF_ROUNDS)
    else:
        going, gone = 0, 0
        while going < len(all_rounds) - 1 and gone < max(1, excess):
            gone += sum(weigh(message) for message in all_rounds[going])
            going += 1
    left = [message for part in all_rounds[min(going, len(all_rounds) - 1) :] for message in part]
    if left[0].role == "assistant":
        left.insert(0, Message("user", (TextBlock(LEFT_OUT),)))
    return tuple(left)


def cut_texts(messages: Sequence[Message], characters: int) -> tuple[Message, ...]:
    """Cuts every text to this length: the last resort when one message alone is too long."""
    return tuple(replace(message, content=tuple(_cut(b, characters) for b in message.content)) for message in messages)


def _cut(block: Block, characters: int) -> Block:
    match block:
        case TextBlock() if len(block.text) > characters:
            return replace(block, text=_middle_out(block.text, characters))
        case ToolResultBlock(content=str() as text) if len(text) > characters:
            return replace(block, content=_middle_out(text, characters))
        case ToolResultBlock(content=tuple() as inner):
            return replace(block, content=tuple(_cut(part, characters) for part in inner))
        case _:
            return block


def _middle_out(text: str, characters: int) -> str:
    half = max(1, characters // 2)
    return text[:half] + _CUT + text[-half:]
