"""The dreams of all projects, for a list: when, with which result, which files, what it cost. Reads only.

The background log knows every dream of the last time; the history of a memory directory also knows older ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from reverie.cli.dream.display import ENDS
from reverie.cli.dream.status import is_about
from reverie.errors import StorageError
from reverie.layers.l6_dreaming.landing import is_dream
from reverie.layers.l6_dreaming.proposal import Proposal, Proposals
from reverie.layers.l6_dreaming.state import FOLDER
from reverie.memory.taxonomy import is_index
from reverie.runtime.background_log import BackgroundLog, LogEntry
from reverie.storage.history.versions import Version
from reverie.web.memories.stores import Store, open_store
from reverie.web.memories.versions import book_of
from reverie.web.site import Site
from reverie.web.visit import Data

_MOST: Final = 200
"""Dreams of one memory directory that are looked up in its history."""


def list_waiting(stores: Sequence[Store]) -> list[tuple[Store, Proposal]]:
    """Dreams that wait for the user, oldest first."""
    found = [(store, proposal) for store in stores for proposal in Proposals(store.root).list()]
    return sorted(found, key=lambda one: one[1].created)


def list_dreams(site: Site, stores: Sequence[Store], *, seconds: float) -> list[Data]:
    """Every dream that is known, newest first. For so many seconds per memory directory it also looks in the history:
    for dreams that the log has forgotten or that were accepted later, and for those that were undone."""
    entries: list[LogEntry] = []
    with suppress(StorageError):
        entries = [one for one in BackgroundLog(site.places.background_log).read(kind="dream_") if one.kind in ENDS]
    waiting = {proposal.id for _, proposal in list_waiting(stores)}
    found: list[Data] = []
    for store in stores:
        own = [entry for entry in entries if is_about(entry, site.places, store.root)]
        found += [_of_run(store, entry, waiting) for entry in own]
        if (store.root / FOLDER).is_dir():
            _add_history(site, store, found, seconds)
    return sorted(found, key=lambda one: one["when"], reverse=True)


def _of_run(store: Store, entry: LogEntry, waiting: set[str]) -> Data:
    given = entry.fields
    outcome = str(given.get("outcome") or entry.kind.removeprefix("dream_"))
    id, version = str(given.get("id") or ""), str(given.get("version") or "")
    is_waiting = outcome == "proposed" and id in waiting
    link = version or (id if is_waiting else "")
    return {
        "project": store.name,
        "project_label": store.label,
        "when": entry.time.timestamp(),
        "outcome": outcome,
        "is_waiting": is_waiting,
        "undone": False,
        "files": [str(name) for name in given.get("files") or ()],
        "way": str(given.get("way") or ""),
        "rounds": int(given.get("rounds") or 0),
        "hit_rate": float(given.get("hit_rate") or 0.0),
        "cost_usd": float(given.get("cost_usd") or 0.0),
        "error": str(given.get("error") or ""),
        "denied": len(given.get("denied") or ()),
        "held": int(given.get("held") or 0),
        "version": version,
        "link": f"/dreams/{store.name}/{link}" if link else "",
    }


def _add_history(site: Site, store: Store, found: list[Data], seconds: float) -> None:
    directory = open_store(site, store).directory
    if directory.history.head() is None:
        return
    book = book_of(site, directory)
    versions, _ = book.read(directory, lambda one: is_dream(one) or bool(one.info.reverses), _MOST, seconds=seconds)
    undone = {version.info.reverses for version in versions if version.info.reverses}
    by_version = {one["version"]: one for one in found if one["version"]}
    for version in versions:
        if not is_dream(version):
            continue
        if (known := by_version.get(version.id)) is None:
            found.append(known := _of_version(store, version))
        known["undone"] = version.id in undone


def _of_version(store: Store, version: Version) -> Data:
    return {
        "project": store.name,
        "project_label": store.label,
        "when": version.when.timestamp(),
        "outcome": "accepted" if version.info.why.startswith("Accepted") else "landed",
        "is_waiting": False,
        "undone": False,
        "files": [change.name for change in version.files if not is_index(change.name)],
        "way": "",
        "rounds": 0,
        "hit_rate": 0.0,
        "cost_usd": None,
        "error": "",
        "denied": 0,
        "held": 0,
        "version": version.id,
        "link": f"/dreams/{store.name}/{version.id}",
    }
