"""`/sessions`: all conversations, with rounds, tokens and cost; sorted, filtered and searched."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import urlencode

from reverie.errors import ReverieError
from reverie.storage.lease import Lease
from reverie.web.paging import Pager
from reverie.web.sessions.reading import COURTESY
from reverie.web.sessions.search import Hits, search_text
from reverie.web.sessions.table import SOURCES, Row, SessionTable, table_of
from reverie.web.visit import Data, Page, Visit

_UNKNOWN = float("-inf")
_MOST_QUERY = 500
_PATIENCE_S = 0.08


def _said(row: Row) -> float:
    return row.figures.said if row.figures is not None else row.file.modified


SORTS: dict[str, tuple[str, Callable[[Row], Any]]] = {
    "cost": ("Cost", lambda row: row.figures.cost if row.figures is not None else _UNKNOWN),
    "time": ("Last message", _said),
    "tokens": ("Tokens", lambda row: row.figures.tokens if row.figures is not None else _UNKNOWN),
    "rounds": ("Rounds", lambda row: row.figures.rounds if row.figures is not None else _UNKNOWN),
    "size": ("Size", lambda row: row.file.size),
}


def read(visit: Visit) -> Data:
    with COURTESY:
        return _read(visit)


def _read(visit: Visit) -> Data:
    site, table = visit.site, table_of(visit.site)
    project = visit.query.get("project", "")
    wanted = " ".join(visit.query.get("q", "").split())[:_MOST_QUERY]
    where = "text" if visit.query.get("in") == "text" else "title"
    source = visit.query.get("source", "")
    sort = visit.query.get("sort", "") if visit.query.get("sort") in SORTS else "time"
    if project:
        site.project(project)  # or there is none
    rows = table.list([project] if project else None)
    state = {"read": sum(row.is_counted for row in rows), "total": len(rows)}
    hits: Hits | None = None
    if wanted and where == "text":
        hits = search_text(site.places.projects, wanted, project)
        rows = [row for row in rows if (row.file.project, row.file.id) in hits.lines]
    elif wanted:
        rows = [row for row in rows if _has_title(row, wanted)]
    if source in SOURCES:
        rows = [row for row in rows if row.figures is not None and row.figures.source == source]
    if visit.query.get("live"):
        rows = [row for row in rows if holder_of(row) is not None]
    rows.sort(key=SORTS[sort][1], reverse=visit.query.get("order") != "up")
    pager = Pager(visit)
    return {
        "project": project,
        "projects": [{"name": one.name, "label": one.label} for one in site.projects()],
        "q": wanted,
        "in": where,
        "source": source,
        "sources": SOURCES,
        "live": bool(visit.query.get("live")),
        "sort": sort,
        "order": "up" if visit.query.get("order") == "up" else "down",
        "sorts": {name: {"label": label, "address": _sorted(visit, name, sort)} for name, (label, _) in SORTS.items()},
        "counted": state,
        "is_all_searched": hits is None or hits.is_all,
        "again": "?" + urlencode({key: value for key, value in visit.query.items() if key != "part"}),
        "sessions": list(_described(table, pager.of(rows), hits, wanted)),
        "pages": pager.describe(len(rows)),
    }


def _described(table: SessionTable, rows: Sequence[Row], hits: Hits | None, wanted: str) -> Iterator[Data]:
    """The rows of one page. Titles that would take too long are left to the worker."""
    until = time.monotonic() + _PATIENCE_S
    for row in rows:
        if time.monotonic() <= until:
            table.describe(row)
        if row.info is not None or not row.is_described:  # else it has no conversation, e.g. the costs of a dream
            yield _describe(row, hits, wanted)


def _has_title(row: Row, wanted: str) -> bool:
    title = row.info.title if row.info is not None else ""
    return wanted.casefold() in title.casefold() or row.file.id.startswith(wanted)


def _sorted(visit: Visit, name: str, now: str) -> str:
    turned = "up" if name == now and visit.query.get("order") != "up" else "down"
    kept = {key: value for key, value in visit.query.items() if key not in ("start", "part", "sort", "order")}
    return "?" + urlencode({**kept, "sort": name, "order": turned})


def holder_of(row: Row) -> int | None:
    """The PID of the process that has the session open; 0 if it is not known, None if there is none."""
    try:
        holder = Lease.holder(row.file.path.with_suffix("") / Lease.NAME)
    except ReverieError:
        return None
    return None if holder is None else int(holder.get("pid") or 0)


def _describe(row: Row, hits: Hits | None, wanted: str) -> Data:
    info, figures = row.info, row.figures
    address = f"/sessions/{row.file.id}"
    return {
        "id": row.file.id,
        "project": row.file.project,
        "title": info.title if info is not None else None,
        "folder": info.cwd if info is not None else "",
        "branch": info.git_branch if info is not None else "",
        "said": info.said if info is not None else _said(row),
        "size": row.file.size,
        "open_in": holder_of(row),
        "address": f"{address}?{urlencode({'q': wanted})}" if hits is not None else address,
        "hits": hits.lines.get((row.file.project, row.file.id), 0) if hits is not None else None,
        "rounds": figures.rounds if figures is not None else None,
        "tokens": figures.tokens if figures is not None else None,
        "cost_usd": round(figures.cost, 6) if figures is not None else None,
        "has_price": figures is None or figures.unpriced < max(1, figures.requests),
        "source": figures.source if figures is not None else "",
    }


PAGES = (
    Page(
        "/sessions",
        "sessions",
        "Sessions",
        read,
        section="sessions",
        about="All conversations, the newest first. `counted` says how many are read; figures of others are null.",
        query={
            "project": "only of this project",
            "q": "only with these words",
            "in": "`title` (default) or `text`: the whole conversation, with its agents and results",
            "source": "`reverie`, `claude-code`, `codex` or `pi`",
            "live": "1: only those that are open in a process",
            "sort": "`time` (default), `cost`, `tokens`, `rounds` or `size`",
            "order": "`down` (default) or `up`",
            "start": "the first one, from 0",
            "size": "how many",
        },
    ),
)
