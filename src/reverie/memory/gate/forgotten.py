"""Memories that the user removed, so that background writers do not bring them back. A memory that the user, their
agent or an editor removed is still in old transcripts and logs, and a dream would find it "missing". The history knows
better. Saved again in a conversation, it is in memory and no longer listed here."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from reverie.memory.changes import Writer
from reverie.memory.directory import MemoryDirectory
from reverie.memory.taxonomy import is_topic
from reverie.memory.topic_file import decode, statements_of
from reverie.quick import dataclass
from reverie.text.folding import fold_text
from reverie.text.sameness import StatementIndex
from reverie.text.words import content_terms

_LOOKED_AT = 1_000
"""Versions to look at, newest first. Transcripts from before them are usually deleted too."""
_UNWATCHED = (Writer.DREAM, Writer.IMPORT)
"""Writers that remove a file only to say the same elsewhere."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """One statement that was removed from memory on purpose."""

    statement: str
    when: datetime


def list_forgotten(memory: MemoryDirectory) -> list[Forgotten]:
    """Statements that were removed with their whole file and are in no memory now, newest first."""
    found = list[Forgotten]()
    for version in memory.log(limit=_LOOKED_AT):
        if version.info.writer in _UNWATCHED:
            continue
        for change in version.files:
            if change.before is None or change.after is not None or not is_topic(change.name):
                continue
            for one in statements_of(decode(memory.history.read(change.before))):
                if len(content_terms(one)) > 1:
                    found.append(Forgotten(one, version.when))
    if not found:
        return []
    names = filter(is_topic, memory.names())
    standing = {fold_text(one) for name in names for one in statements_of(memory.read(name).text)}
    return [one for one in found if fold_text(one.statement) not in standing]


def find_brought_back(text: str, standing: Iterable[str], gone: Iterable[Forgotten]) -> Forgotten | None:
    """The forgotten statement that `text` brings back, or None. `standing`: the texts of all memories."""
    stood = {one for held in standing for one in statements_of(held)}
    new = StatementIndex(one for one in statements_of(text) if one not in stood)
    return next((one for one in gone if new.has(one.statement)), None)
