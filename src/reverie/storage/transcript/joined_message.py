"""How records become the messages of a request: joined by role, every call answered, nothing the API would refuse.

The parts of the view's fold that need no state. Pure; the same records always give the same bytes.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field

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
)

NO_RESULT = "No result was recorded for this call."


@dataclass(slots=True)
class JoinedMessage:
    """Records of one role in a row, joined into one message; `calls` are the calls it answers or makes."""

    role: Role
    blocks: list[Block]
    message_id: str | None
    frozen: Message | None = None
    starts: list[int] = field(default_factory=list[int])
    """Where the blocks of each record after the first begin."""


def freeze(joined: JoinedMessage, before: JoinedMessage | None) -> Message:
    """Fixes one message. Results stand first, in the order of the calls they answer, with every call answered."""
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
    """What the header adds to the prompt, in a form that can be measured."""
    schemas = [TextBlock(json.dumps(schema)) for schema in header.tools]
    return Message("user", (*(TextBlock(text) for text in (*header.system, header.reminder) if text), *schemas))


def missing_result(call: ToolUseBlock) -> ToolResultBlock:
    return ToolResultBlock(call.id, NO_RESULT, is_error=True, origin=Origin.CODE)


def calls_of(joined: JoinedMessage) -> list[ToolUseBlock]:
    return [block for block in joined.blocks if isinstance(block, ToolUseBlock)]


def is_blank(block: Block) -> bool:
    if isinstance(block, TextBlock):
        return not block.text.strip()
    return isinstance(block, OtherBlock) and not isinstance(block.raw, dict)
