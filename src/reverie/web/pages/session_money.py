"""`/sessions/{session}/money`: what each request of a session cost, and why; breaks of the cache; health."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reverie.errors import UserError
from reverie.web.pages.window import describe
from reverie.web.paging import Pager
from reverie.web.visit import Data, NotFound, Page, Visit

if TYPE_CHECKING:
    from reverie.context.request_costs import CostRow
    from reverie.web.readings import SessionReading

SORTS = ("time", "cost", "prompt", "output")


def read(visit: Visit) -> Data:
    from reverie.web.readings import Readings

    info = visit.site.session(visit.path["session"])
    reading = Readings.of(visit.site).session(info.path)
    about: Data = {"session": describe(info), "title": f"Money of {info.title or info.id[:8]}"}
    if isinstance(reading, dict):
        return {**about, "reading": reading}
    return {**about, "reading": None, **_money(visit, reading)}


def _money(visit: Visit, reading: SessionReading) -> Data:
    from reverie.web import money_tables

    costs, ledger = reading.costs, reading.costs.health.ledger
    numbers = {one.uuid: one.number for one in reading.life.requests}

    def describe_row(number: int, row: CostRow) -> Data:
        return money_tables.row_data(costs, row, number, reading.life.requests, numbers.get(row.uuid))

    rows = list(enumerate(costs.rows, 1))
    layer, sort = visit.query.get("layer", ""), visit.query.get("sort", "") or "time"
    chosen = [item for item in rows if not layer or costs.entry(item[1]).purpose == layer]
    ordered = _sorted(reading, chosen, sort)
    pager = Pager(visit)
    picked = _picked(visit, reading, rows)
    main = [item for item in rows if costs.entry(item[1]).purpose == "main"]
    return {
        **reading.once("totals", lambda: money_tables.session_totals(ledger)),
        "requests": len(rows),
        "priced": any(one.priced for one in ledger.entries),
        "columns": reading.once("costs", lambda: money_tables.columns(costs, main)),
        "layer": layer,
        "sort": sort,
        "usual": reading.once("usual", costs.usual),
        "rows": [describe_row(number, row) for number, row in pager.of(ordered)],
        "pages": pager.describe(len(ordered)),
        "selected": None if picked is None else {**describe_row(*picked), **money_tables.detail_data(costs, picked[1])},
        "breaks": reading.once("breaks", lambda: _breaks(reading, rows)),
        "health": reading.once("health", lambda: money_tables.health_data(costs.health)),
    }


def _sorted(reading: SessionReading, rows: list[tuple[int, CostRow]], sort: str) -> list[tuple[int, CostRow]]:
    from reverie.web.money_tables import is_dearer

    entry = reading.costs.entry
    match sort:
        case "time":
            return rows
        case "cost":
            return sorted(rows, key=lambda item: is_dearer(entry(item[1])), reverse=True)
        case "prompt":
            return sorted(rows, key=lambda item: entry(item[1]).usage.prompt, reverse=True)
        case "output":
            return sorted(rows, key=lambda item: entry(item[1]).usage.output_tokens, reverse=True)
        case _:
            raise UserError(f"sort must be one of {', '.join(SORTS)}, not {sort[:40]!r}.")


def _picked(visit: Visit, reading: SessionReading, rows: list[tuple[int, CostRow]]) -> tuple[int, CostRow] | None:
    """The row that the address names: by its own number, or by the number of the request in the window."""
    number, request = visit.number("row", 0), visit.number("request", 0)
    if number:
        if number > len(rows):
            raise NotFound(f"This session has no row {number}; it has {len(rows)}.")
        return rows[number - 1]
    if request:
        uuid = reading.life.requests[request - 1].uuid if request <= len(reading.life.requests) else ""
        return next((item for item in rows if item[1].uuid == uuid), None)
    return None


def _breaks(reading: SessionReading, rows: list[tuple[int, CostRow]]) -> list[Data]:
    """Every break, with the row that paid for it."""
    from reverie.context.ledger import DatedBreak
    from reverie.web.money_tables import break_data

    return [
        break_data(DatedBreak(reading.costs.entry(row).at, broken, reading.path.stem), number)
        for number, row in rows
        for broken in row.breaks
    ]


PAGES = (
    Page(
        "/sessions/{session}/money",
        "session_money",
        "Money",
        read,
        section="sessions",
        about="What each request of a session cost: read, written, fresh, output, dollars, dollars without a cache, "
        "and why. Totals by layer, breaks of the cache with their causes, and what the layers did.",
        query={
            "sort": "`time`, `cost`, `prompt` or `output`",
            "layer": "only requests of this layer, e.g. `main`",
            "row": "details of this row",
            "request": "the same, by the number of the request on the Window page",
            "start": "first row, from 0",
            "size": "rows per page",
        },
    ),
)
