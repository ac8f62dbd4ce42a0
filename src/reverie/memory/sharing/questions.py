"""The question about a memory that two sides changed: both texts are kept, each in a file of its own, and the user says
in the inbox which one is right."""

from __future__ import annotations

from reverie.errors import ReverieError
from reverie.memory.directory import MemoryDirectory
from reverie.memory.gate.inbox import CONFLICT, Item, MemoryInbox
from reverie.memory.topic_file import decode, statements_of
from reverie.text.folding import fold_text


def ask_which(memory: MemoryDirectory, name: str, copy: str, own: bytes, other: bytes) -> str:
    """Adds the question. Returns a sentence if it could not be asked, else an empty text."""
    mine, theirs = decode(own), decode(other)
    item = Item(
        why=CONFLICT,
        file=name,
        other=copy,
        text=mine,
        writer="sync",
        statements=_only_in(mine, theirs),
        removes=_only_in(theirs, mine),
        question=f"{name} was changed here and elsewhere. Is the version of this machine right ({copy})?",
    )
    try:
        MemoryInbox(memory.root).add(item)
    except ReverieError as error:
        return f"{name} is kept in both versions ({copy} is the one of this machine), without a question: {error}"
    return ""


def drop_settled(memory: MemoryDirectory) -> int:
    """Drops questions that were answered elsewhere: one of the two versions is gone. Returns how many."""
    inbox = MemoryInbox(memory.root)
    settled = [
        item
        for item in inbox.list()
        if item.why == CONFLICT and not (memory.exists(item.file) and memory.exists(item.other))
    ]
    for item in settled:
        inbox.reject(item.id)
    return len(settled)


def _only_in(one: str, other: str) -> tuple[str, ...]:
    known = {fold_text(statement) for statement in statements_of(other)}
    return tuple(statement for statement in statements_of(one) if fold_text(statement) not in known)
