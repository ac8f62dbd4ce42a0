"""What each request of a session cost, why, and which cache break belongs to it.

A fold over all records of one session: the ledger and the health of the same records, with the breaks on the requests
that paid for them. The reason of a cost is one sentence; it is computed, not asked of a model.
"""

from __future__ import annotations

from dataclasses import field
from statistics import median

from reverie.context.cache_watch import describe_break
from reverie.context.health import Health
from reverie.context.ledger import LedgerEntry
from reverie.context.window_fill import Share
from reverie.models.catalogue import Catalogue
from reverie.models.prices import output_ratio, price
from reverie.quick import dataclass
from reverie.storage.transcript.records import CacheBreak, ForkUsage, from_record
from reverie.types import Purpose, Record

_MAIN = Purpose.MAIN.value


@dataclass(slots=True)
class CostRow:
    """One request. `place` is its place in the ledger; `before` that of the request before it in the same thread."""

    place: int
    uuid: str | None = None
    """Of the first record of the response."""
    before: int | None = None
    breaks: list[CacheBreak] = field(default_factory=list[CacheBreak])


@dataclass(frozen=True, slots=True)
class Amount:
    """A class of tokens in one request, what they cost in US dollars, and their share of the whole cost.

    A model without a price has the usual ratios between the classes.
    """

    name: str
    tokens: int
    cost: float
    share: float


class RequestCosts:
    """The costs of one session. Add all its records in file order."""

    def __init__(self, catalogue: Catalogue, session: str, project: str = "") -> None:
        self.health = Health(catalogue)
        self.rows: list[CostRow] = []
        self._catalogue = catalogue
        self._session, self._project = session, project
        self._waiting: list[CacheBreak] = []
        """Breaks of the conversation are recorded just before the response that paid for them."""
        self._last: dict[str, int] = {}

    def add(self, record: Record) -> None:
        ledger = self.health.ledger
        entries, breaks = len(ledger.entries), len(ledger.breaks)
        self.health.add(record, session=self._session, project=self._project)
        found = [one.broken for one in ledger.breaks[breaks:]]
        if len(ledger.entries) > entries:
            self._add_row(entries, record, found)
        elif found and found[0].purpose == _MAIN:
            self._waiting += found
        elif found and (last := self._last.get(found[0].thread)) is not None:
            self.rows[last].breaks += found

    def entry(self, row: CostRow) -> LedgerEntry:
        return self.health.ledger.entries[row.place]

    def _add_row(self, place: int, record: Record, found: list[CacheBreak]) -> None:
        entry, payload = self.health.ledger.entries[place], from_record(record)
        thread = payload.thread if isinstance(payload, ForkUsage) else entry.purpose
        row = CostRow(place, record.uuid, self._last.get(thread), found)
        if entry.purpose == _MAIN:
            row.breaks = [*self._waiting, *found]
            self._waiting = []
        self._last[thread] = place
        self.rows.append(row)

    def amounts(self, one: LedgerEntry) -> list[Amount]:
        """Returns the parts of a cost: read, written, fresh, output."""
        facts, used = self._catalogue.facts(one.model), one.usage
        each, hour = price(facts, used.prompt), used.cache_creation_1h
        minutes = used.cache_creation_input_tokens - hour
        found = (
            ("read", used.cache_read_input_tokens, used.cache_read_input_tokens * facts.cache_read),
            ("written", hour + minutes, minutes * facts.cache_write_5m + hour * facts.cache_write_1h),
            ("fresh", used.input_tokens, float(used.input_tokens)),
            ("output", used.output_tokens, used.output_tokens * output_ratio(facts, used.prompt)),
        )
        whole = sum(equivalents for _, _, equivalents in found) or 1.0
        return [
            Amount(name, tokens, equivalents * each.input / 1_000_000, equivalents / whole)
            for name, tokens, equivalents in found
        ]

    def usual(self) -> float:
        """Returns the median cost of a request of the conversation."""
        costs = [one.cost for one in self.health.ledger.entries if one.purpose == _MAIN]
        return median(costs) if costs else 0.0

    def explain(self, row: CostRow, grown: Share | None = None) -> str:
        """Says in one sentence why a request cost what it did. `grown`: the source that grew most since the last."""
        one = self.entry(row)
        paid = [broken for broken in row.breaks if broken.lost_tokens]
        if paid:
            return describe_break(paid[0], priced=one.priced)
        amounts = self.amounts(one)
        most = max(amounts, key=lambda amount: (amount.share, amount.tokens))
        share = f" ({most.share:.0%} of the cost)"
        count = f"{most.tokens:,} tokens"
        new = f", most of it {grown.label}" if grown is not None and grown.tokens > 0 else ""
        if one.purpose != _MAIN and row.before is None:
            new = ""
        match most.name:
            case "output":
                return f"Most of it is the answer: {count} of output{share}."
            case "read":
                return f"Most of it is the conversation so far: {count} read from the cache{share}."
            case "written" if row.before is None:
                return f"It is the first request: {count} of prompt were written to the cache{share}."
            case "written":
                return f"{count} came into the prompt and were written to the cache{new}{share}."
            case _ if not (one.usage.cache_read_input_tokens or one.usage.cache_creation_input_tokens):
                return f"Nothing came from the cache: {count} of prompt at the full price{share}."
            case _:
                return f"{count} of the prompt at the full price{new}{share}."
