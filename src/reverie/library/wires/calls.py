"""Ids of calls: some servers count from one in every response, and a view needs ids that are unique.

A call that has the id of an earlier one gets another id in the view, and so does its result. The body has the id of the
server, because it is in the rest of the item.
"""

from __future__ import annotations

from dataclasses import replace

from reverie.storage.transcript.view import View
from reverie.types import Block, Message, ToolResultBlock


def with_unique_calls(view: View, message: Message) -> Message:
    """Returns a new message of the caller as it can follow in this view."""
    if message.role == "assistant":
        return replace(message, content=view.with_unique_calls(message.content))
    return replace(message, content=tuple(_answering(view, block) for block in message.content))


def _answering(view: View, block: Block) -> Block:
    if not isinstance(block, ToolResultBlock):
        return block
    return replace(block, tool_use_id=open_call(view, block.tool_use_id))


def open_call(view: View, call: str) -> str:
    """Returns the id in the view of the open call that the server named like this; the same name if there is none."""
    waiting = [each.id for each in view.open_calls]
    renamed = [name for name in waiting if name.rpartition("-")[0] == call and name.rpartition("-")[2].isdecimal()]
    return call if call in waiting or not renamed else renamed[0]
