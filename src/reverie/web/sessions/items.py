"""A transcript as the list that the reader shows: messages with the results of their calls, compactions, branches.

Only finds and groups; `parts.py` makes data of the items on one page. Nothing is left out: messages of branches that
were rewound, undone compactions and cleared results are items too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any, Literal, TypeAlias

from reverie.quick import dataclass
from reverie.storage.transcript import records as r
from reverie.storage.transcript.chain import conversation
from reverie.text.patterns import late
from reverie.types import Record, ToolResultBlock
from reverie.web.sessions.reading import Snapshot, TranscriptReader

Kind: TypeAlias = Literal["message", "compaction", "branch", "event"]

_PLAIN_ID = late(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")


def anchor(name: str) -> str:
    """The name of a record as part of an address: as it is, or its digest if it has unusual characters."""
    return name if _PLAIN_ID.fullmatch(name) else hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:24]


@dataclass(slots=True)
class Item:
    """One entry. `records` are those of a response, of a branch, or what belongs to a compaction."""

    kind: Kind
    id: str
    at: str | None
    records: list[Record] = field(default_factory=list[Record])
    payload: r.Payload | None = None
    undone: bool = False
    survival: r.Survival | None = None


@dataclass(slots=True)
class Transcript:
    """All items in order, and what is known about calls and their results."""

    items: list[Item] = field(default_factory=list[Item])
    places: dict[str, int] = field(default_factory=dict[str, int])
    """The position of an item, by the id of each of its records."""
    results: dict[str, tuple[ToolResultBlock, Record]] = field(
        default_factory=dict[str, tuple[ToolResultBlock, Record]]
    )
    calls: dict[str, int] = field(default_factory=dict[str, int])
    """The position of the item that has a call."""
    cleared: dict[str, str] = field(default_factory=dict[str, str])
    """Calls whose results are out of view, and why."""
    replaced: dict[str, str] = field(default_factory=dict[str, str])
    pins: dict[str, str] = field(default_factory=dict[str, str])
    header: r.SessionHeader | None = None
    model: str = ""
    first: str | None = None
    last: str | None = None
    messages: int = 0
    agents: dict[str, str] = field(default_factory=dict[str, str])
    """Agents by their id, with the call that started each."""

    def at(self, id: str) -> int | None:
        return self.places.get(id)


def read_items(reader: TranscriptReader, snapshot: Snapshot, *, sidechains: bool = False) -> Transcript:
    """The items of a snapshot, kept with the reader. An agent's own file has only records of side chains."""
    return reader.derive(f"items {sidechains}", snapshot, lambda given: build(given.records, sidechains=sidechains))


def build(records: Sequence[Record], *, sidechains: bool = False) -> Transcript:
    """Groups the records. With `sidechains` those of agents count as the conversation."""
    if sidechains:
        records = [Record({**one.data, "isSidechain": False}, one.message) for one in records]
    builder = _Builder(records)
    for record in records:
        if not record.is_sidechain:
            builder.add(record)
    return builder.done()


_EVENTS = (
    r.Rewind,
    r.Undo,
    r.Clears,
    r.CacheEdits,
    r.AppliedEdits,
    r.Surfaced,
    r.Pin,
    r.Fold,
    r.LayerFailure,
    r.CacheBreak,
    r.SessionHeader,
)


class _Builder:
    def __init__(self, records: Sequence[Record]) -> None:
        shown = conversation(records)
        self._shown = {_name(record) for record in shown}
        self._found = Transcript()
        self._open: Item | None = None
        """The response that the next record may belong to."""
        self._boundaries = dict[str, Item]()
        self._headers = 0

    def add(self, record: Record) -> None:
        payload = r.from_record(record)
        if payload is not None:
            self._decide(record, payload)
        elif record.message is not None:
            self._say(record)

    def done(self) -> Transcript:
        found = self._found
        for position, item in enumerate(found.items):
            found.places.setdefault(item.id, position)
            for record in item.records:
                if record.uuid is not None:
                    found.places.setdefault(anchor(record.uuid), position)
                for call in record.message.tool_uses if record.message is not None else ():
                    if found.calls.get(call.id, -1) < 0:
                        found.calls[call.id] = position
        for call, (_, record) in found.results.items():
            if call in found.calls and record.uuid is not None:
                found.places.setdefault(anchor(record.uuid), found.calls[call])
        return found

    def _put(self, item: Item) -> Item:
        self._found.items.append(item)
        return item

    def _new_id(self, record: Record) -> str:
        return anchor(record.uuid) if record.uuid else f"n{len(self._found.items)}"

    # -- messages

    def _say(self, record: Record) -> None:
        message, found = record.message, self._found
        assert message is not None
        found.first = found.first or record.timestamp
        found.last = record.timestamp or found.last
        owner = record.data.get("compactOf")
        if isinstance(owner, str) and owner in self._boundaries:
            self._boundaries[owner].records.append(record)
            return
        if _name(record) not in self._shown:
            self._branch(record)
            return
        last = found.items[-1] if found.items else None
        if record.data.get("isCompactSummary") and last is not None and last.kind == "compaction":
            last.records.append(record)
            return
        for result in message.tool_results:
            found.results.setdefault(result.tool_use_id, (result, record))
            self._note_agent(record, result.tool_use_id)
        if message.role == "user" and all(
            isinstance(block, ToolResultBlock) and self._is_asked(block) for block in message.content
        ):
            return
        found.messages += 1
        if message.role == "assistant":
            found.model = str(message.fields.get("model") or "") or found.model
            self._asked(record)
            if self._open is not None and message.id is not None and self._open.payload is None:
                before = self._open.records[-1].message
                if before is not None and before.id == message.id:
                    self._open.records.append(record)
                    found.messages -= 1
                    return
        item = self._put(Item("message", self._new_id(record), record.timestamp, [record]))
        self._open = item if message.role == "assistant" else self._open

    def _asked(self, record: Record) -> None:
        for call in record.message.tool_uses if record.message is not None else ():
            self._found.calls.setdefault(call.id, -1)

    def _is_asked(self, block: ToolResultBlock) -> bool:
        return block.tool_use_id in self._found.calls

    def _note_agent(self, record: Record, call: str) -> None:
        given: Any = record.data.get("toolUseResult")
        name: Any = (given.get("agent") or given.get("agentId")) if isinstance(given, dict) else None  # pyright: ignore
        if isinstance(name, str) and name:
            self._found.agents.setdefault(name.removeprefix("agent-"), call)

    def _branch(self, record: Record) -> None:
        last = self._found.items[-1] if self._found.items else None
        if last is None or last.kind != "branch":
            last = self._put(Item("branch", f"branch-{self._new_id(record)}", record.timestamp))
        last.records.append(record)

    # -- decisions

    def _decide(self, record: Record, payload: r.Payload) -> None:
        found = self._found
        match payload:
            case r.CompactBoundary():
                undone = _name(record) not in self._shown
                item = self._put(Item("compaction", self._new_id(record), record.timestamp, [], payload, undone))
                if record.uuid is not None:
                    self._boundaries[record.uuid] = item
                self._open = None
                return
            case r.Survival():
                if payload.boundary in self._boundaries:
                    self._boundaries[payload.boundary].survival = payload
                return
            case r.ResultDecisions():
                found.replaced |= payload.replaced
            case r.Clears():
                found.cleared = dict.fromkeys(payload.cleared, payload.strategy) | found.cleared
            case r.CacheEdits():
                found.cleared = dict.fromkeys(payload.references, "server cache") | found.cleared
            case r.Pin():
                if payload.removed:
                    found.pins.pop(payload.id, None)
                else:
                    found.pins[payload.id] = payload.text
            case r.SessionHeader():
                before, found.header = found.header, payload
                if before is None or before.model == payload.model:
                    return
            case _:
                pass
        if isinstance(payload, _EVENTS) and _is_worth_a_line(payload):
            self._put(Item("event", self._new_id(record), record.timestamp, [], payload))


def _is_worth_a_line(payload: r.Payload) -> bool:
    match payload:
        case r.Surfaced():
            return bool(payload.names)
        case r.CacheBreak():
            return payload.announcement is None
        case _:
            return True


def _name(record: Record) -> str | int:
    return record.uuid or id(record.data)


def sidechain_threads(records: Sequence[Record]) -> dict[str, list[Record]]:
    """The conversations of agents that are in the same file, by the agent's id or else by their first message."""
    found, roots = dict[str, list[Record]](), dict[str, str]()
    for record in _sidechain(records):
        agent = record.data.get("agentId")
        root = str(agent) if isinstance(agent, str) and agent else roots.get(record.parent or "", "")
        root = root or record.uuid or "side"
        if record.uuid is not None:
            roots[record.uuid] = root
        found.setdefault(anchor(root.removeprefix("agent-")), []).append(record)
    return found


def _sidechain(records: Sequence[Record]) -> Iterator[Record]:
    return (record for record in records if record.is_sidechain and record.message is not None)
