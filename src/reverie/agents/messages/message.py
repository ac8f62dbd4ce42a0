"""A message between agents, and the text that the receiving model sees.

Its blocks have `Origin.AGENT` and start with its id, so a transcript shows which messages it contains.
"""

from __future__ import annotations

import html
import re
import secrets
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from reverie.origins import escape_tags
from reverie.quick import dataclass
from reverie.types import Block, Message, Origin, Record, TextBlock

_OPENING = re.compile(r'<letter id="([0-9a-f]{16})" ')
_NOT_USER = "(From another agent, not from the user.)"


@dataclass(frozen=True, slots=True)
class AgentMessage:
    """One message between agents. `at` has a time zone; `summary` and `color` may be empty."""

    id: str
    sender: str
    to: str
    text: str
    summary: str
    at: datetime
    color: str = ""


def new_message(
    sender: str, to: str, text: str, *, summary: str = "", at: datetime | None = None, color: str = ""
) -> AgentMessage:
    """Creates a message with a new id. Without `at`, its time is now."""
    return AgentMessage(secrets.token_hex(8), sender, to, text, summary, at or datetime.now(UTC), color)


def message_blocks(messages: Iterable[AgentMessage]) -> list[TextBlock]:
    """Returns one block per message for the model, in the given order. No text can imitate a second message."""
    return [TextBlock(_render(message), Origin.AGENT) for message in messages]


def recorded_ids(records: Iterable[Record]) -> set[str]:
    """Returns the ids of all messages in a transcript, even those before a compaction."""
    return {id for record in records if record.message is not None for id in message_ids(record.message)}


def message_ids(message: Message) -> Sequence[str]:
    """Returns the ids of the agents' messages in one message of the conversation."""
    blocks = (block for block in message.content if isinstance(block, TextBlock) and block.origin is Origin.AGENT)
    return [found.group(1) for block in blocks if (found := _OPENING.match(block.text)) is not None]


def sender_and_text(block: Block) -> tuple[str, str] | None:
    """Returns the sender and the text of the message in this block; None for any other block."""
    if not isinstance(block, TextBlock) or block.origin is not Origin.AGENT or not _OPENING.match(block.text):
        return None
    head, _, rest = block.text.partition("\n")
    sender = head.partition(' from="')[2].partition('"')[0]
    text = rest.removeprefix(f"{_NOT_USER}\n").removesuffix("\n</letter>")
    return html.unescape(sender), text


def _render(message: AgentMessage) -> str:
    at = message.at.astimezone(UTC).isoformat(timespec="seconds")
    summary = f' summary="{_attribute(message.summary)}"' if message.summary else ""
    body = escape_tags(message.text)
    head = f'<letter id="{message.id}" from="{_attribute(message.sender)}" at="{at}"{summary}>'
    return f"{head}\n{_NOT_USER}\n{body}\n</letter>"


def _attribute(text: str) -> str:
    return " ".join(text.split()).replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
