"""How records become the messages of a request: joined by role, every call answered, nothing the API would refuse.

The parts of the view's fold that need no state. Pure; the same records always give the same bytes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from reverie.storage.records import SessionHeader
from reverie.types import (
    Block,
    Message,
    Origin,
    OtherBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)

NO_RESULT = "No result was recorded for this call."


@dataclass(slots=True)
class Joined:
    """Records of one role in a row, joined into one message; `calls` are the calls it answers or makes."""

    role: Role
    blocks: list[Block]
    message_id: str | None
    frozen: Message | None = None
    said: Block | None = None
    """The first block of the last record in which the user said or gave something."""


def freeze(joined: Joined, before: Joined | None) -> Message:
    """Fixes one message. Results stand first, in the order of the calls they answer, with every call answered."""
    blocks = joined.blocks
    if joined.role == "user" and before is not None and (calls := calls_of(before)):
        results = {b.tool_use_id: b for b in blocks if isinstance(b, ToolResultBlock)}
        answers: list[Block] = [results.get(call.id) or missing(call) for call in calls]
        blocks = answers + [b for b in blocks if not isinstance(b, ToolResultBlock)]
    elif joined.role == "assistant" and isinstance(blocks[-1], ThinkingBlock):
        blocks = [*blocks, TextBlock("(no answer)", Origin.MODEL)]  # the API refuses thinking as a last block
    said_from = next((at for at, block in enumerate(blocks) if block is joined.said), 0)
    return Message(joined.role, tuple(blocks), said_from=said_from)


def first_given(blocks: list[Block]) -> Block | None:
    """Where the user speaks, or gives material, in the blocks of one record."""
    return next((block for block in blocks if isinstance(block, TextBlock) and block.origin.is_given), None)


def as_message(header: SessionHeader) -> Message:
    """What the header adds to the prompt, in a form that can be measured."""
    schemas = [TextBlock(json.dumps(schema)) for schema in header.tools]
    return Message("user", (*(TextBlock(text) for text in (*header.system, header.reminder) if text), *schemas))


def missing(call: ToolUseBlock) -> ToolResultBlock:
    return ToolResultBlock(call.id, NO_RESULT, is_error=True, origin=Origin.CODE)


def calls_of(joined: Joined) -> list[ToolUseBlock]:
    return [block for block in joined.blocks if isinstance(block, ToolUseBlock)]


def is_blank(block: Block) -> bool:
    if isinstance(block, TextBlock):
        return not block.text.strip()
    return isinstance(block, OtherBlock) and not isinstance(block.raw, dict)
