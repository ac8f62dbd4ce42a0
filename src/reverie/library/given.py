"""Items of a caller in the transcript: their fingerprints, and which records answer a request of ours. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reverie.library.wires.base import GivenMessage
from reverie.quick import dataclass
from reverie.types import Message, Origin, Record, TextBlock

GIVEN = "given"
"""The field of a record with the fingerprints of the caller's items in it."""
TOLD = "told"
"""The field of an answer that was given to somebody else's request."""
_LONG_ANSWER = 80
"""Characters of an answer that is not repeated by accident."""


@dataclass(frozen=True, slots=True)
class KnownItem:
    """One item of the caller, and the record that has it."""

    fingerprint: str
    record: Record
    is_unique: bool


def known_items(record: Record) -> list[KnownItem]:
    given: list[str] = record.data.get(GIVEN) or []
    return [KnownItem(fingerprint, record, _is_unique(record)) for fingerprint in given]


def _is_unique(record: Record) -> bool:
    """Whether no other message equals this one by accident: it has the id of a call, or is a long answer."""
    message = record.message
    if message is None:
        return False
    is_long = message.role == "assistant" and len(message.text) >= _LONG_ANSWER
    return is_long or bool(message.tool_uses or message.tool_results)


def is_answer(record: Record) -> bool:
    """Whether the record answers a request of this conversation."""
    return is_said_by("assistant", record) and not record.data.get(TOLD)


def is_said_by(role: str, record: Record) -> bool:
    return record.message is not None and record.message.role == role and not record.is_sidechain


def grouped(given: Sequence[GivenMessage]) -> list[list[GivenMessage]]:
    """Returns each message alone, and the items of one response together."""
    groups = list[list[GivenMessage]]()
    for one in given:
        if groups and one.message.role == groups[-1][-1].message.role == "assistant":
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


def joined(given: Sequence[GivenMessage]) -> Message:
    blocks = tuple(block for one in given for block in one.message.content)
    return replace(given[0].message, content=blocks) if given else Message("assistant", blocks)


def with_origin(given: GivenMessage, origin: Origin) -> GivenMessage:
    """Returns the message with this origin for text of the user that names none."""
    if origin is Origin.ENTERED or given.message.role != "user":
        return given
    blocks = tuple(
        replace(block, origin=origin) if isinstance(block, TextBlock) and block.origin is Origin.ENTERED else block
        for block in given.message.content
    )
    return replace(given, message=replace(given.message, content=blocks))


def said_by_user(message: Message) -> str:
    """What the user says in a message; nothing for results and for text of others."""
    if message.role != "user":
        return ""
    texts = (b.text for b in message.content if isinstance(b, TextBlock) and b.origin.is_users)
    return "\n\n".join(text for text in texts if text.strip())
