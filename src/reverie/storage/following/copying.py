"""Appends records of another agent's session to our copy of it: each record once, and never after the user's own work.

A record is recognised by its uuid, so a purge of its text is not undone. The lease of the session is held meanwhile.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from reverie.errors import UserError
from reverie.quick import dataclass
from reverie.storage.lease import Lease
from reverie.storage.transcript.converted import name_record
from reverie.storage.transcript.file import Transcript, parse_record, read_records
from reverie.storage.transcript.foreign import import_record
from reverie.storage.transcript.records import CompactBoundary, Rewind, Undo, from_record
from reverie.storage.transcript.session_files import Form
from reverie.types import JsonObject, Record

IMPORTED = "imported"
"""The field of a copied record that names the form of its source."""
_BLOCK = 1_000

Clean = Callable[[JsonObject], JsonObject]
"""Removes from a record what must not come back, such as a purged secret."""


class CopyRefused(UserError):
    """The user has continued our copy, so it is left alone."""


@dataclass(frozen=True, slots=True)
class Copied:
    """What was appended, and the size of the copy now (0: there is none). `messages` counts the conversation only."""

    messages: int
    records: int
    size: int
    is_new: bool


def copy_session(
    records: Iterable[Record],
    target: Path,
    form: Form,
    *,
    size: int | None = None,
    clean: Clean = lambda record: record,
) -> Copied:
    """Appends the records that the copy does not have. `size` is what it had after the last copying, if that is known.

    No copy is made of a session without messages. Raises `CopyRefused`, `SessionBusy` and `StorageError`.
    """
    with Lease.take(target.with_suffix("") / Lease.NAME, info={"session": target.stem}):
        now = target.stat().st_size if target.exists() else 0
        seen = set[str]()
        if now and now != size:
            held = read_records(target).records
            if any(map(_is_continued, held)):
                raise CopyRefused(f"you have continued session {target.stem} here, so its copy is left alone")
            seen = {record.uuid for record in held if record.uuid is not None}
        transcript, waiting = Transcript(target), list[Record]()
        messages = added = 0
        try:
            for record in records:
                copied = _copy_of(record, form)
                if copied is None or copied["uuid"] in seen:
                    continue
                seen.add(copied["uuid"])
                waiting.append(parse_record(clean(copied)))
                messages += _is_said(record)
                added += 1
                if len(waiting) >= _BLOCK and (now or messages):
                    transcript.append(waiting)
                    waiting.clear()
            if now or messages:
                transcript.append(waiting)
        finally:
            transcript.close()
        return Copied(messages, added, target.stat().st_size if target.exists() else 0, not now)


def _copy_of(record: Record, form: Form) -> JsonObject | None:
    """Returns the record to store; None for one that no message depends on, such as a log of requests."""
    raw = record.stored()
    if record.uuid is None:
        if record.message is None and record.type != "summary":
            return None
        raw = {**raw, "uuid": name_record(json.dumps(raw, sort_keys=True))}
    return {**import_record(raw), IMPORTED: form}


def _is_said(record: Record) -> bool:
    return record.message is not None and not record.is_sidechain


def _is_continued(record: Record) -> bool:
    """Whether this is work of the user on our copy that later records of the other agent would hide."""
    if IMPORTED in record.data or not record.data.keys() & {"opening", "schemaVersion"}:
        return False
    if record.message is None:
        return isinstance(from_record(record), CompactBoundary | Rewind | Undo)
    answered = record.message.role == "assistant"
    return _is_said(record) and (answered or any(block.origin.is_given for block in record.message.content))


def set_time(target: Path, at: float) -> None:
    """Gives the copy the time of its last record, so that it counts as used then."""
    if at > 0:
        at = min(at, time.time())
        os.utime(target, (at, at))
