"""Writing memories for a program: remember, forget, versions, undo. Blocking; `Memory` calls it in its thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice

from reverie.errors import UserError
from reverie.library.recording import read_origin
from reverie.library.results import Forgotten, MemoryVersion, Saved
from reverie.memory.changes import Change, Evidence, Outcome, WriteInfo, Writer
from reverie.memory.evidence import select_near
from reverie.memory.gate.saving import (
    find_memories,
    find_other_mentions,
    forget_file,
    propose_text,
    save_text,
    user_info,
)
from reverie.memory.lookup import absorb, find_file, list_past_files
from reverie.memory.note import Note
from reverie.memory.opening import OpenedMemory
from reverie.memory.taxonomy import MemoryType, Trust
from reverie.memory.topic_file import body_statements
from reverie.storage.history.versions import Version
from reverie.text.folding import visible
from reverie.types import Origin

_WHY = "Asked for by {} ({})."
_PROGRAM = "a program"


def remember(
    memory: OpenedMemory,
    text: str,
    type: str | None,
    title: str,
    origin: str,
    said: Sequence[str | Evidence],
    *,
    notes: bool = False,
    by: str = "",
) -> Saved:
    """Saves a text: as the user's, or as an agent's, by its origin."""
    kind = MemoryType.read(type) if type is not None else None
    if type is not None and kind is None:
        raise UserError(f"{str(type)[:40]!r} is not a type of memory; there are {', '.join(MemoryType)}.")
    whose = read_origin(origin)
    info = user_info(_WHY.format(by or _PROGRAM, "remember"), text, whose)
    name = " ".join(title.split())
    if not whose.is_given:
        evidence = select_near((*_evidence(said), *info.evidence), text)
        return _propose(memory, text, replace(info, writer=Writer.AGENT, evidence=evidence, notes=notes), kind, name)
    saved, note = save_text(memory, text, info, kind=kind, name=name)
    assert saved.action not in ("nothing", "updated"), "nobody was asked"
    return replace(_saved(memory, note, saved.file, saved.version), action=saved.action, warnings=saved.warnings)


def _evidence(said: Sequence[str | Evidence]) -> list[Evidence]:
    at = datetime.now(UTC).isoformat(timespec="seconds")
    found = [one if isinstance(one, Evidence) else Evidence(Origin.ENTERED, _text(one), at=at) for one in said]
    return [one for one in found if one.text.strip()]


def _text(given: object) -> str:
    if not isinstance(given, str):
        raise UserError(f"Give a text in `said`, not {type(given).__name__}.")
    return given


def _propose(memory: OpenedMemory, text: str, info: WriteInfo, kind: MemoryType | None, name: str) -> Saved:
    outcome, file, note = propose_text(memory, text, info, kind=kind, name=name)
    stored = outcome.name_of(file)
    result = replace(
        _saved(memory, note, stored, outcome.version),
        held=outcome.held,
        waiting=_waiting(outcome),
        note=outcome.note,
    )
    if result.trust == Trust.CONFIRMED and _has_note(memory, stored):
        result = replace(result, trust=Trust.INFERRED.value)
    if outcome.version is not None:
        return replace(result, action="added")
    return replace(result, action="held" if result.waiting else "unchanged")


def _has_note(memory: OpenedMemory, file: str) -> bool:
    """Whether anything in a memory is not confirmed: its head, or a statement."""
    topic = memory.directory.read(file).topic
    each = (memory.gate.marks.trust_of(one, topic) for one in body_statements(topic.text))
    return any(trust is not Trust.CONFIRMED for trust in (topic.trust, *each))


def _saved(memory: OpenedMemory, note: Note, file: str, version: Version | None) -> Saved:
    trust = memory.gate.marks.lead_trust(memory.directory.read(file).text) if memory.directory.exists(file) else None
    return Saved(
        action="unchanged",
        name=file,
        type=note.type.value,
        title=note.topic.name,
        trust=trust.value if trust else None,
        undo=version.short if version else "",
    )


def forget(
    memory: OpenedMemory, words: str, origin: str = "entered", said: Sequence[str | Evidence] = (), by: str = ""
) -> Forgotten:
    """Removes the memory that these words clearly mean: for the user, or for an agent, by the origin."""
    memory.require_on("nothing is forgotten")
    found, is_clear = find_memories(memory, words)
    if not found:
        raise UserError(f"No memory matches {words[:60]!r}; nothing was forgotten.")
    if not is_clear:
        raise UserError(
            f"Nothing was forgotten: {words[:60]!r} matches {', '.join(one.file for one in found)}; name one."
        )
    name, why = found[0].file, _WHY.format(by or _PROGRAM, "forget")
    document = memory.directory.read(name)
    body = visible(document.topic.body.strip())
    if read_origin(origin).is_given:
        done = forget_file(memory, name, WriteInfo(Writer.USER, why))
        return Forgotten(name=name, undo=done.version.short, also_in=tuple(done.also_in), text=body)
    info = WriteInfo(Writer.AGENT, why, evidence=select_near(_evidence(said), document.text), notes=True)
    outcome = memory.directory.transaction([Change(name, None)], info)
    return Forgotten(
        name=name,
        undo=outcome.version.short if outcome.version else "",
        also_in=tuple(find_other_mentions(memory, document.text)) if not memory.directory.exists(name) else (),
        text=body,
        waiting=_waiting(outcome),
        note=outcome.note,
    )


def _waiting(outcome: Outcome) -> str:
    return next((one.item for one in outcome.decisions.values() if one.item), "")


def history(memory: OpenedMemory, name: str | None, limit: int) -> list[MemoryVersion]:
    """The newest versions, of one memory or of all."""
    directory = memory.directory
    absorb(directory)
    file = find_file(directory, name, also=list_past_files(directory)) if name is not None else None
    return [describe_version(one) for one in islice(directory.log(file), max(limit, 0))]


def undo(memory: OpenedMemory, version: str | None) -> MemoryVersion | None:
    """Reverses a version."""
    absorb(memory.directory)
    found = memory.directory.history.find(version if version is not None else "latest")
    made = memory.directory.undo(found.id, WriteInfo(Writer.USER, _WHY.format(_PROGRAM, "undo")))
    return describe_version(made) if made is not None else None


def describe_version(version: Version) -> MemoryVersion:
    """A version for programs."""
    info = version.info
    return MemoryVersion(
        id=version.short,
        when=version.when,
        writer=info.writer,
        subject=info.subject,
        why=info.why,
        files={change.name: change.verb for change in version.files},
    )
