"""Breaks of the prefix that were never sent: a session was killed between a decision and its request, or moved.

The next request makes the break, so it must announce it. One that was sent after all is announced twice, which costs
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reverie.layers.base import Break, BreakCause
from reverie.storage.moved_home import is_moved
from reverie.storage.transcript.records import Clears, CompactBoundary, Rewind, SessionHeader, Undo, from_record
from reverie.types import Record


def unsent_break(records: Sequence[Record], home: Path) -> tuple[Break, ...]:
    """Why the next request may differ from the last one that was answered; nothing if it extends it."""
    found = list[str]()
    for record in reversed(records):
        if record.message is not None and record.message.role == "assistant" and not record.is_sidechain:
            if is_moved(record, str(home)):
                return (Break(BreakCause.RESUMED, "Reverie's home was moved"),)
            break
        match from_record(record):
            case Clears():
                found.append("tool results were cleared")
            case CompactBoundary():
                found.append("the conversation was compacted")
            case Undo() | Rewind():
                found.append("the conversation was taken back")
            case SessionHeader():
                found.append("the prefix was rendered again")
            case _:
                pass
    reasons = ", ".join(dict.fromkeys(reversed(found)))
    return (Break(BreakCause.RESUMED, f"{reasons} before the session was interrupted"),) if reasons else ()
