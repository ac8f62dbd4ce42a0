"""Saves what the user asks to remember, in their words: as a new memory, beside those that may be about the same. Only
an equal text is already there, and only the user's choice puts it in the place of another one. What may not be worth
keeping is saved with a warning. Secrets are refused before a name is made from them. Also finds the memory that the
user wants to remove. The caller asks the user."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Literal

from reverie.errors import ReverieError
from reverie.memory.changes import (
    ABSENT,
    Change,
    ChangedUnderneath,
    Evidence,
    Mark,
    Outcome,
    ProposedWrite,
    WriteInfo,
    Writer,
)
from reverie.memory.gate.marks import Marks
from reverie.memory.gate.review import confirm, list_statements
from reverie.memory.note import Note, Related, find_related, make_note, revise
from reverie.memory.opening import OpenedMemory
from reverie.memory.secrets.new_secret import refuse_secrets
from reverie.memory.taxonomy import MemoryType, Trust, is_team
from reverie.memory.topic_file import TopicFile, statements_of
from reverie.memory.upkeep.duplicates import MemoryTexts
from reverie.origins import split_material
from reverie.quick import dataclass
from reverie.storage.history.versions import Version
from reverie.text.cutting import shorten
from reverie.text.folding import fold, fold_statement, longest_word
from reverie.text.word_lists import FUNCTION_WORDS
from reverie.text.words import words
from reverie.types import Origin

Choice = Literal["update", "new", "nothing"]
_NAMES = 100
_SHOWN = 100
_CLEAR = 0.5  # of a perfect match by words
_BEHIND = 0.6  # the largest share of the second, relative to the first, for the first to be clear
_FEWEST = 0.1  # the smallest share that counts
_BEGINNING = 5  # letters by which `allergy` is found with `Allergie`


@dataclass(frozen=True, slots=True)
class Saved:
    """The result for a note."""

    action: Literal["added", "updated", "confirmed", "unchanged", "nothing"]
    """`unchanged`: it is remembered already. `confirmed`: so it is, and the user's words confirm it now. `nothing`: the
    user chose so."""
    file: str
    version: Version | None = None
    instead_of: str = ""
    """The statement that was replaced."""
    warnings: tuple[str, ...] = ()


def trust_of(info: WriteInfo) -> Trust:
    """How far the user's own write is trusted: confirmed if they typed it on a terminal or saw it in an editor."""
    is_typed = any(block.origin is Origin.TYPED for block in info.evidence)
    return Trust.CONFIRMED if is_typed or info.confirms else Trust.INFERRED


def user_info(why: str, text: str, origin: Origin, *, session: str = "", message: str = "") -> WriteInfo:
    """Who writes a text that the user gave, and how they gave it. Logs and code count as pasted."""
    if origin.is_users and any(not block.origin.is_users for block in split_material(text, origin)):
        origin = Origin.PASTED
    said = Evidence(origin, text, message, datetime.now(UTC).isoformat(timespec="seconds"))
    return WriteInfo(Writer.USER, why, session, message, evidence=(said,))


def save_text(
    memory: OpenedMemory,
    text: str,
    info: WriteInfo,
    choose: Callable[[Related, Note], Choice] = lambda _near, _note: "new",
    *,
    kind: str | None = None,
    name: str = "",
    always_new: bool = False,
) -> tuple[Saved, Note]:
    """Makes a memory of the user's text. `choose` asks the user what to do if another memory may be about the same;
    `always_new` stores the text in any case."""
    note = _make_note(memory, text, info, kind, name)
    return save_note(memory, note, info, lambda near: choose(near, note), always_new=always_new), note


def _make_note(memory: OpenedMemory, text: str, info: WriteInfo, kind: str | None, name: str) -> Note:
    memory.require_on("nothing is remembered")
    refuse_secrets(f"{name}\n{text}")
    today = datetime.now().astimezone().date()
    return make_note(text, today=today, type=MemoryType(kind) if kind else None, name=name, trust=trust_of(info))


def propose_text(
    memory: OpenedMemory, text: str, info: WriteInfo, *, kind: str | None = None, name: str = ""
) -> tuple[Outcome, str, Note]:
    """Makes a memory of a text that is not the user's, as an agent's write: what the user did not say waits in the
    inbox. Returns what became of it, the file that it was meant for, and the note."""
    note = _make_note(memory, text, info, kind, name)
    directory = memory.directory
    directory.finish_pending()
    if equal := _find_equal(note, MemoryTexts(directory.root).texts()):
        return Outcome(None, {}), equal, note
    for free in _names_for(note):
        if directory.exists(free):
            continue
        try:
            return directory.transaction([Change(free, note.topic.text, ABSENT)], info), free, note
        except ChangedUnderneath:
            continue  # somebody else has just taken the name
    raise _too_many(note)


def save_note(
    memory: OpenedMemory,
    note: Note,
    info: WriteInfo,
    choose: Callable[[Related], Choice] = lambda _: "new",
    *,
    always_new: bool = False,
) -> Saved:
    """Saves a note. `choose` is called if another memory may be about the same."""
    directory = memory.directory
    directory.finish_pending()
    texts = MemoryTexts(directory.root).texts()
    warnings = [f"It may not be worth keeping: {note.doubt}. It was saved anyway."] if note.doubt else []
    if not always_new and (equal := _find_equal(note, texts)):
        is_new = _confirm_again(memory, equal, info) if trust_of(info) is Trust.CONFIRMED else False
        return Saved("confirmed" if is_new else "unchanged", equal)
    near = find_related(note.statement, texts)
    can_choose = near is not None and not always_new and not is_team(near.file)
    choice = choose(near) if near is not None and can_choose else "new"
    if near is not None and choice == "nothing":
        return Saved("nothing", near.file)
    if near is not None and choice == "update":
        version = directory.edit(near.file, lambda now: revise(now, near.statement, note), info)
        return Saved("updated" if version else "unchanged", near.file, version, near.statement, tuple(warnings))
    if near is not None and not always_new:
        warnings.append(f"{near.file} may be about the same: “{shorten(near.statement, _SHOWN)}”. Both are kept.")
    warnings += memory.gate.warnings(ProposedWrite(note.file, note.topic.text, None, Writer.USER))
    for name in _names_for(note):
        if directory.exists(name):
            continue
        try:
            return Saved("added", name, directory.create(name, note.topic, info), warnings=tuple(warnings))
        except ChangedUnderneath:
            continue  # somebody else has just taken the name
    raise _too_many(note)


def _find_equal(note: Note, memories: Mapping[str, str]) -> str:
    """The user's own memory with the text of the note, and with its title if the note has one of its own; or empty.
    Files of the team do not count: others can change them."""
    wanted, word = fold_statement(note.topic.body), longest_word(note.topic.body)
    for file, text in memories.items():
        if word not in text:
            continue  # of thousands of files, most need no closer look
        topic = TopicFile.parse(text)
        has_title = not note.is_titled or topic.name == note.topic.name
        if has_title and not is_team(file) and fold_statement(topic.body) == wanted:
            return file
    return ""


def _too_many(note: Note) -> ReverieError:
    return ReverieError(f"There are {_NAMES} memories named like {note.file}; give this memory a name of its own.")


def _names_for(note: Note) -> Iterator[str]:
    """The names that a new file may get, best first."""
    yield note.file
    yield from (f"{note.file.removesuffix('.md')}_{number}.md" for number in range(2, _NAMES))


def _confirm_again(memory: OpenedMemory, file: str, info: WriteInfo) -> bool:
    """Confirms what is only inferred in a memory whose text the user has just typed; False if nothing is."""
    directory = memory.directory
    said = list_statements(file, directory.read(file).text, Marks(directory.root))
    inferred = [one for one in said if one.trust is Trust.INFERRED]
    typed = next((block for block in info.evidence if block.origin is Origin.TYPED), None)
    mark = Mark(Trust.CONFIRMED, "typed", typed.text.strip(), typed.at, info.session) if typed else None
    for one in inferred:
        confirm(directory, one, info, mark)
    return bool(inferred)


@dataclass(frozen=True, slots=True)
class ForgottenFile:
    """A memory that was forgotten. `also_in` are memories that say much the same; `purge` is the command that removes
    its text from the history."""

    version: Version
    also_in: list[str]
    purge: str


def forget_file(memory: OpenedMemory, name: str, info: WriteInfo) -> ForgottenFile:
    """Removes a memory with its index line."""
    text = memory.directory.read(name).text
    version = memory.directory.remove(name, info)
    return ForgottenFile(version, find_other_mentions(memory, text), f"reverie memory purge --forgotten {name}")


@dataclass(frozen=True, slots=True)
class MemoryMatch:
    """A memory that a text may mean."""

    file: str
    description: str
    share: float
    """The share of a perfect match; 1 for its exact name."""


def find_memories(memory: OpenedMemory, text: str, *, limit: int = 5) -> tuple[list[MemoryMatch], bool]:
    """The memories a text may mean, best first, and whether the first one is clearly meant: by name or title, by words,
    by meaning if there is an encoder, or by beginnings of words and names, which languages share."""
    wanted = text.strip().casefold().removesuffix(".md")
    entries = memory.directory.list()
    for entry in entries:
        if wanted and wanted in (entry.name.casefold().removesuffix(".md"), entry.title.casefold()):
            return [MemoryMatch(entry.name, entry.description, 1.0)], True
    from reverie.memory.recall.ranker import Ranker

    places, root = memory.places, memory.directory.root
    name = memory.settings.memory.encoder
    with Ranker.open(root, places.search_index(root), models_dir=places.models, encoder=name) as ranker:
        ranking = ranker.rank(text, limit=limit)
    close = {one.path for one in ranking.shown if one.signals.meaning is not None}
    found = [
        MemoryMatch(one.path, one.description, max(one.signals.words, _CLEAR if one.path in close else 0.0))
        for one in ranking.ranked
        if one.signals.words > _FEWEST or one.path in close
    ]
    if not found:
        found = _by_beginnings(memory, text)
    found = sorted(found, key=lambda one: one.share, reverse=True)[:limit]
    if not found:
        return [], False
    is_clear = found[0].share >= _CLEAR and (len(found) == 1 or found[1].share <= _BEHIND * found[0].share)
    return found, is_clear


def _by_beginnings(memory: OpenedMemory, text: str) -> list[MemoryMatch]:
    """Memories that share names, numbers or beginnings of words with a text, maybe in another language."""
    wanted = _beginnings(text)
    about = {entry.name: entry.description for entry in memory.directory.list()}
    found = list[MemoryMatch]()
    for name, said in MemoryTexts(memory.directory.root).texts().items() if wanted else ():
        share = len(wanted & _beginnings(said)) / len(wanted)
        if share > _FEWEST and name in about:
            found.append(MemoryMatch(name, about[name], share))
    return found


def _beginnings(text: str) -> set[str]:
    return {fold(word)[:_BEGINNING] for word in words(text) if word not in FUNCTION_WORDS}


def find_other_mentions(memory: OpenedMemory, text: str) -> list[str]:
    """Memories that say the same as a statement of this text, which was removed."""
    texts = MemoryTexts(memory.directory.root).texts()
    found = (find_related(one, texts) for one in statements_of(text))
    return list(dict.fromkeys(one.file for one in found if one is not None))
