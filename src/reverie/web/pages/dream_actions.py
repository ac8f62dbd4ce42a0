"""What a page can do with dreams: accept file by file, reject, undo, start one, stop it. All of it can be undone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reverie.cli.dream.status import kill_running
from reverie.cli.memory.opening import version_json
from reverie.errors import UserError
from reverie.layers.l6_dreaming.landing import accept, reject, undo
from reverie.layers.l6_dreaming.proposal import Proposal, Proposals
from reverie.memory.changes import WriteInfo, Writer
from reverie.web.memories.dream_runs import start_dream
from reverie.web.memories.kept import Kept
from reverie.web.memories.stores import Store, open_to_change
from reverie.web.pages.dreams import find_dream
from reverie.web.pages.memory_actions import noted
from reverie.web.visit import Action, Done, NotFound, Undo, Visit

if TYPE_CHECKING:
    from reverie.memory.opening import OpenedMemory


def _opened(visit: Visit, what: str) -> tuple[Store, OpenedMemory, Proposals]:
    store, memory = open_to_change(visit.site, visit.path["project"], what)
    return store, memory, Proposals(memory.directory.root)


def _waiting(visit: Visit, memory: OpenedMemory) -> Proposal:
    found = find_dream(memory, visit.path["id"])
    if not isinstance(found, Proposal):
        raise NotFound(f"Dream {visit.path['id'][:20]!r} does not wait any more.")
    return found


def _accept(visit: Visit) -> Done:
    store, memory, proposals = _opened(visit, "nothing is accepted")
    proposal = _waiting(visit, memory)
    named = [text for key, text in visit.form.items() if key.startswith("file-")]
    named += filter(None, visit.form.get("files", "").splitlines())
    only = None if visit.form.get("all") else named
    keeps = visit.form.get("rest") == "keep"
    _, landed = accept(memory.directory, proposals, proposal.id, only=only, keep_rest=keeps)
    Kept.of(visit.site).keep_decided(proposal)
    noted(visit, store)
    files = ", ".join(landed.files) or "the index"
    said = f"Accepted: {files}." if landed.version else "Nothing was left to change."
    if landed.left:
        rest = "wait on" if keeps else "were not changed"
        said += f" These {rest}: {', '.join(landed.left)}."
    form = {"id": proposal.id, "version": landed.version.id if landed.version else ""}
    to = f"/dreams/{store.name}/{landed.version.id}" if landed.version else f"/dreams{store.chosen}"
    if keeps and proposals.count():
        to = f"/dreams/{store.name}/{proposal.id}"
    result = {"version": version_json(landed.version), "left": dict(landed.left)}
    return Done(said, to, Undo(f"/dreams/{store.name}/back", form), result)


def _reject(visit: Visit) -> Done:
    store, memory, proposals = _opened(visit, "nothing is rejected")
    proposal = reject(proposals, _waiting(visit, memory).id)
    Kept.of(visit.site).keep_decided(proposal)
    back = Undo(f"/dreams/{store.name}/back", {"id": proposal.id, "version": ""})
    return Done(f"Rejected dream {proposal.id}. Memory did not change.", f"/dreams{store.chosen}", back)


def _back(visit: Visit) -> Done:
    store, memory, proposals = _opened(visit, "nothing is undone")
    proposal = Kept.of(visit.site).decided.get(visit.form.get("id", ""))
    if proposal is None:
        raise UserError("This decision cannot be taken back any more: the web view was started again since.")
    if version := visit.form.get("version"):
        memory.directory.undo(version, WriteInfo(Writer.USER, f"Undid dream {version[:10]}."))
        noted(visit, store)
    proposals.add(proposal)
    return Done(f"Dream {proposal.id} waits for you again.", f"/dreams/{store.name}/{proposal.id}")


def _undo(visit: Visit) -> Done:
    store, memory, _ = _opened(visit, "nothing is undone")
    found = find_dream(memory, visit.path["id"])
    if isinstance(found, Proposal):
        raise UserError("This dream waits for you; it has changed nothing that could be undone.")
    undone, made = undo(memory.directory, found.id)
    noted(visit, store)
    names = ", ".join(change.name for change in made.files) if made else ""
    said = (
        f"Undone: dream {undone.short}. Changed back: {names}." if made else "Memory is already as before this dream."
    )
    again = Undo(f"{store.address}/undo", {"version": made.id, "then": "/dreams"}) if made else None
    return Done(said, f"/dreams/{store.name}/{found.id}", again, {"version": version_json(made)})


def _run(visit: Visit) -> Done:
    store, memory, _ = _opened(visit, "there are no dreams")
    start_dream(visit.site, store, memory, waits=bool(visit.form.get("wait")))
    said = "A dream has begun. Its changes will wait for you." if visit.form.get("wait") else "A dream has begun."
    return Done(said, f"/dreams{store.chosen}")


def _stop(visit: Visit) -> Done:
    store, memory, _ = _opened(visit, "nothing is stopped")
    kill_running(memory)
    return Done("The dream was stopped. Memory did not change.", f"/dreams{store.chosen}")


ACTIONS = (
    Action(
        "/dreams/{project}/{id}/accept",
        "dream_accept",
        _accept,
        "Saves the changes of a dream that waits: all, or the chosen files.",
        {
            "all": "1: every file",
            "files": "the files to accept, one per line (or one field `file-N` per file)",
            "rest": "keep: the other files wait on; otherwise they are dropped",
        },
    ),
    Action("/dreams/{project}/{id}/reject", "dream_reject", _reject, "Drops a dream that waits."),
    Action("/dreams/{project}/{id}/undo", "dream_undo", _undo, "Takes back a dream that changed memory."),
    Action(
        "/dreams/{project}/back",
        "dream_back",
        _back,
        "Takes a decision back: the dream waits again, and what was accepted is undone.",
        {"id": "the dream", "version": "the version that accepting made"},
    ),
    Action(
        "/dreams/{project}/run",
        "dream_run",
        _run,
        "Starts a dream in a process of its own, within the budget of the day.",
        {"wait": "1: its changes wait for a decision"},
    ),
    Action("/dreams/{project}/stop", "dream_stop", _stop, "Stops a dream that runs. Memory does not change."),
)
