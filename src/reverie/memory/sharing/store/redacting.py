"""A purge at the memory server: every version of the stores of this memory directory that has the text is redacted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reverie.errors import ReverieError
from reverie.memory.opening import OpenedMemory
from reverie.memory.sharing.store.client import StoreClient, StoreRefused, at_store
from reverie.memory.sharing.store.state import StoreState
from reverie.memory.sharing.store.sync import open_client, store_folder
from reverie.memory.upkeep.purge import REMOTE, PurgedPlace, PurgeReport, PurgeTarget
from reverie.memory.upkeep.purge_forms import SecretForms


def purge_stores(wanted: PurgeTarget, memory: OpenedMemory, *, dry_run: bool) -> PurgeReport:
    """Finds the text in all versions and, unless it is a dry run, redacts them. A memory that shows a redacted version
    is removed there; the next sync sends what it says here without the text."""
    states = [StoreState.load(path) for path in sorted(store_folder(memory).glob("*.json"))]
    found, left = list[PurgedPlace](), list[PurgedPlace]()
    try:
        with open_client(memory) as client:
            for state in states:
                for version in _versions(client, state.store) if state.store else ():
                    text = f"{version.get('path') or ''}\n{version.get('content') or ''}"
                    count = SecretForms(wanted.find_in(text)).count(text)
                    if not count:
                        continue
                    place = PurgedPlace(REMOTE, f"{client.address.url} version {version['id']}", count)
                    found.append(place)
                    if not dry_run and not _redact(client, state.store, str(version["id"])):
                        left.append(place)
    except ReverieError as error:
        left.append(PurgedPlace(REMOTE, f"{memory.settings.memory.store} (not searched to the end: {error})", 1))
    return PurgeReport(dry_run, tuple(found), left=() if dry_run else tuple(left))


def _versions(client: StoreClient, store: str) -> Iterator[Mapping[str, Any]]:
    page: dict[str, str | int] = {}
    while True:
        try:
            answer = client.get(at_store(store, "memory_versions"), view="full", limit=20, **page)
        except StoreRefused as error:
            if error.status == 404:  # the store is gone
                return
            raise
        yield from answer["data"]
        if not answer.get("next_page"):
            return
        page = {"page": str(answer["next_page"])}


def _redact(client: StoreClient, store: str, version: str) -> bool:
    try:
        client.post(at_store(store, "memory_versions", version, "redact"), {})
    except StoreRefused:
        return False
    return True
