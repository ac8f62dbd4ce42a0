"""What waits for the user, for a program: held statements, inferred ones and proposed dreams, and what yes and no do.
Blocking; `Memory` calls it in its thread."""

from __future__ import annotations

from reverie.errors import UserError
from reverie.layers.l6_dreaming import landing
from reverie.layers.l6_dreaming.proposal import Proposals
from reverie.library.results import Decided, Dreamt, Saved, Waiting
from reverie.memory.changes import WriteInfo, Writer
from reverie.memory.gate.inbox import Item
from reverie.memory.gate.review import MarkedStatement, all_statements, confirm, list_inferred, reject
from reverie.memory.lookup import find_file
from reverie.memory.opening import OpenedMemory
from reverie.memory.taxonomy import Trust
from reverie.storage.history.versions import Version


def list_waiting(memory: OpenedMemory, *, inferred: bool) -> list[Waiting]:
    """Everything that waits, oldest first; with `inferred` also statements that nobody confirmed."""
    held = [_held(item) for item in memory.inbox.list()]
    dreams = [
        Waiting(id=one.id, kind="dream", names=tuple(one.files), why=f"a dream would change {len(one.files)} files")
        for one in Proposals(memory.directory.root).list()
    ]
    return held + dreams + ([_inferred(one) for one in list_inferred(memory.directory)] if inferred else [])


def _held(item: Item) -> Waiting:
    return Waiting(
        id=item.id,
        kind="held",
        names=(item.file,),
        statements=item.statements,
        removes=item.removes,
        other_lines=item.other_lines(),
        question=item.question,
        why=item.reason,
    )


def _inferred(one: MarkedStatement) -> Waiting:
    return Waiting(id=one.id, kind="inferred", names=(one.file,), statements=(one.text,), why=one.evidence("the user"))


def decide(memory: OpenedMemory, item: Waiting | Saved | Dreamt | str, *, yes: bool) -> Decided:
    """Carries out a decision of the user."""
    memory.require_on("nothing is decided")
    spec = item if isinstance(item, str) else item.id if isinstance(item, Waiting) else item.waiting
    if isinstance(item, Saved) and not spec:
        spec = item.name
    wanted = spec.strip().lower()
    if not wanted:
        raise UserError("There is nothing to decide: give an id of the inbox, or the name of a memory.")
    waiting = [one for one in list_waiting(memory, inferred=False) if one.id.startswith(wanted)]
    statements = [one for one in all_statements(memory.directory) if one.id.startswith(wanted)]
    if len(waiting) + len(statements) > 1:
        raise UserError(f"{spec[:20]!r} begins {len(waiting) + len(statements)} items; give more of the id.")
    if waiting:
        return _decide_waiting(memory, waiting[0], yes)
    return _decide_statements(memory, statements or _inferred_in(memory, spec), wanted, yes)


def _inferred_in(memory: OpenedMemory, name: str) -> list[MarkedStatement]:
    file = find_file(memory.directory, name)
    return [one for one in all_statements(memory.directory) if one.file == file and one.trust is not Trust.CONFIRMED]


def _decide_waiting(memory: OpenedMemory, one: Waiting, yes: bool) -> Decided:
    version: Version | None = None
    if one.kind == "dream":
        proposals = Proposals(memory.directory.root)
        if yes:
            version = landing.accept(memory.directory, proposals, one.id)[1].version
        else:
            landing.reject(proposals, one.id)
    elif yes:
        version = memory.inbox.accept(one.id, memory.directory)
    elif (item := memory.inbox.show(one.id)).other:  # two versions: the one of this machine is removed
        version = memory.inbox.choose(item, memory.directory, own=False)
    else:
        memory.inbox.reject(one.id)
    return Decided(id=one.id, confirmed=yes, names=one.names, undo=version.short if version else "")


def _decide_statements(memory: OpenedMemory, found: list[MarkedStatement], id: str, yes: bool) -> Decided:
    info = WriteInfo(Writer.USER, f"Asked for by a program ({'confirm' if yes else 'reject'}).")
    versions = [(confirm if yes else reject)(memory.directory, one, info) for one in found]
    last = next((version for version in reversed(versions) if version is not None), None)
    names = tuple(dict.fromkeys(one.file for one in found))
    return Decided(
        id=found[0].id if len(found) == 1 else id, confirmed=yes, names=names, undo=last.short if last else ""
    )
