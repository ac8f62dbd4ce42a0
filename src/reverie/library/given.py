"""Items of a caller in the transcript: their fingerprints, which records answer a request of ours, and what was added.
Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from reverie.layers.base import Break, BreakCause
from reverie.library.wires.base import GivenMessage
from reverie.quick import dataclass
from reverie.storage.transcript.foreign import split_injected, words_of_user
from reverie.storage.transcript.records import (
    Clears,
    CompactBoundary,
    Fold,
    Rewind,
    SessionHeader,
    Undo,
    from_record,
)
from reverie.storage.transcript.view import Entry
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
    """What the user says in a message; nothing for results, for text of others, and for what a client adds in tags."""
    if message.role != "user":
        return ""
    texts = (words_of_user(b.text) for b in message.content if isinstance(b, TextBlock) and b.origin.is_users)
    return "\n\n".join(text for text in texts if text.strip())


def recalled_text(record: Record) -> str:
    """The memories that a record shows; empty if it shows none."""
    blocks = record.message.content if record.message is not None and record.data.get("isMeta") else ()
    return "\n\n".join(b.text for b in blocks if isinstance(b, TextBlock) and b.origin is Origin.RECALLED)


def count_said(known: Sequence[KnownItem]) -> int:
    """How many items of the caller say something that counts."""
    return sum(1 for one in known if one.fingerprint)


def without_injected(entries: Sequence[Entry]) -> list[Entry]:
    """The entries with everything that a client added to the user's messages marked as not the user's."""
    return [_without_injected(entry) if entry.message.role == "user" else entry for entry in entries]


def _without_injected(entry: Entry) -> Entry:
    message = entry.message
    parts = [split_injected(block) if isinstance(block, TextBlock) else [block] for block in message.content]
    blocks = tuple(block for own in parts for block in own)
    return entry if blocks == message.content else replace(entry, message=replace(message, content=blocks))


def unsent_breaks(records: Sequence[Record]) -> Iterator[Break]:
    """Yields why the next request may not continue the last one that was answered, from the records since then."""
    found = dict[BreakCause, str]()
    for record in reversed(records):
        if is_answer(record):
            break
        match from_record(record):
            case Clears():
                found[BreakCause.CLEARED] = "tool results were cleared"
            case Fold():
                found[BreakCause.FOLDED] = "old stretches were folded"
            case CompactBoundary():
                found[BreakCause.COMPACTED] = "the conversation was compacted"
            case Rewind() | Undo():
                found[BreakCause.TAKEN_BACK] = "the caller changed the history"
            case SessionHeader():
                found[BreakCause.HEADER] = "the caller changed the system prompt, the tools or the model"
            case _:
                pass
    if BreakCause.COMPACTED in found:
        found.pop(BreakCause.HEADER, None)  # a compaction records the header again
    yield from (Break(cause, why) for cause, why in reversed(found.items()))
