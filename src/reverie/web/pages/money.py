"""`/money`: what all sessions cost together, by layer, day, project, model and session; `/money/health`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from typing import TYPE_CHECKING

from reverie.web.paging import Pager
from reverie.web.visit import Data, Page, Visit

if TYPE_CHECKING:
    from reverie.context.ledger import Totals
    from reverie.web.home_tables import Cell, HomeCosts

_DAYS_SHOWN = 14
_MOST_BREAKS = 20


def read(visit: Visit) -> Data:
    from reverie.web.home_tables import HomeTables

    project = _project(visit)
    frame: Data = {"project": project, "days": visit.number("days", 0, most=10_000), "projects": _names(visit)}
    costs = HomeTables.of(visit.site).costs()
    if isinstance(costs, dict):
        return {**frame, "reading": costs}
    return {**frame, "reading": None, **_money(visit, costs, project)}


def _project(visit: Visit) -> str:
    name = visit.query.get("project", "")
    return visit.site.project(name).name if name else ""


def _names(visit: Visit) -> list[Data]:
    return [{"name": one.name, "label": one.label} for one in visit.site.projects()]


def _money(visit: Visit, costs: HomeCosts, project: str) -> Data:
    from reverie.context.ledger import UNDATED
    from reverie.web import money_tables
    from reverie.web.home_tables import day_of

    days = visit.number("days", 0, most=10_000)
    since = date.today() - timedelta(days=days - 1) if days else date.min
    first = since.isoformat() if days else ""

    def in_time(day: str) -> bool:
        return not first or first <= day < UNDATED

    def keep(cell: Cell) -> bool:
        return (not project or cell.project == project) and in_time(cell.day)

    breaks = [
        one
        for one in costs.breaks
        if (not project or costs.projects.get(one.session) == project) and in_time(day_of(one.at))
    ]
    spared = Counter[str]()
    for (name, day, layer), tokens in costs.spared.items():
        if (not project or name == project) and in_time(day):
            spared[layer] += tokens
    by_day = costs.by("day", keep)
    every_day = sorted(by_day.items(), reverse=True)
    shown_days = every_day if visit.query.get("all") == "days" else every_day[:_DAYS_SHOWN]
    worst = sorted(breaks, key=lambda one: (one.broken.cost, one.broken.lost_tokens), reverse=True)[:_MOST_BREAKS]
    whole = costs.total(keep)
    return {
        "total": whole.to_json(),
        "priced": whole.unpriced < whole.requests,
        "layers": money_tables.parts_data(costs.by("layer", keep)),
        "models": money_tables.parts_data(costs.by("model", keep)),
        "by_project": _by_project(visit, costs.by("project", keep)),
        "by_day": [{"name": day, **sums.to_json()} for day, sums in shown_days],
        "days_total": len(every_day),
        "chart": _chart(costs, keep),
        "sessions": _sessions(visit, costs, project),
        "causes": money_tables.causes(breaks),
        "worst_breaks": [money_tables.break_data(one) for one in worst],
        "spared_tokens": dict(spared),
        "budget": _budget(visit),
        "service": _service(visit, costs, since),
    }


def _by_project(visit: Visit, parts: dict[str, Totals]) -> list[Data]:
    from reverie.web import money_tables

    labels = {one.name: one.label for one in visit.site.projects()}
    return [
        {**one, "label": labels.get(one["name"], one["name"]), "link": _link(project=one["name"])}
        for one in money_tables.parts_data(parts)
    ]


def _link(**query: str) -> str:
    from urllib.parse import urlencode

    return "/money?" + urlencode(query, errors="replace")


def _chart(costs: HomeCosts, keep: Callable[[Cell], bool]) -> list[Data]:
    """One column per day with requests, by layer, in millionths of a dollar (or tokens where nothing has a price)."""
    from reverie.web.window_map import COLUMNS

    sums = dict[str, Counter[str]]()
    is_priced = any(one.cost for one in costs.cells.values())
    for cell, one in costs.cells.items():
        if keep(cell):
            amount = round(one.cost * 1_000_000) if is_priced else round(one.equivalents)
            sums.setdefault(cell.day, Counter())["conversation" if cell.layer == "main" else cell.layer] += amount
    last = sorted(sums.items())[-COLUMNS:]
    return [{"day": day, "tokens": sum(parts.values()), "sources": dict(parts)} for day, parts in last]


def _sessions(visit: Visit, costs: HomeCosts, project: str) -> Data:
    """The most expensive sessions, over their whole life."""
    names = [name for name in costs.sessions if not project or costs.projects.get(name) == project]
    names.sort(key=lambda name: (costs.sessions[name].cost, costs.sessions[name].equivalents), reverse=True)
    pager = Pager(visit, size=10)
    return {
        "rows": [
            {**_title(visit, costs.projects[name], name), **costs.sessions[name].totals().to_json()}
            for name in pager.of(names)
        ],
        "pages": pager.describe(len(names)),
    }


def _title(visit: Visit, project: str, session: str) -> Data:
    """A session without a conversation (a dream of its own) has no page."""
    from reverie.storage.transcript.sessions import describe

    info = describe(visit.site.places.projects / project / f"{session}.jsonl")
    link = f"/sessions/{session}/money?sort=cost" if info is not None else None
    return {"name": session, "label": f"{session[:8]} {info.title if info is not None else ''}".strip(), "link": link}


def _budget(visit: Visit) -> Data:
    from reverie.cli.sessions.health import budget_left

    return budget_left(visit.site.settings, visit.site.places)


def _service(visit: Visit, costs: HomeCosts, since: date) -> Data:
    """What learning beside all sessions has cost: it is in the day books only."""
    from reverie.context.day_book import DayBook

    known = costs.projects.keys()
    spent = DayBook(visit.site.places.day_books).beside(known, since=since)
    return {"tokens": round(spent.tokens), "cost_usd": round(spent.dollars, 6)}


def read_health(visit: Visit) -> Data:
    from reverie.web.home_tables import HomeTables

    project = _project(visit)
    found = HomeTables.of(visit.site).health(project)
    return {"project": project, "projects": _names(visit), "budget": _budget(visit), **found}


PAGES = (
    Page(
        "/money",
        "money",
        "Money",
        read,
        section="money",
        about="What all sessions cost: totals by layer, day, project and model, the most expensive sessions, breaks of "
        "the cache by cause, background work and its budget. While transcripts are still being read, only `reading`.",
        query={
            "project": "only this project",
            "days": "only the last so many days",
            "all": "`days`: every day, not only the last two weeks",
            "start": "first session of the list, from 0",
            "size": "sessions per page",
        },
    ),
    Page(
        "/money/health",
        "health",
        "Health",
        read_health,
        section="money",
        about="How often each layer fired, declined and failed in all sessions, and why.",
        query={"project": "only this project"},
    ),
)
