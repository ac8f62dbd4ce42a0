"""What every token was spent on, read from the transcripts themselves.

An entry is one request: a response of the conversation, or one of other work (notes, recall, a dream …). Totals are by
purpose, day, session, model or project, in tokens and in currency, next to the cost without a cache.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

from reverie.context.cache_watch import UsageWatch
from reverie.models.catalogue import Catalogue
from reverie.models.prices import cost, input_equivalents, price
from reverie.models.wire import model_id
from reverie.moments import parse_time
from reverie.quick import dataclass
from reverie.regular_files import LARGEST, open_regular
from reverie.storage.atomic import storage_error
from reverie.storage.transcript.file import parse_line
from reverie.storage.transcript.records import CacheBreak, Clears, CompactBoundary, ForkUsage, from_record
from reverie.types import JsonObject, Purpose, Record, Usage

By: TypeAlias = Literal["layer", "run", "day", "session", "model", "project"]
UNDATED = "undated"

BYTES_PER_TOKEN = 4
"""For results that were never sent and so never counted."""
LEDGER_WORDS = (b'"usage"', b'"fork_usage"', b'"cache_break"', b"keptBytes", b"clears", b"compact_boundary")


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One request: its purpose and its cost in US dollars (0 if the model has no price)."""

    at: datetime | None
    purpose: str
    model: str
    usage: Usage
    cost: float
    uncached: float
    """The cost without any cache."""
    equivalents: float
    """The cost in tokens of fresh input."""
    session: str = ""
    project: str = ""
    priced: bool = True
    thread: str = ""
    """The run that it belongs to, such as `dream-fresh-2`; empty for the conversation."""
    opening: int = 0
    """The opening of the session, counted from 1; 0 if the records do not say."""

    def key(self, by: By) -> str:
        if by == "run":
            opening = f"#{self.opening}" if self.opening else ""
            return " ".join(filter(None, (self.session[:8], opening, self.thread or self.purpose)))
        if by == "day":
            return self.at.astimezone().date().isoformat() if self.at is not None else UNDATED
        return self.purpose if by == "layer" else str(getattr(self, by))


def make_entry(
    usage: Usage,
    model: str,
    catalogue: Catalogue,
    *,
    purpose: str = Purpose.MAIN.value,
    at: datetime | None = None,
    session: str = "",
    project: str = "",
    thread: str = "",
    opening: int = 0,
) -> LedgerEntry:
    """Makes the entry of one request."""
    name = model_id(model)
    facts = catalogue.facts(name)
    each = price(facts, usage.prompt)
    uncached = (usage.prompt * each.input + usage.output_tokens * each.output) / 1_000_000
    paid, fresh = cost(usage, facts), input_equivalents(usage, facts)
    return LedgerEntry(at, purpose, name, usage, paid, uncached, fresh, session, project, facts.priced, thread, opening)


@dataclass(frozen=True, slots=True)
class Totals:
    """A sum of entries."""

    requests: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: float = 0.0
    uncached: float = 0.0
    equivalents: float = 0.0
    unpriced: int = 0
    """Requests to models without a price: counted in tokens, not in currency."""

    @property
    def hit_rate(self) -> float:
        """The share of all prompts that was read from the cache."""
        return self.usage.cache_read_input_tokens / self.usage.prompt if self.usage.prompt else 0.0

    @property
    def saved(self) -> float:
        """What the cache saved, minus the cost of writing it."""
        return self.uncached - self.cost

    def plus(self, one: LedgerEntry) -> Totals:
        return Totals(
            self.requests + 1,
            self.usage + one.usage,
            self.cost + one.cost,
            self.uncached + one.uncached,
            self.equivalents + one.equivalents,
            self.unpriced + (not one.priced),
        )

    def to_json(self) -> JsonObject:
        used = self.usage
        return {
            "requests": self.requests,
            "input_tokens": used.input_tokens,
            "cache_write_tokens": used.cache_creation_input_tokens,
            "cache_write_1h_tokens": used.cache_creation_1h,
            "cache_read_tokens": used.cache_read_input_tokens,
            "output_tokens": used.output_tokens,
            "prompt_tokens": used.prompt,
            "hit_rate": round(self.hit_rate, 4),
            "cost_usd": round(self.cost, 6),
            "uncached_usd": round(self.uncached, 6),
            "saved_usd": round(self.saved, 6),
            "input_equivalents": round(self.equivalents),
            "unpriced_requests": self.unpriced,
        }


def total(entries: Iterable[LedgerEntry]) -> Totals:
    found = Totals()
    for one in entries:
        found = found.plus(one)
    return found


@dataclass(frozen=True, slots=True)
class DatedBreak:
    """A cache break and its time."""

    at: datetime | None
    broken: CacheBreak
    session: str = ""


@dataclass(frozen=True, slots=True)
class SparedTokens:
    """Tokens that a layer kept out of one request."""

    at: datetime | None
    layer: str
    tokens: int


class Ledger:
    """Entries in the order they were read. Start with `of_session` or `of_transcripts`, or add records."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.entries: list[LedgerEntry] = []
        self.breaks: list[DatedBreak] = []
        self._catalogue = catalogue
        self.spared: list[SparedTokens] = []
        self._places: dict[tuple[str, str], tuple[int, str]] = {}
        self._kept_out: dict[str, Counter[str]] = {}
        self._openings: dict[str, dict[str, int]] = {}
        self._watches: dict[str, UsageWatch] = {}
        self._with_recorded_break: set[str] = set()
        """Sessions with a recorded break since their last response."""

    @classmethod
    def of_session(cls, records: Iterable[Record], catalogue: Catalogue) -> Ledger:
        """Returns the ledger of one session's records."""
        ledger = cls(catalogue)
        for record in records:
            ledger.add(record)
        return ledger

    @classmethod
    def of_transcripts(cls, paths: Sequence[Path], catalogue: Catalogue, *, since: float = 0.0) -> Ledger:
        """Returns the ledger of whole files. Files last written before `since` (a time stamp) are not opened."""
        ledger = cls(catalogue)
        for path in paths:
            try:
                found = path.stat()
                if found.st_mtime >= since and stat.S_ISREG(found.st_mode) and found.st_size <= LARGEST:
                    for record in read_records_with(path, LEDGER_WORDS):
                        ledger.add(record, session=path.stem, project=path.parent.name)
            except FileNotFoundError:
                continue  # deleted meanwhile
        return ledger

    def add(self, record: Record, *, session: str = "", project: str = "") -> None:
        """Adds one record and ignores those without a cost."""
        session = session or str(record.data.get("sessionId") or "")
        project = str(record.data.get("cwd") or project)
        at = record_time(record)
        payload = from_record(record)
        if isinstance(payload, ForkUsage):
            where = self._where(record, session, project)
            beside = {"purpose": payload.purpose, "thread": payload.thread}
            self.entries.append(make_entry(payload.tokens(), payload.model, self._catalogue, **beside, **where))
        elif isinstance(payload, CacheBreak):
            self.breaks.append(DatedBreak(at, payload, session))
            if payload.purpose == Purpose.MAIN.value:
                self._with_recorded_break.add(session)
        elif isinstance(payload, CompactBoundary):
            self._kept_out.pop(session, None)
            self._watch(session).announced = "the conversation was compacted"
        elif isinstance(payload, Clears):
            self._keep_out(session, "cleared", payload.tokens)
        elif kept := int(record.data.get("keptBytes") or 0):
            self._keep_out(session, "on disk", kept // BYTES_PER_TOKEN)
        elif record.message is not None and record.message.role == "assistant":
            self._add_response(record, at, session, project)

    def _where(self, record: Record, session: str, project: str) -> dict[str, Any]:
        opening = self._opening(record, session)
        return {"at": record_time(record), "session": session, "project": project, "opening": opening}

    def _opening(self, record: Record, session: str) -> int:
        """Returns the number of the opening that a record belongs to: runs of different processes share names."""
        name = str(record.data.get("opening") or "")
        known = self._openings.setdefault(session, {})
        return known.setdefault(name, len(known) + 1) if name else 0

    def _watch(self, session: str) -> UsageWatch:
        return self._watches.setdefault(session, UsageWatch())

    def _keep_out(self, session: str, layer: str, tokens: int) -> None:
        self._kept_out.setdefault(session, Counter())[layer] += tokens

    def _add_response(self, record: Record, at: datetime | None, session: str, project: str) -> None:
        message = record.message
        usage = message.usage if message is not None else None
        if message is None or usage is None or usage.total == 0 or record.data.get("isApiErrorMessage"):
            return
        purpose = Purpose.AGENT if record.is_sidechain else Purpose.MAIN
        model = str(message.fields.get("model") or "")
        where = self._where(record, session, project)
        found = make_entry(usage, model, self._catalogue, purpose=purpose.value, **where)
        # Records split from one response share its id and repeat its usage; resuming may copy them to another file.
        name = (message.id or "", str(record.data.get("requestId") or session))
        known = self._places.get(name) if message.id else None
        if known is None:
            self._places[name] = (len(self.entries), session)
            self.entries.append(found)
            if purpose is Purpose.MAIN:
                self._find_break(found)
                kept_out = self._kept_out.get(session, Counter[str]())
                self.spared += [SparedTokens(at, layer, kept) for layer, kept in kept_out.items()]
        elif known[1] == session and usage.output_tokens >= self.entries[known[0]].usage.output_tokens:
            self.entries[known[0]] = found

    def _find_break(self, one: LedgerEntry) -> None:
        """Adds a break that usage shows, unless the break is recorded with its cause."""
        broken = self._watch(one.session).response(one.usage, one.model, one.at, self._catalogue.facts(one.model))
        if broken is not None and one.session not in self._with_recorded_break:
            self.breaks.append(DatedBreak(one.at, broken, one.session))
        self._with_recorded_break.discard(one.session)

    def only(self, *, since: datetime | None = None, day: date | None = None) -> Ledger:
        """Returns the part from a moment on, or of one local day."""

        def counts(at: datetime | None) -> bool:
            if at is None:
                return since is None and day is None
            return (since is None or at >= since) and (day is None or at.astimezone().date() == day)

        part = Ledger(self._catalogue)
        part.entries = [one for one in self.entries if counts(one.at)]
        part.breaks = [one for one in self.breaks if counts(one.at)]
        part.spared = [one for one in self.spared if counts(one.at)]
        return part

    def by(self, what: By) -> dict[str, Totals]:
        """Returns totals by purpose (`layer`), run, day, session, model or project, in order of first appearance."""
        found = dict[str, Totals]()
        for one in self.entries:
            key = one.key(what)
            found[key] = found.get(key, Totals()).plus(one)
        return found

    @property
    def main(self) -> Totals:
        """The totals of the conversation itself."""
        return total(one for one in self.entries if one.purpose == Purpose.MAIN)

    @property
    def beside(self) -> Totals:
        """The totals of all other work."""
        return total(one for one in self.entries if one.purpose != Purpose.MAIN)

    @property
    def total(self) -> Totals:
        return total(self.entries)

    def spared_by(self) -> dict[str, int]:
        """Returns about how many tokens each layer kept out of all requests, before the cost of its breaks."""
        found = Counter[str]()
        for one in self.spared:
            found[one.layer] += one.tokens
        return dict(found)

    def to_json(self, by: By = "layer") -> JsonObject:
        """Returns all of it for programs."""
        announced = [one.broken for one in self.breaks if one.broken.announcement is not None]
        found = [one.broken for one in self.breaks if one.broken.announcement is None]
        return {
            "total": self.total.to_json(),
            "by": by,
            "parts": {key: sums.to_json() for key, sums in self.by(by).items()},
            "hit_rate": {"main": round(self.main.hit_rate, 4), "beside": round(self.beside.hit_rate, 4)},
            "breaks": {"announced": _breaks_json(announced), "unannounced": _breaks_json(found)},
            "spared_tokens": self.spared_by(),
        }


def _breaks_json(breaks: Sequence[CacheBreak]) -> JsonObject:
    return {
        "count": len(breaks),
        "lost_tokens": sum(one.lost_tokens for one in breaks),
        "cost_usd": round(sum(one.cost for one in breaks), 6),
        "causes": dict(Counter(one.cause for one in breaks)),
    }


def record_time(record: Record) -> datetime | None:
    """Returns when a record was written, if it has a time."""
    return parse_time(record.timestamp)


def read_records_with(path: Path, words: Sequence[bytes]) -> Iterator[Record]:
    """Yields the records of a transcript with one of these words. Other lines are not parsed; bad ones are skipped."""
    try:
        with os.fdopen(open_regular(path), "rb") as lines:
            for line in lines:
                if any(word in line for word in words):
                    with suppress(ValueError):
                        yield from parse_line(line)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise storage_error(error, path, "read the transcript") from error


class RunningLedger:
    """The ledger of a live session. Each `now` takes in what was appended since the last one."""

    def __init__(self, records: Sequence[Record], catalogue: Catalogue) -> None:
        self._records = records
        self._ledger = Ledger(catalogue)
        self._seen = 0

    def now(self) -> Ledger:
        for record in self._records[self._seen :]:
            self._ledger.add(record)
        self._seen = len(self._records)
        return self._ledger
