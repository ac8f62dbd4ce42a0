"""Saves what the user asks to remember: as a new memory, or into the memory that it corrects, never twice. What may not
be worth keeping is saved with a warning. Secrets are refused before a name is made from them. Also finds the memory
that the user wants to remove. The caller asks the user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from reverie.errors import ReverieError
from reverie.memory.changes import ChangedUnderneath, ProposedWrite, WriteInfo, Writer
from reverie.memory.note import Note, Related, find_related, revise
from reverie.memory.opening import OpenedMemory
from reverie.memory.secrets.scan import find_secrets
from reverie.memory.upkeep.duplicates import MemoryTexts
from reverie.storage.history.versions import Version

Choice = Literal["update", "new", "nothing"]
_NAMES = 100
_CLEAR = 0.5  # of a perfect match by words
_BEHIND = 0.6  # the largest share of the second, relative to the first, for the first to be clear


class HoldsSecret(ReverieError):
    """The text holds a secret; the sentence names its kind and never the value."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Saved:
    """The result for a note."""

    action: Literal["added", "updated", "unchanged", "nothing"]
    """`unchanged`: it is remembered already. `nothing`: the user chose so."""
    file: str
    version: Version | None = None
    instead_of: str = ""
    """The statement that was replaced."""
    warnings: tuple[str, ...] = ()


def refuse_secrets(text: str) -> None:
    """Raises `HoldsSecret` if the text holds one, before a title or a file name is made from it."""
    found = find_secrets(text)
    if found:
        raise HoldsSecret(
            f"Not remembered: the text holds {found[0].kind}, and secrets are never stored. Say where it is kept "
            "instead (the entry in the password manager, the name of the environment variable)."
        )


def save_note(
    memory: OpenedMemory, note: Note, info: WriteInfo, choose: Callable[[Related], Choice] = lambda _: "update"
) -> Saved:
    """Saves a note. `choose` is called when an existing memory says much the same."""
    directory = memory.directory
    directory.finish_pending()
    near = find_related(note.statement, MemoryTexts(directory.root).texts())
    warnings = [f"It may not be worth keeping: {note.doubt}."] if note.doubt else []
    if near is not None and near.same:
        return Saved("unchanged", near.file)
    if near is not None:
        choice = choose(near)
        if choice == "nothing":
            return Saved("nothing", near.file)
        if choice == "update":
            version = directory.edit(near.file, lambda now: revise(now, near.statement, note), info)
            action = "updated" if version else "unchanged"
            return Saved(action, near.file, version, near.statement, tuple(warnings))
    warnings += memory.gate.warnings(ProposedWrite(note.file, note.topic.text, None, Writer.USER))
    for number in range(1, _NAMES):
        name = note.file if number == 1 else f"{note.file.removesuffix('.md')}_{number}.md"
        if directory.exists(name):
            continue
        try:
            return Saved("added", name, directory.create(name, note.topic, info), warnings=tuple(warnings))
        except ChangedUnderneath:
            continue  # somebody else has just taken the name
    raise ReverieError(f"There are {_NAMES} memories named like {note.file}; use --name to name this memory.")


@dataclass(frozen=True, slots=True)
class MemoryMatch:
    """A memory that a text may mean."""

    file: str
    description: str
    share: float
    """The share of a perfect match by words; 1 for its exact name."""


def find_memories(memory: OpenedMemory, text: str, *, limit: int = 5) -> tuple[list[MemoryMatch], bool]:
    """The memories a text may mean, best first, and whether the first one is clearly meant."""
    wanted = text.strip().casefold().removesuffix(".md")
    entries = memory.directory.list()
    for entry in entries:
        if wanted and wanted in (entry.name.casefold().removesuffix(".md"), entry.title.casefold()):
            return [MemoryMatch(entry.name, entry.description, 1.0)], True
    from reverie.memory.recall.ranker import Ranker

    places, root = memory.places, memory.directory.root
    with Ranker.open(root, places.search_index(root), tier="builtin") as ranker:
        ranked = ranker.rank(text, limit=limit).ranked
    found = [MemoryMatch(one.path, one.description, one.signals.words) for one in ranked if one.signals.words > 0.1][
        :limit
    ]
    if not found:
        return [], False
    is_clear = found[0].share >= _CLEAR and (len(found) == 1 or found[1].share <= _BEHIND * found[0].share)
    return found, is_clear
