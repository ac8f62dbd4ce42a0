"""What people had forgotten, so that nobody who works unwatched brings it back.

A memory that was removed by a person, by the agent they told, or with an editor, still stands in old transcripts and
logs. A dream that reads them would find it "missing". The history knows better. Who is told it again in a conversation
may save it again: then it stands in memory, and is no longer looked for here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from reverie.memory.changes import Writer
from reverie.memory.directory import MemoryDirectory
from reverie.memory.taxonomy import is_topic
from reverie.memory.topic_file import decode, statements_of
from reverie.text.folding import fold_text
from reverie.text.sameness import StatementIndex
from reverie.text.words import content_terms

_LOOKED_AT = 1_000
"""Versions, newest first. What was forgotten before them is forgotten by the transcripts' keeping time too."""
_UNWATCHED = (Writer.DREAM, Writer.IMPORT)
"""Who removes a file only to say the same elsewhere."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """One statement that was taken out of memory on purpose."""

    statement: str
    when: datetime


def list_forgotten(memory: MemoryDirectory) -> list[Forgotten]:
    """What was removed with its whole file and is in no memory now, newest first."""
    standing = {
        fold_text(one) for name in memory.names() if is_topic(name) for one in statements_of(memory.read(name).text)
    }
    found = list[Forgotten]()
    for version in memory.log(limit=_LOOKED_AT):
        if version.info.writer in _UNWATCHED:
            continue
        for change in version.files:
            if change.before is None or change.after is not None or not is_topic(change.name):
                continue
            for one in statements_of(decode(memory.history.read(change.before))):
                if len(content_terms(one)) > 1 and fold_text(one) not in standing:
                    found.append(Forgotten(one, version.when))
    return found


def find_brought_back(text: str, standing: Iterable[str], gone: Iterable[Forgotten]) -> Forgotten | None:
    """The forgotten statement that `text` brings back; None if there is none. `standing`: all that memory holds now."""
    stood = {one for held in standing for one in statements_of(held)}
    new = StatementIndex(one for one in statements_of(text) if one not in stood)
    return next((one for one in gone if new.has(one.statement)), None)


def explain_forgotten(name: str, gone: Forgotten) -> str:
    """What a writer is told that wanted to."""
    return (
        f"{name}: not written, because the user had this forgotten on {gone.when:%Y-%m-%d}: leave it out, whatever an "
        "older transcript or log says."
    )
