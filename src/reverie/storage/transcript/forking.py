"""Forks a session: a new session that starts with the same conversation. The old one does not change.

The copy has every message and decision, so its requests begin with the same bytes. It has no costs or failures of the
old session: those are counted there. Results on disk stay in the folder of the old session.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from reverie.paths import make_private
from reverie.regular_files import read_regular
from reverie.storage.atomic import write_atomic
from reverie.storage.transcript.file import Transcript, read_records
from reverie.storage.transcript.records import CacheBreak, ForkUsage, LayerFailure, TurnCounts
from reverie.types import Record

_NOT_COPIED = {kind.subtype for kind in (CacheBreak, ForkUsage, LayerFailure, TurnCounts)}


def fork_session(source: Path, target: Path, *, notes: Path, new_notes: Path) -> None:
    """Writes the transcript and the notes of a new session; raises UserError if there is no `source`, or StorageError.

    A session that is open elsewhere can be forked: the copy ends where its file ends now.
    """
    found = read_records(source).records
    make_private(target.parent)
    transcript = Transcript(target)
    try:
        transcript.append(_rename(record, target.stem) for record in found if record.subtype not in _NOT_COPIED)
    finally:
        transcript.close()
    with suppress(FileNotFoundError):
        text = read_regular(notes)
        make_private(new_notes.parent)
        write_atomic(new_notes, text)


def _rename(record: Record, id: str) -> Record:
    return Record({**record.data, "sessionId": id}, record.message) if "sessionId" in record.data else record
