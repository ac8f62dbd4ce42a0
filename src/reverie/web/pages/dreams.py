"""Dreams: what waits for a decision, what they did and cost, why the next has not begun, and the review of one."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from reverie.cli.dream.display import Trail
from reverie.cli.dream.status import read_status_from_disk, why_not_now
from reverie.errors import ReverieError, UserError
from reverie.layers.l6_dreaming.landing import changes_of, is_dream
from reverie.layers.l6_dreaming.lock import ConsolidationLock
from reverie.layers.l6_dreaming.proposal import Proposal, Proposals, ProposedChange
from reverie.memory.taxonomy import is_index
from reverie.storage.history.versions import Version
from reverie.web.memories.dream_log import list_dreams, list_waiting
from reverie.web.memories.dream_runs import describe_run
from reverie.web.memories.one import SessionLinks
from reverie.web.memories.stores import Store, chosen_stores, find_store, list_stores, open_store
from reverie.web.memories.versions import A_LITTLE, LONGEST, book_of, preview_undo
from reverie.web.paging import Pager
from reverie.web.site import is_folder
from reverie.web.visit import Data, NotFound, Page, Visit

if TYPE_CHECKING:
    from reverie.memory.opening import OpenedMemory

_LINES: Final = 2_000
"""Lines of one diff that are shown at first."""


def read(visit: Visit) -> Data:
    """Dreams of all projects, or of one with its status."""
    everything = [store for store in list_stores(visit.site) if store.project]
    stores = [store for store in chosen_stores(visit) if store.project]
    one = stores[0] if len(stores) == 1 else None
    log = list_dreams(visit.site, stores, seconds=LONGEST if one is not None else A_LITTLE)
    pager = Pager(visit, size=20)
    return {
        "asked": visit.query.get("project", ""),
        "projects": [store.describe() for store in everything],
        "waiting": [_waiting_data(store, proposal) for store, proposal in list_waiting(stores)],
        "status": _status(visit, one) if one is not None else None,
        "overview": [] if one is not None else [_facts(store) for store in stores],
        "dreams": list(pager.of(log)),
        "pages": pager.describe(len(log)),
    }


def _waiting_data(store: Store, proposal: Proposal) -> Data:
    return {
        "project": store.name,
        "project_label": store.label,
        "id": proposal.id,
        "created": proposal.created,
        "files": list(proposal.files),
        "changes": len(proposal.changes),
        "lost": len(proposal.lost),
        "link": f"/dreams/{store.name}/{proposal.id}",
    }


def _facts(store: Store) -> Data:
    try:
        last = ConsolidationLock(store.root).state(time.time()).last_success
        waiting = Proposals(store.root).count()
    except ReverieError:
        last, waiting = None, 0
    return {"project": store.name, "label": store.label, "last_success": last, "waiting": waiting}


def _status(visit: Visit, store: Store) -> Data:
    memory = open_store(visit.site, store)
    found = read_status_from_disk(memory)
    why_not = why_not_now(memory) or ("" if is_folder(store.folder) else f"the folder {store.folder} is not here")
    return {
        **found.to_json(),
        "project": store.name,
        "label": store.label,
        "last_success_at": found.lock.last_success,
        "last_attempt_at": found.state.last_attempt,
        "why_not_now": why_not,
        "run": describe_run(visit.site, store, memory, is_held=found.lock.held),
        "hours": memory.settings.dream.hours,
        "transcripts": memory.settings.dream.transcripts,
    }


def find_dream(memory: OpenedMemory, id: str) -> Proposal | Version:
    """A dream that waits, or a version that a dream made; `NotFound` if there is none."""
    if 4 <= len(id) <= 64:
        waiting = [one for one in Proposals(memory.directory.root).list() if one.id.startswith(id.lower())]
        if len(waiting) == 1:
            return waiting[0]
        try:
            version = memory.directory.history.find(id)
        except UserError:
            version = None
        if version is not None and is_dream(version):
            return version
    raise NotFound(f"There is no dream {id[:40]!r} in this project; it was decided, or its version is gone.")


def read_one(visit: Visit) -> Data:
    """One dream, file by file with a reason and a diff each; for a dream that landed also what an undo would bring."""
    store = find_store(visit.site, visit.path["project"])
    memory = open_store(visit.site, store)
    found = find_dream(memory, visit.path["id"])
    whole = bool(visit.query.get("whole"))
    can_change = store.is_changeable and memory.switch.on and not visit.site.read_only
    data: Data = {
        "project": store.describe(),
        "can_change": can_change,
        "address": f"/dreams/{store.name}/{visit.path['id']}",
    }
    if isinstance(found, Proposal):
        return data | {
            "state": "waiting",
            "id": found.id,
            "when": found.created,
            "session": found.session,
            "session_link": SessionLinks(visit.site).link(found.session, ""),
            "answer": found.answer,
            "statements": found.statements,
            "lost": list(found.lost),
            "kept": list(found.kept),
            "changes": _changes(found.changes, whole=whole),
            "undo": None,
        }
    directory = memory.directory
    back, _ = book_of(visit.site, directory).read(directory, lambda one: one.info.reverses == found.id, 1)
    changes, conflict = preview_undo(directory, found) if not back else ([], "")
    return data | {
        "state": "undone" if back else "landed",
        "id": found.id,
        "when": found.when.timestamp(),
        "session": found.info.session,
        "session_link": SessionLinks(visit.site).link(found.info.session, ""),
        "answer": "",
        "statements": 0,
        "lost": [],
        "kept": [],
        "changes": _changes(list(changes_of(directory, found)), whole=whole),
        "undo": {
            "changes": _changes(changes, whole=whole),
            "conflict": conflict,
            "was": back[0].short if back else None,
        },
    }


def _changes(changes: Sequence[ProposedChange], *, whole: bool) -> list[Data]:
    trail = Trail(changes)
    ordered: Iterable[ProposedChange] = sorted(changes, key=lambda one: is_index(one.name))
    found: list[Data] = []
    for change in ordered:
        lines = change.diff().splitlines()[2:]
        shown = lines if whole else lines[:_LINES]
        index = is_index(change.name)
        found.append(
            {
                "file": change.name,
                "change": change.verb,
                "reason": change.reason,
                "is_index": index,
                "lines": [
                    {"text": line, "moved": "" if index else trail.describe(line, change.name)} for line in shown
                ],
                "more": len(lines) - len(shown),
            }
        )
    return found


PAGES = (
    Page(
        "/dreams",
        "dreams",
        "Dreams",
        read,
        "dreams",
        "Dreams that wait, all dreams with their cost, and for one project the status.",
        {"project": "only this project", "start": "the first dream, from 0"},
    ),
    Page(
        "/dreams/{project}/{id}",
        "dream",
        "Dream",
        read_one,
        "dreams",
        "What a dream would change or has changed, and what an undo would bring back.",
        {"whole": "1: all lines of very long diffs"},
    ),
)
