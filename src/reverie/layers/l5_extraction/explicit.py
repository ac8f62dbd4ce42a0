"""Saves what the user asked to remember in so many words ("remember that …"), if no memory says it after a run. So a
request is kept even if the model is weak or fails. The user's own words become the memory, once."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from reverie.errors import ReverieError
from reverie.layers.l5_extraction.span import MessageSpan
from reverie.layers.l5_extraction.writes import Done
from reverie.memory.changes import Evidence, WriteInfo, Writer
from reverie.memory.gate.marks import Marks
from reverie.memory.gate.requests import asks_to_forget, clause_to_keep
from reverie.memory.gate.saving import save_note
from reverie.memory.note import Note, make_note
from reverie.memory.opening import OpenedMemory
from reverie.memory.secrets.new_secret import refuse_secrets
from reverie.memory.taxonomy import Trust, is_team
from reverie.memory.topic_file import statements_of
from reverie.memory.upkeep.duplicates import MemoryTexts
from reverie.moments import local_day
from reverie.text.folding import fold_statement
from reverie.text.sentences import capitalize_first
from reverie.types import Origin, TextBlock

WHY = "You asked to remember it."


def keep_requests(memory: OpenedMemory, span: MessageSpan, session: str, *, today: date) -> dict[str, Done]:
    """Saves the requests of these messages that no memory rests on; returns what happened to each file. What cannot be
    saved is left out: a secret, or a doubtful sentence."""
    done: dict[str, Done] = {}
    requests = _find_requests(span)
    kept = _kept_requests(memory) if requests else set[str]()
    for evidence, clause in requests:
        if fold_statement(clause) in kept:
            continue  # in other words, or in another language
        try:
            refuse_secrets(clause)
            note = make_note(capitalize_first(clause), today=local_day(evidence.at) or today)
            if note.doubt:
                continue
            info = WriteInfo(Writer.USER, WHY, session, evidence.message, (evidence,))
            saved = save_note(memory, _with_trust(note, evidence.origin), info)
        except ReverieError:
            continue
        if saved.action == "added":
            done[saved.file] = saved.action
    return done


def asks_to_remember(span: MessageSpan) -> bool:
    """Whether the user asks in these messages to remember something in so many words."""
    return bool(_find_requests(span))


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


def _kept_requests(memory: OpenedMemory) -> set[str]:
    """The requests that a memory of the user has as its quote, which is shown with it."""
    root = memory.directory.root
    texts = [
        one for name, text in MemoryTexts(root).texts().items() if not is_team(name) for one in statements_of(text)
    ]
    quotes = {mark.quote for mark in Marks(root).of_each(texts) if mark is not None}
    return {fold_statement(clause) for quote in quotes if (clause := clause_to_keep(quote))}


def _with_trust(note: Note, origin: Origin) -> Note:
    trust = Trust.CONFIRMED if origin is Origin.TYPED else Trust.INFERRED
    return replace(note, topic=note.topic.with_changes(trust=trust))
