"""Saves what the user asked to remember in so many words ("remember that …"), if no memory says it after a run. So a
request is kept even if the model is weak or fails. The user's own words become the memory, once."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import date

from reverie.errors import ReverieError
from reverie.layers.l5_extraction.span import MessageSpan
from reverie.layers.l5_extraction.writes import Done
from reverie.memory.changes import Evidence, WriteInfo, Writer
from reverie.memory.gate.marks import Marks
from reverie.memory.gate.requests import asks_to_forget, clause_to_keep
from reverie.memory.gate.saving import refuse_secrets, save_note
from reverie.memory.note import Note, make_note
from reverie.memory.opening import OpenedMemory
from reverie.memory.taxonomy import Trust
from reverie.memory.topic_file import body_statements, statements_of
from reverie.memory.upkeep.duplicates import MemoryTexts
from reverie.moments import local_day
from reverie.text.sameness import StatementIndex, share
from reverie.text.words import content_terms
from reverie.types import Origin, TextBlock

WHY = "You asked to remember it."
_HALF = 0.5


def keep_requests(
    memory: OpenedMemory, span: MessageSpan, session: str, *, today: date, written: Collection[str] = ()
) -> dict[str, Done]:
    """Saves the requests of these messages that memory does not say yet; returns what happened to each file. `written`
    are the files that a run has just written. What cannot be saved is left out: a secret, or a doubtful sentence."""
    done: dict[str, Done] = {}
    for evidence, clause in _find_requests(span):
        texts = MemoryTexts(memory.directory.root).texts()
        if StatementIndex(one for text in texts.values() for one in statements_of(text)).has(clause):
            continue
        marks = Marks(memory.directory.root)
        statements = [one for name in written for one in body_statements(texts.get(name, ""))]
        if any(_rests_on(marks, one, evidence.message, clause) for one in statements):
            continue  # in other words, or in another language
        try:
            refuse_secrets(clause)
            note = make_note(clause, today=local_day(evidence.at) or today)
            if note.doubt:
                continue
            info = WriteInfo(Writer.USER, WHY, session, evidence.message, (evidence,))
            saved = save_note(memory, _with_trust(note, evidence.origin), info)
        except ReverieError:
            continue
        if saved.action in ("added", "updated"):
            done[saved.file] = saved.action
    return done


def _find_requests(span: MessageSpan) -> list[tuple[Evidence, str]]:
    """The requests to remember, without those before a later request to forget something."""
    found: list[tuple[Evidence, str]] = []
    for entry in span.entries:
        for block in entry.message.content:
            if not isinstance(block, TextBlock) or not block.origin.is_users:
                continue
            if asks_to_forget(block.text):
                found.clear()
            elif clause := clause_to_keep(block.text):
                found.append((Evidence(block.origin, block.text, entry.uuid or "", entry.timestamp or ""), clause))
    return found


def _rests_on(marks: Marks, statement: str, message: str, clause: str) -> bool:
    """Whether a statement was stored because of this request."""
    mark = marks.of(statement)
    terms = content_terms(clause)
    return (
        mark is not None
        and bool(message)
        and mark.message == message
        and share(terms, content_terms(f"{mark.quote} {statement}")) >= _HALF
    )


def _with_trust(note: Note, origin: Origin) -> Note:
    trust = Trust.CONFIRMED if origin is Origin.TYPED else Trust.INFERRED
    return replace(note, topic=note.topic.with_changes(trust=trust))
