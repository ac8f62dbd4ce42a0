"""What a page can do with a memory: confirm, doubt or remove a statement, edit, forget, restore, undo a version.

Everything goes through the write gate, as the commands do, and everything can be undone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reverie.cli.memory.change import save_edit
from reverie.cli.memory.decisions import decide_statement
from reverie.cli.memory.opening import version_json
from reverie.errors import ReverieError, UserError
from reverie.memory.changes import ChangedUnderneath, ProposedWrite, WriteInfo, Writer
from reverie.memory.lookup import absorb
from reverie.text.cutting import shorten
from reverie.web.memories.kept import Kept
from reverie.web.memories.one import check_file
from reverie.web.memories.shelf import AFTER_A_CHANGE, shelf_of
from reverie.web.memories.stores import Store, open_to_change
from reverie.web.pages.memory import address
from reverie.web.visit import Action, Data, Done, TryAgain, Undo, Visit

if TYPE_CHECKING:
    from reverie.memory.opening import OpenedMemory
    from reverie.storage.history.versions import Version

_FEW: Final = 5_000
"""Up to so many memories, the others are searched for the same statements."""
_WORDS: Final = 80


def opened(visit: Visit, what: str) -> tuple[Store, OpenedMemory, str]:
    """The memory that the form is about, ready to be changed. `what` says what is not done if it cannot be."""
    store, memory = open_to_change(visit.site, visit.path["project"], what)
    return store, memory, check_file(memory, visit.form.get("file", ""))


def undo_of(store: Store, version: Version | None, file: str = "") -> Undo | None:
    """Takes a version back."""
    if version is None:
        return None
    return Undo(f"{store.address}/undo", {"version": version.id, "file": file})


def noted(visit: Visit, store: Store) -> None:
    """Lets the lists follow a change, so that the next page shows it."""
    shelf_of(visit.site, store).refresh(AFTER_A_CHANGE, force=True)


def after(store: Store, file: str = "") -> str:
    """Where to go after a change: the page of the file, or the list."""
    return address(store, file) if file else f"/memory{store.chosen}"


def _decide(verb: str, said: str, back: str) -> Action:
    def act(visit: Visit) -> Done:
        store, memory, file = opened(visit, "nothing is changed")
        decided = decide_statement(memory, visit.form.get("id", ""), verb, file=file)
        noted(visit, store)
        statement = shorten(str(decided.result["statement"]), _WORDS)
        undo = undo_of(store, decided.version, file)
        if back:
            undo = Undo(f"{store.address}/{back}", {"file": file, "id": visit.form.get("id", "")})
        to = visit.form.get("then", "") if visit.form.get("then", "").startswith("/inbox") else ""
        return Done(f"{said}: {statement}", to or after(store, file), undo, decided.result)

    return Action(
        f"/memory/{{project}}/{verb}",
        f"memory_{verb}",
        act,
        {
            "confirm": "Marks a statement as confirmed by the user.",
            "doubt": "Makes a confirmed statement inferred again.",
            "reject": "Removes a statement from its memory; a memory without statements goes too.",
        }[verb],
        {"file": "the memory", "id": "the id of the statement"},
    )


def _edit(visit: Visit) -> Done:
    store, memory, file = opened(visit, "nothing is saved")
    text = visit.form.get("text", "").replace("\r\n", "\n")
    before = memory.directory.read(file)
    if text == before.text:
        return Done("Nothing was changed.", after(store, file))
    info = WriteInfo(Writer.USER, "Edited in the web view.", confirms=True)
    again = address(store, file, "?view=edit&draft=")
    try:
        warnings = memory.gate.warnings(ProposedWrite(file, text, before.text, Writer.USER)) if text.strip() else []
        version = save_edit(memory, file, text, visit.form.get("base", ""), info)
    except ChangedUnderneath:
        said = f"{file} was changed while you edited it, so nothing was saved. Below are the present text and yours."
        raise TryAgain(said, again + Kept.of(visit.site).keep_draft(text)) from None
    except ReverieError as error:
        raise TryAgain(f"Not saved: {error}", again + Kept.of(visit.site).keep_draft(text)) from error
    noted(visit, store)
    did = "Saved" if memory.directory.exists(file) else "Forgot"
    said = " ".join([f"{did} {file}.", *(f"Note: {one}" for one in warnings)])
    result: Data = {"version": version_json(version), "warnings": warnings}
    return Done(said, after(store, file), undo_of(store, version, file), result)


def _forget(visit: Visit) -> Done:
    from reverie.memory.gate.saving import forget_file

    store, memory, file = opened(visit, "nothing is forgotten")
    info = WriteInfo(Writer.USER, "Forgotten in the web view.")
    also = list[str]()
    if shelf_of(visit.site, store).total <= _FEW:
        forgotten = forget_file(memory, file, info)
        version, also = forgotten.version, forgotten.also_in
    else:
        version = memory.directory.remove(file, info)
    noted(visit, store)
    more = f" {', '.join(also[:5])} says much the same." if also else ""
    result: Data = {"version": version_json(version), "also_in": also}
    said = f"Forgot {file}.{more} Its history still has the text: `reverie memory purge --forgotten {file}` removes it."
    return Done(said, after(store), undo_of(store, version, file), result)


def _restore(visit: Visit) -> Done:
    store, memory, file = opened(visit, "nothing is restored")
    absorb(memory.directory)
    info = WriteInfo(Writer.USER, "Restored in the web view.")
    version = memory.directory.restore(file, info, spec=visit.form.get("version") or None)
    noted(visit, store)
    said = f"Restored {file}." if version else f"{file} already has this content."
    return Done(said, after(store, file), undo_of(store, version, file), {"version": version_json(version)})


def _undo(visit: Visit) -> Done:
    store, memory = open_to_change(visit.site, visit.path["project"], "nothing is undone")
    if not visit.form.get("version"):
        raise UserError("Say which version to undo.")
    absorb(memory.directory)
    found = memory.directory.history.find(visit.form["version"])
    made = memory.directory.undo(found.id, WriteInfo(Writer.USER, "Undone in the web view."))
    noted(visit, store)
    names = ", ".join(change.name for change in made.files[:5]) if made else ""
    said = f"Undone: {found.info.subject or found.short}. Changed: {names}." if made else "Nothing was left to undo."
    file = visit.form.get("file", "")
    file = check_file(memory, file) if file else ""
    to = after(store, file if file and memory.directory.exists(file) else "")
    if visit.form.get("then", "").startswith("/dreams"):
        to = f"/dreams{store.chosen}"
    return Done(said, to, undo_of(store, made, file), {"version": version_json(made)})


ACTIONS = (
    _decide("confirm", "Confirmed", "doubt"),
    _decide("doubt", "Inferred again", "confirm"),
    _decide("reject", "Removed", ""),
    Action(
        "/memory/{project}/edit",
        "memory_edit",
        _edit,
        "Saves a new text of a memory. 409 if the file has changed since it was read, or if the gate refuses the text.",
        {"file": "the memory", "text": "the whole file", "base": "`digest` of the text that was edited"},
    ),
    Action(
        "/memory/{project}/forget",
        "memory_forget",
        _forget,
        "Removes a memory and its line in the index.",
        {"file": "the memory"},
    ),
    Action(
        "/memory/{project}/restore",
        "memory_restore",
        _restore,
        "Brings a memory back, as in a version or as before its last change.",
        {"file": "the memory", "version": "the version; empty: before its last change"},
    ),
    Action(
        "/memory/{project}/undo",
        "memory_undo",
        _undo,
        "Reverses one version of a memory directory. Later changes of other lines stay.",
        {"version": "the version"},
    ),
)
