"""How the layers have worked: what fired, declined and failed, and why. Read from transcripts and the background log.

Like the ledger it is a fold over what is recorded anyway, so it also works for a session of last month. It changes
nothing, asks nobody, and shows no conversation.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import date, datetime
from pathlib import Path
from typing import Literal, TypeAlias

from reverie.context.ledger import LEDGER_WORDS, Ledger, read_records_with, record_time
from reverie.context.recall_use import RecallUse
from reverie.models.catalogue import Catalogue
from reverie.models.wire import as_object
from reverie.quick import dataclass
from reverie.regular_files import LARGEST
from reverie.runtime.background_log import LogEntry
from reverie.storage.transcript.records import (
    AppliedEdits,
    BreakerState,
    CacheEdits,
    Clears,
    CompactBoundary,
    Cursor,
    Fold,
    LayerFailure,
    Payload,
    ResultDecisions,
    Surfaced,
    Survival,
    TurnCounts,
    from_record,
)
from reverie.types import JsonObject, Message, Purpose, Record, ToolUseBlock

Outcome: TypeAlias = Literal["fired", "declined", "failed", "retried", "again"]
By: TypeAlias = Literal["session", "day", "project"]

LAYERS: Mapping[str, str] = {
    "tool_results": "1 results on disk",
    "clearing": "2 clearing",
    "notes": "3 notes",
    "compaction": "4 compaction",
    "folding": "4 folding",
    "extraction": "5 extraction",
    "dream": "6 dreaming",
    "agent": "7 agents",
    "recall": "recall",
    "request": "requests",
}
"""Every layer in display order, with its label. Others come after them under their own name."""

_SAME = {
    "tool_result_budget": "tool_results",
    "microcompact": "clearing",
    "snip": "folding",
    "collapse": "folding",
    "autocompact": "compaction",
    "reactive": "compaction",
    "main": "request",
}
HEALTH_WORDS = (
    *LEDGER_WORDS,
    *(b"layer_failure", b"turn_counts", b"breaker_state", b"surfaced_memories", b'"cursor"', b'"survival"'),
    *(b"result_decisions", b"cache_edits", b"applied_edits", b'"fold"', b'"tool_use"'),
    *(b'"recalled"', b'"typed"', b'"entered"'),
)
_KEPT_FOLDER = "/tool-results/"


@dataclass(frozen=True, slots=True)
class HealthEvent:
    """Something that a layer did, or did not do, `count` times. `amount`: of what, such as results."""

    at: datetime | None
    session: str
    project: str
    layer: str
    outcome: Outcome
    why: str = ""
    count: int = 1
    amount: int = 0


@dataclass(frozen=True, slots=True)
class Compacted:
    """One compaction: who wrote the summary and why, the tokens before and after, and what was kept of what."""

    at: datetime | None
    session: str
    project: str
    kind: str
    before: int = 0
    after: int | None = None
    kept: int = 0
    of: int = 0


@dataclass(frozen=True, slots=True)
class LayerSum:
    """What one layer did, with the reasons by how often."""

    counts: Counter[Outcome] = field(default_factory=lambda: Counter[Outcome]())
    reasons: dict[Outcome, Counter[str]] = field(default_factory=dict[Outcome, Counter[str]])

    def add(self, event: HealthEvent) -> None:
        self.counts[event.outcome] += event.count
        if event.why:
            self.reasons.setdefault(event.outcome, Counter())[event.why] += event.count

    def to_json(self) -> JsonObject:
        return {
            outcome: {"count": count, "why": dict(self.reasons.get(outcome, {}))}
            for outcome, count in self.counts.items()
        }


@dataclass(slots=True)
class _Open:
    """What the fold knows about one session while it reads."""

    cleared: dict[str, str] = field(default_factory=dict[str, str])
    calls: dict[str, str] = field(default_factory=dict[str, str])
    use: RecallUse = field(default_factory=RecallUse)


class Health:
    """The events of some sessions. Build it with `Health.read`, or add records and log entries."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.ledger = Ledger(catalogue)
        self.events: list[HealthEvent] = []
        self.compactions: list[Compacted] = []
        self.breakers: dict[str, BreakerState] = {}
        self.sessions: dict[str, str] = {}
        """Each session with its project."""
        self._catalogue = catalogue
        self._open: dict[str, _Open] = {}

    @classmethod
    def read(
        cls, paths: Sequence[Path], log: Iterable[LogEntry], catalogue: Catalogue, *, since: float = 0.0
    ) -> Health:
        """Returns the health of whole transcripts. Those last written before `since` (a time stamp) are not opened."""
        health = cls(catalogue)
        for path in paths:
            try:
                found = path.stat()
                if found.st_mtime < since or found.st_size > LARGEST or not path.is_file():
                    continue
                health.sessions.setdefault(path.stem, path.parent.name)
                for record in read_records_with(path, HEALTH_WORDS):
                    health.add(record, session=path.stem, project=path.parent.name)
            except FileNotFoundError:
                continue  # deleted meanwhile
        for entry in log:
            health.add_entry(entry)
        return health

    # -- transcripts ----------------------------------------------------------------------------------------------

    def add(self, record: Record, *, session: str = "", project: str = "") -> None:
        """Adds one record and ignores those that say nothing about a layer."""
        session = session or str(record.data.get("sessionId") or "")
        self.ledger.add(record, session=session, project=project)
        project = self.sessions[session] = str(record.data.get("cwd") or self.sessions.get(session) or project)
        at, known = record_time(record), self._open.setdefault(session, _Open())

        def happened(layer: str, outcome: Outcome, why: str = "", count: int = 1, amount: int = 0) -> None:
            layer = _SAME.get(layer, layer)
            self.events.append(HealthEvent(at, session, project, layer, outcome, why, count, amount))

        payload = from_record(record)
        if payload is not None:
            self._decide(payload, at, session, happened)
        elif record.message is not None and not record.is_sidechain:
            if record.data.get("keptBytes"):
                happened("tool_results", "fired", "over the limit of its tool")
            for why in self._said(record.message, known):
                happened(*why)

    def _decide(self, payload: Payload, at: datetime | None, session: str, happened: Callable[..., None]) -> None:
        known = self._open[session]
        match payload:
            case ResultDecisions(replaced=replaced) if replaced:
                happened("tool_results", "fired", "over the budget of a message", len(replaced))
            case Clears():
                happened("clearing", "fired", payload.strategy, amount=len(payload.cleared))
                known.cleared |= {call: known.calls[call] for call in payload.cleared if call in known.calls}
            case CacheEdits():
                happened("clearing", "fired", "cache edits", amount=len(payload.references))
            case AppliedEdits():
                happened("clearing", "fired", "the server cleared by itself")
            case Fold():
                happened("folding", "fired", payload.strategy)
            case Cursor(writer="notes", uuid=str()):
                happened("notes", "fired", "brought up to date")
            case CompactBoundary():
                kind = f"{payload.trigger} by {payload.writer or 'another agent'}"
                kind += "" if payload.extent == "whole" else f", {payload.extent.replace('_', ' ')} a message"
                happened("compaction", "fired", kind)
                project = self.sessions[session]
                self.compactions.append(Compacted(at, session, project, kind, payload.tokens_before))
                known.cleared.clear()
            case Survival():
                self._survived(payload, session)
            case Surfaced():
                outcome = "fired" if payload.names else "declined"
                happened("recall", outcome, f"chosen by the {payload.by}" if payload.names else "no memory fits")
                known.use.recalled(len(payload.names))
            case LayerFailure():
                happened(payload.layer, "failed", payload.why)
            case TurnCounts():
                for outcome, counts in (("declined", payload.declined), ("retried", payload.retried)):
                    for key, count in counts.items():
                        layer, _, why = key.partition(": ")
                        happened(layer, outcome, why, count)
            case BreakerState():
                self.breakers[session] = payload
            case _:
                pass

    def _survived(self, report: Survival, session: str) -> None:
        for at in range(len(self.compactions) - 1, -1, -1):
            one = self.compactions[at]
            if one.session == session:
                kept, of = sum(report.kept.values()), sum(report.total.values())
                self.compactions[at] = Compacted(
                    one.at, session, one.project, one.kind, report.tokens_before, report.tokens_after, kept, of
                )
                return

    def _said(self, message: Message, known: _Open) -> Iterable[tuple[str, Outcome, str]]:
        """Yields cleared results that are requested again; follows what a message says about recalled memories."""
        for call in message.tool_uses:
            about = _subject(call)
            known.calls[call.id] = about
            again = [id for id, subject in known.cleared.items() if subject == about]
            if again:
                del known.cleared[again[-1]]
                yield "clearing", "again", "a cleared result was requested again"
            elif call.name == "Read" and _KEPT_FOLDER in about:
                yield "tool_results", "again", "a result on disk was read"
        known.use.said(message)

    # -- the background log ---------------------------------------------------------------------------------------

    def add_entry(self, entry: LogEntry) -> None:
        """Adds what the log says about background work of a known session."""
        session, fields = entry.session or "", entry.fields
        if session not in self.sessions:
            return
        purpose = str(fields.get("purpose") or entry.kind.partition("_")[0])
        why = str(fields.get("error") or fields.get("reason") or "")
        outcome: Outcome | None = None
        match entry.kind:
            case "task_completed" if purpose not in (Purpose.NOTES, Purpose.CLEANUP):
                outcome, why = "fired", "done"
            case "task_failed" | "recall_failed" | "progress_failed" | "dream_gates_failed" | "dream_recover_failed":
                outcome = "failed"
            case "recall_selector_failed":
                outcome, why = "failed", f"the model did not choose: {why}"
            case "task_killed":
                outcome, why = "failed", why or "stopped"
            case "stand_in":
                outcome, why = "failed", f"the offline mind took over: {why}"
            case "memory_refused" | "dream_refused":
                outcome, why = "declined", f"the write gate refused: {fields.get('refused', '?')}"
                purpose = str(fields.get("writer") or purpose)
            case _:
                return
        project = self.sessions[session]
        self.events.append(HealthEvent(entry.time, session, project, _SAME.get(purpose, purpose), outcome, why))

    # -- answers --------------------------------------------------------------------------------------------------

    def only(self, keep: Callable[[datetime | None, str, str], bool], *, day: date | None = None) -> Health:
        """Returns the part whose time, session and project `keep` wants. `day`: of this local day only."""
        part = Health(self._catalogue)
        part.ledger = self.ledger.only(day=day)
        part.ledger.entries = [one for one in part.ledger.entries if keep(one.at, one.session, one.project)]
        part.ledger.breaks = [
            one for one in part.ledger.breaks if keep(one.at, one.session, self.sessions.get(one.session, ""))
        ]
        wanted = [one for one in self.events if keep(one.at, one.session, one.project)]
        part.events = [one for one in wanted if day is None or _day(one.at) == day.isoformat()]
        made = [one for one in self.compactions if keep(one.at, one.session, one.project)]
        part.compactions = [one for one in made if day is None or _day(one.at) == day.isoformat()]
        here = {one.session for one in (*part.events, *part.ledger.entries)}
        part.sessions = {name: project for name, project in self.sessions.items() if name in here}
        part.breakers = {name: state for name, state in self.breakers.items() if name in here}
        part._open = {name: known for name, known in self._open.items() if name in here}
        return part

    def by(self, what: By) -> dict[str, Health]:
        """Returns one part per session, day or project, in order of first appearance."""
        if what == "day":
            days = dict.fromkeys(_day(one.at) for one in (*self.events, *self.ledger.entries))
            return {day: self.only(lambda at, _s, _p, day=day: _day(at) == day) for day in days}
        if what == "project":
            names = dict.fromkeys(self.sessions.values())
            return {name: self.only(lambda _a, _s, project, name=name: project == name) for name in names}
        return {name: self.only(lambda _a, session, _p, name=name: session == name) for name in self.sessions}

    def layers(self) -> dict[str, LayerSum]:
        """Returns what each layer did, in display order."""
        found = dict[str, LayerSum]()
        for event in self.events:
            found.setdefault(event.layer, LayerSum()).add(event)
        order = list(LAYERS)
        return dict(sorted(found.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order)))

    @property
    def failures(self) -> int:
        return sum(one.count for one in self.events if one.outcome == "failed")

    @property
    def requested_again(self) -> int:
        return sum(one.count for one in self.events if one.layer == "clearing" and one.outcome == "again")

    @property
    def cleared(self) -> int:
        """How many results were cleared."""
        return sum(one.amount for one in self.events if one.layer == "clearing" and one.outcome == "fired")

    @property
    def open_breakers(self) -> dict[str, str]:
        """The sessions in which auto-compaction has stopped, with the reason."""
        return {name: state.open_reason for name, state in self.breakers.items() if state.open_reason}

    @property
    def recalled(self) -> tuple[int, int]:
        """How many memories were recalled, and how many of them an answer used."""
        uses = [known.use for known in self._open.values()]
        return sum(use.shown for use in uses), sum(use.used for use in uses)

    def to_json(self) -> JsonObject:
        """Returns all of it for programs."""
        recalled, used = self.recalled
        return {
            "sessions": len(self.sessions),
            "layers": {name: sums.to_json() for name, sums in self.layers().items()},
            "failures": self.failures,
            "breakers": {
                name: {"open": state.open_reason, "failures": state.failures, "refills": state.refills}
                for name, state in self.breakers.items()
            },
            "clearing": {"cleared": self.cleared, "requested_again": self.requested_again},
            "compactions": [_compacted_json(one) for one in self.compactions],
            "recall": {"recalled": recalled, "used": used},
            "cache": self.ledger.to_json("layer"),
        }


def _compacted_json(one: Compacted) -> JsonObject:
    return {
        "at": one.at.isoformat() if one.at is not None else None,
        "session": one.session,
        "kind": one.kind,
        "tokens_before": one.before,
        "tokens_after": one.after,
        "kept": one.kept,
        "of": one.of,
    }


def _day(at: datetime | None) -> str:
    return at.astimezone().date().isoformat() if at is not None else "undated"


def _subject(call: ToolUseBlock) -> str:
    """What a call asks for: the file, or the whole input."""
    given = as_object(call.input)
    if call.name == "Read":
        return f"Read {given.get('file_path', '')}"
    return f"{call.name} {json.dumps(given, sort_keys=True, default=str)}"
