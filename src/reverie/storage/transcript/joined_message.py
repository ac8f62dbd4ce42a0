"""Joins records into the messages of a request: by role, with every call answered, and valid for the API.

This is the part of the view that needs no state. Pure: the same records always give the same bytes.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import field

from reverie.quick import dataclass
from reverie.storage.transcript.records import SessionHeader
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
    without_item,
)

NO_RESULT = "No result was recorded for this call."


@dataclass(slots=True)
class JoinedMessage:
    """Consecutive records of one role, joined into one message."""

    role: Role
    blocks: list[Block]
    message_id: str | None
    frozen: Message | None = None
    starts: list[int] = field(default_factory=list[int])
    """Where the blocks of each record after the first start."""


def freeze(joined: JoinedMessage, before: JoinedMessage | None) -> Message:
    """Builds the final message. Results come first, in the order of their calls, and every call has one."""
    blocks, starts = joined.blocks, joined.starts
    if joined.role == "user" and before is not None and (calls := calls_of(before)):
        results = {b.tool_use_id: b for b in blocks if isinstance(b, ToolResultBlock)}
        answers: list[Block] = [results.get(call.id) or missing_result(call) for call in calls]
        others = [not isinstance(block, ToolResultBlock) for block in blocks]
        shifted = list(itertools.accumulate(others, initial=len(answers)))
        starts = dict.fromkeys(shifted[at] for at in (0, *starts))
        blocks = answers + list(itertools.compress(blocks, others))
    elif joined.role == "assistant" and isinstance(blocks[-1], ThinkingBlock):
        blocks = [*blocks, TextBlock("(no answer)", Origin.MODEL)]  # the API refuses thinking as a last block
    return Message(joined.role, tuple(blocks), starts=tuple(starts))


def header_message(header: SessionHeader) -> Message:
    """Returns what the header adds to the prompt, as a message that can be measured."""
    schemas = [TextBlock(json.dumps(without_item(schema))) for schema in header.tools]
    return Message("user", (*(TextBlock(text) for text in (*header.system, header.reminder) if text), *schemas))


def missing_result(call: ToolUseBlock) -> ToolResultBlock:
    return ToolResultBlock(call.id, NO_RESULT, is_error=True, origin=Origin.CODE)


def calls_of(joined: JoinedMessage) -> list[ToolUseBlock]:
    return [block for block in joined.blocks if isinstance(block, ToolUseBlock)]


def is_blank(block: Block) -> bool:
    if isinstance(block, TextBlock):
        return not block.text.strip()
    return isinstance(block, OtherBlock) and not isinstance(block.raw, dict)
