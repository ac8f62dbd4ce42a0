"""The data of the money pages: rows of requests, breaks, totals and health, as JSON can hold them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from reverie.context.health import LAYERS, Health
from reverie.context.ledger import DatedBreak, Ledger, LedgerEntry, Totals
from reverie.context.request_costs import CostRow, RequestCosts
from reverie.context.window_fill import Share
from reverie.context.window_life import WindowAt
from reverie.quick import dataclass
from reverie.types import Purpose, Usage
from reverie.web.visit import Data
from reverie.web.window_map import COLUMNS

PARTS = {
    "read": "read from the cache",
    "written": "written to the cache",
    "fresh": "fresh input",
    "output": "output",
}
"""The classes of tokens that have prices of their own, in display order."""


@dataclass(slots=True)
class Sums:
    """A sum of requests that can go on; `totals` is the same as the ledger's."""

    requests: int = 0
    counts: list[int] = field(default_factory=lambda: [0] * 6)
    cost: float = 0.0
    uncached: float = 0.0
    equivalents: float = 0.0
    unpriced: int = 0

    def add(self, one: LedgerEntry, sign: int = 1) -> None:
        used = one.usage
        self.requests += sign
        amounts = (
            used.input_tokens,
            used.output_tokens,
            used.cache_read_input_tokens,
            used.cache_creation_input_tokens,
        )
        for place, amount in enumerate((*amounts, used.cache_creation_5m, used.cache_creation_1h)):
            self.counts[place] += sign * amount
        self.cost += sign * one.cost
        self.uncached += sign * one.uncached
        self.equivalents += sign * one.equivalents
        self.unpriced += sign * (not one.priced)

    def plus(self, other: Sums) -> None:
        self.requests += other.requests
        self.counts = [a + b for a, b in zip(self.counts, other.counts, strict=True)]
        self.cost += other.cost
        self.uncached += other.uncached
        self.equivalents += other.equivalents
        self.unpriced += other.unpriced

    def totals(self) -> Totals:
        return Totals(self.requests, Usage(*self.counts), self.cost, self.uncached, self.equivalents, self.unpriced)


def row_data(costs: RequestCosts, row: CostRow, number: int, windows: Sequence[WindowAt], at: int | None) -> Data:
    """One request of a session, with the reason of its cost. `at`: its number in the life of the window."""
    one, window = costs.entry(row), windows[at - 1] if at is not None else None
    used = one.usage
    return {
        "row": number,
        "request": window.number if window is not None else None,
        "at": one.at.isoformat() if one.at is not None else None,
        "layer": one.purpose,
        "thread": one.thread,
        "model": one.model,
        "read": used.cache_read_input_tokens,
        "written": used.cache_creation_input_tokens,
        "fresh": used.input_tokens,
        "output": used.output_tokens,
        "prompt": used.prompt,
        "cost": one.cost if one.priced else None,
        "uncached": one.uncached if one.priced else None,
        "breaks": len(row.breaks),
        "why": costs.explain(row, _grown(window, windows)),
    }


def _grown(window: WindowAt | None, windows: Sequence[WindowAt]) -> Share | None:
    """The source that grew most since the request before."""
    if window is None or window.number < 2:
        return None
    had = {(share.source, share.tool): share.tokens for share in windows[window.number - 2].shares}
    grown = [
        Share(share.source, share.tokens - had.get((share.source, share.tool), 0), share.blocks, share.tool)
        for share in window.shares
    ]
    return max(grown, key=lambda share: share.tokens, default=None)


def detail_data(costs: RequestCosts, row: CostRow) -> Data:
    """What one request was paid for, and its breaks."""
    one = costs.entry(row)
    return {
        "parts": [
            {"part": amount.name, "label": PARTS[amount.name], "tokens": amount.tokens, "cost": amount.cost}
            for amount in costs.amounts(one)
        ],
        "times_usual": one.cost / usual if (usual := costs.usual()) else None,
        "breaks": [
            {
                "cause": broken.cause,
                "detail": broken.detail,
                "path": broken.path,
                "expected": broken.expected,
                "read": broken.read,
                "lost_tokens": broken.lost_tokens,
                "cost": broken.cost,
                "announcement": broken.announcement,
            }
            for broken in row.breaks
        ],
    }


def columns(costs: RequestCosts, rows: Sequence[tuple[int, CostRow]]) -> list[Data]:
    """The chart: the cost of requests in time order, by class of token; several requests share a column if need be.

    Models without a price are drawn by tokens.
    """
    size = max(1, -(-len(rows) // COLUMNS))
    found = list[Data]()
    for start in range(0, len(rows), size):
        group = rows[start : start + size]
        parts = Counter[str]()
        for _, row in group:
            one = costs.entry(row)
            for amount in costs.amounts(one):
                parts[amount.name] += round(amount.cost * 1_000_000) if one.priced else amount.tokens
        dearest = max(group, key=lambda item: costs.entry(item[1]).cost)[0]
        sums = {"first": group[0][0], "last": group[-1][0], "row": dearest}
        found.append({**sums, "tokens": sum(parts.values()), "sources": dict(parts)})
    return found


def break_data(one: DatedBreak, number: int | None = None) -> Data:
    broken = one.broken
    return {
        "row": number,
        "session": one.session,
        "at": one.at.isoformat() if one.at is not None else None,
        "cause": broken.cause,
        "detail": broken.detail,
        "thread": broken.thread,
        "lost_tokens": broken.lost_tokens,
        "cost": broken.cost,
        "announced": broken.announcement is not None,
    }


def causes(breaks: Iterable[DatedBreak]) -> list[Data]:
    """Breaks by cause, the most expensive first."""
    sums = dict[tuple[str, bool], Data]()
    for one in breaks:
        broken = one.broken
        key = (broken.cause, broken.announcement is not None)
        found = sums.setdefault(key, {"cause": key[0], "announced": key[1], "count": 0, "lost_tokens": 0, "cost": 0.0})
        found["count"] += 1
        found["lost_tokens"] += broken.lost_tokens
        found["cost"] += broken.cost
    return sorted(sums.values(), key=lambda one: (-one["cost"], -one["lost_tokens"]))


def parts_data(parts: Mapping[str, Totals]) -> list[Data]:
    """One line per part, the most expensive first."""
    found = [{"name": name, **sums.to_json()} for name, sums in parts.items()]
    return sorted(found, key=lambda one: (-one["cost_usd"], -one["input_equivalents"]))


def session_totals(ledger: Ledger) -> Data:
    layers, whole, beside = dict[str, Sums](), Sums(), Sums()
    for one in ledger.entries:
        layers.setdefault(one.purpose, Sums()).add(one)
    for name, sums in layers.items():
        whole.plus(sums)
        if name != Purpose.MAIN:
            beside.plus(sums)
    return {
        "total": whole.totals().to_json(),
        "conversation": layers.get(Purpose.MAIN, Sums()).totals().to_json(),
        "background": beside.totals().to_json(),
        "layers": parts_data({name: sums.totals() for name, sums in layers.items()}),
        "spared_tokens": ledger.spared_by(),
        "causes": causes(ledger.breaks),
    }


def health_data(health: Health) -> Data:
    """What each layer did and why, and which breakers are open."""
    recalled, used = health.recalled
    return {
        "layers": [
            {
                "layer": name,
                "label": LAYERS.get(name, name),
                "counts": dict(sums.counts),
                "reasons": [
                    {"outcome": outcome, "why": why, "count": count}
                    for outcome, whys in sums.reasons.items()
                    for why, count in whys.most_common()
                ],
            }
            for name, sums in health.layers().items()
        ],
        "failures": health.failures,
        "open_breakers": health.open_breakers,
        "cleared": health.cleared,
        "requested_again": health.requested_again,
        "recalled": recalled,
        "recalled_used": used,
        "compactions": [
            {
                "at": one.at.isoformat() if one.at is not None else None,
                "session": one.session,
                "kind": one.kind,
                "before": one.before,
                "after": one.after,
                "kept": one.kept,
                "of": one.of,
            }
            for one in health.compactions
        ],
    }


def is_dearer(one: LedgerEntry) -> tuple[float, float]:
    """The order by cost; tokens decide where there are no prices."""
    return (one.cost, one.equivalents)
