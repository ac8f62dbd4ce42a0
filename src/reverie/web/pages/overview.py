"""The first page: what waits for the user, what was spent, the last sessions, what is remembered, the last dream."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Final

from reverie.errors import ReverieError
from reverie.layers.l6_dreaming.state import StateFile
from reverie.memory.gate.inbox import MemoryInbox
from reverie.runtime.heartbeat import Heartbeat
from reverie.web.home_tables import HomeTables
from reverie.web.latest import latest_sessions
from reverie.web.memories.dream_log import list_dreams, list_waiting
from reverie.web.memories.shelf import A_MOMENT, refresh_all, shelf_of
from reverie.web.memories.stores import Store, list_stores
from reverie.web.memories.versions import A_LITTLE
from reverie.web.visit import Data, Page, Visit

if TYPE_CHECKING:
    from reverie.web.home_tables import Cell
    from reverie.web.site import Site

_SESSIONS: Final = 8
_STORES: Final = 12


def read(visit: Visit) -> Data:
    site = visit.site
    stores = list_stores(site)
    shelves = [shelf_of(site, store) for store in stores]
    is_complete = refresh_all(shelves, A_MOMENT)
    projects: list[Data] = [
        {
            **store.describe(),
            "memories": shelf.total,
            "inferred": shelf.counts()[2],
            "inbox": _inbox_count(store),
            "link": f"/memory{store.chosen}",
            "changed": next((head.mtime_ns / 1e9 for head in shelf.heads(1)), None),
        }
        for store, shelf in zip(stores, shelves, strict=True)
    ]
    projects.sort(key=lambda one: one["changed"] or 0.0, reverse=True)
    waiting: list[Data] = [
        {
            "project_label": store.label,
            "id": one.id,
            "files": len(one.changes),
            "link": f"/dreams/{store.name}/{one.id}",
        }
        for store, one in list_waiting([store for store in stores if store.project])
    ]
    return {
        "folder": str(site.cwd),
        "waiting": {
            "inbox": sum(one["inbox"] for one in projects),
            "inferred": sum(one["inferred"] for one in projects),
            "dreams": waiting,
            "failures": [*_failed_writers(site), *_failed_dreams(stores)],
        },
        "is_complete": is_complete,
        "memories": sum(one["memories"] for one in projects),
        "projects": projects[:_STORES],
        "more_projects": max(0, len(projects) - _STORES),
        "last_dream": next(iter(list_dreams(site, [one for one in stores if one.project], seconds=A_LITTLE)), None),
        **_money(site),
    }


def _inbox_count(store: Store) -> int:
    try:
        return MemoryInbox(store.root).count()
    except ReverieError:
        return 0


def _failed_writers(site: Site) -> list[Data]:
    """Background writers whose last run failed."""
    from reverie.layers.l3_session_notes.trigger import WRITER as NOTES
    from reverie.layers.l5_extraction.gates import WRITER as EXTRACTION

    found: list[Data] = []
    for name, does in ((EXTRACTION, "Learning from sessions"), (NOTES, "Session notes")):
        beat = Heartbeat(site.places.heartbeat(name)).read()
        if beat.failures:
            found.append({"what": does, "times": beat.failures, "error": beat.error, "when": beat.failed, "link": ""})
    return found


def _failed_dreams(stores: list[Store]) -> list[Data]:
    found: list[Data] = []
    for store in stores:
        state = StateFile(store.root).read()
        if state.failures_in_a_row:
            found.append(
                {
                    "what": f"Dreams of {store.label}",
                    "times": state.failures_in_a_row,
                    "error": state.reason,
                    "when": state.last_attempt,
                    "link": f"/dreams{store.chosen}",
                }
            )
    return found


def _money(site: Site) -> Data:
    """What was spent today and this week, and the last sessions with their cost; null while the sessions are read."""
    costs = HomeTables.of(site).costs()
    sessions = latest_sessions(site, _SESSIONS)
    if isinstance(costs, dict):
        return {"money": None, "sessions": [{**one, "cost_usd": None} for one in sessions]}
    today = date.today()
    week = (today - timedelta(days=6)).isoformat()

    def since(day: str) -> float:
        def keep(cell: Cell) -> bool:
            return day <= cell.day < "u"  # undated sorts last

        return costs.total(keep).cost

    spent = {id: sums.cost for id, sums in costs.sessions.items()}
    dearest = max(spent, key=lambda id: spent[id], default=None)
    return {
        "money": {
            "today": since(today.isoformat()),
            "week": since(week),
            "dearest_session": dearest,
            "dearest_cost": spent[dearest] if dearest else None,
        },
        "sessions": [{**one, "cost_usd": spent.get(one["id"])} for one in sessions],
    }


PAGES = (
    Page(
        "/",
        "overview",
        "Reverie",
        read,
        section="overview",
        about="What waits for the user, money of today and of seven days, the last sessions, memories per project, the "
        "last dream.",
    ),
)
