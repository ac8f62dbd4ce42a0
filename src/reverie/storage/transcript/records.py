"""The typed payloads of our own system records: the decisions of layers, in a form that can be replayed.

Each payload is a frozen dataclass with a `subtype`. On disk it is under `reverie` in a system record, with a schema
version. Unknown subtypes and keys stay in the file and are skipped, so an older Reverie reads a newer file.
"""

from __future__ import annotations

import dataclasses
from dataclasses import field
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, cast, get_args

from reverie.quick import dataclass
from reverie.types import Json, JsonObject, Record, Usage

SCHEMA_VERSION = 1
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SessionHeader:
    """The parts of the prefix. Valid until the next header (after /clear or /compact)."""

    subtype: ClassVar[str] = "session_header"
    model: str
    system: tuple[str, ...]
    tools: tuple[JsonObject, ...]
    reminder: str = ""
    date: str = ""
    flags: JsonObject = field(default_factory=dict[str, Any])
    ttl: Literal["5m", "1h"] = "5m"
    ttl_reason: str = ""
    betas: tuple[str, ...] = ()
    thinking: JsonObject | None = None
    effort: str | None = None
    form: JsonObject = field(default_factory=dict[str, Any])
    """How the owner of another loop writes the system prompt."""


@dataclass(frozen=True, slots=True)
class CompactBoundary:
    """Everything before it is summarised. `preserved` names the kept messages: first, the record they follow, last.

    `sealed_by` is the uuid of the last record of the same write: if it is missing, a crash interrupted the compaction,
    and it does not count. `writer` wrote the summary; `extent` says how much it covers.
    """

    subtype: ClassVar[str] = "compact_boundary"
    trigger: Literal["auto", "manual"]
    tokens_before: int
    last_uuid: str | None
    preserved: tuple[str, str, str] | None = None
    tools_discovered: tuple[str, ...] = ()
    writer: str = ""
    extent: Literal["whole", "from", "up_to"] = "whole"
    sealed_by: str | None = None


@dataclass(frozen=True, slots=True)
class ResultDecisions:
    """Final decisions on tool results: `replaced` maps a call id to the text that replaces it, `kept` stay whole."""

    subtype: ClassVar[str] = "result_decisions"
    replaced: dict[str, str] = field(default_factory=dict[str, str])
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Clears:
    """Tool results cleared to save window: call id → marker. An announced break. `tokens`: about how many it saved."""

    subtype: ClassVar[str] = "clears"
    strategy: str
    cleared: dict[str, str]
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class CacheEdits:
    """Results deleted in the server's cache, in the order sent: every later request names them again."""

    subtype: ClassVar[str] = "cache_edits"
    references: tuple[str, ...]
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class ServerEdits:
    """What the server clears by itself from here on; empty: nothing any longer."""

    subtype: ClassVar[str] = "server_edits"
    management: JsonObject


@dataclass(frozen=True, slots=True)
class AppliedEdits:
    """What the server has cleared from a request, if that changed since the last one."""

    subtype: ClassVar[str] = "applied_edits"
    edits: tuple[JsonObject, ...]


@dataclass(frozen=True, slots=True)
class Surfaced:
    """Memories shown to the model, with their size. Without names, recall chose nothing. `by`: who chose."""

    subtype: ClassVar[str] = "surfaced_memories"
    names: tuple[str, ...]
    bytes: int
    by: str = "ranker"


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a background writer has read: the uuid of the last message."""

    subtype: ClassVar[str] = "cursor"
    writer: str
    uuid: str | None


@dataclass(frozen=True, slots=True)
class ForkUsage:
    """The cost of one request outside the main conversation, on this session's ledger."""

    subtype: ClassVar[str] = "fork_usage"
    purpose: str
    model: str
    usage: JsonObject
    thread: str = ""

    def tokens(self) -> Usage:
        return Usage.parse(self.usage) or Usage()


@dataclass(frozen=True, slots=True)
class Pin:
    """Text that survives every compaction unchanged; `removed` removes the pin with this id."""

    subtype: ClassVar[str] = "pin"
    id: str
    text: str = ""
    removed: bool = False


@dataclass(frozen=True, slots=True)
class Undo:
    """Takes back the compaction with this boundary; later records stay."""

    subtype: ClassVar[str] = "undo"
    boundary: str


@dataclass(frozen=True, slots=True)
class Fold:
    """The messages from `first` to `last` are shown as one text (empty: not at all). An undo shows them again."""

    subtype: ClassVar[str] = "fold"
    strategy: Literal["collapse", "snip"]
    first: str
    last: str
    text: str = ""
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Survival:
    """What a compaction kept of the old context: by kind how many of how many, and examples of what it lost."""

    subtype: ClassVar[str] = "survival"
    boundary: str
    writer: str
    tokens_before: int
    tokens_after: int
    kept: dict[str, int]
    total: dict[str, int]
    lost: JsonObject = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Rewind:
    """The conversation continues from `head` (None: from nothing, as after /clear); later records are left out."""

    subtype: ClassVar[str] = "rewind"
    head: str | None
    reason: str = "rewind"


@dataclass(frozen=True, slots=True)
class CacheBreak:
    """A request read less from the prompt cache than the request before had left there; tokens, and US dollars.

    `predicted`: the cause was known before the request was sent. `announcement`: the announced reason, in which case
    the break was not reported.
    """

    subtype: ClassVar[str] = "cache_break"
    cause: str
    detail: str
    lost_tokens: int
    expected: int = 0
    read: int = 0
    cost: float = 0.0
    equivalents: float = 0.0
    path: str = ""
    model: str = ""
    purpose: str = "main"
    thread: str = "main"
    predicted: bool = False
    announcement: str | None = None


@dataclass(frozen=True, slots=True)
class LayerFailure:
    """A layer could not do its work, and the conversation went on without it. Only reported."""

    subtype: ClassVar[str] = "layer_failure"
    layer: str
    why: str


@dataclass(frozen=True, slots=True)
class TurnCounts:
    """How often layers had nothing to do in a turn, and requests were sent again: `name: reason` → count.

    Only reported.
    """

    subtype: ClassVar[str] = "turn_counts"
    declined: dict[str, int] = field(default_factory=dict[str, int])
    retried: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class BreakerState:
    """The breakers of auto-compaction after a change. A resumed session begins with the last one."""

    subtype: ClassVar[str] = "breaker_state"
    failures: int = 0
    refills: int = 0
    turns: int = 0
    rounds: int = 0
    compacted: bool = False
    open_reason: str = ""


@dataclass(frozen=True, slots=True)
class Handed:
    """The fingerprints of the messages that a compaction by hand gave to the owner of another loop."""

    subtype: ClassVar[str] = "handed"
    fingerprints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FileSnapshot:
    """The files of a project before a turn's first command that could change them, or before they were restored."""

    subtype: ClassVar[str] = "file_snapshot"
    project: str
    tree: str
    turn: str = ""


Payload: TypeAlias = (
    SessionHeader
    | CompactBoundary
    | ResultDecisions
    | Clears
    | CacheEdits
    | ServerEdits
    | AppliedEdits
    | Surfaced
    | Cursor
    | ForkUsage
    | Pin
    | Undo
    | Fold
    | Survival
    | Rewind
    | CacheBreak
    | LayerFailure
    | TurnCounts
    | BreakerState
    | Handed
    | FileSnapshot
)
_KINDS: dict[str, type[Payload]] = {kind.subtype: kind for kind in get_args(Payload)}


def to_data(payload: Payload) -> JsonObject:
    """Returns the payload as plain JSON with its schema version; tuples become lists."""
    body = {f.name: getattr(payload, f.name) for f in dataclasses.fields(payload)}
    return {"v": SCHEMA_VERSION, **cast(JsonObject, _plain(body))}


def from_record(record: Record) -> Payload | None:
    """Returns the typed payload of our system records and of Claude Code's boundaries; None for anything else."""
    if record.type != "system":
        return None
    kind = _KINDS.get(record.subtype or "")
    body: Json = record.data.get("reverie")
    if kind is None:
        return None
    if not isinstance(body, dict):
        return _foreign_boundary(record) if kind is CompactBoundary else None
    return build(kind, cast(JsonObject, body))


def build(kind: type[T], given: JsonObject) -> T | None:
    """Builds a frozen dataclass from JSON. Unknown keys are skipped; None if a key is missing or has another type."""
    known = {f.name: str(f.type) for f in dataclasses.fields(cast(Any, kind))}
    if not all(_fits(value, known[key]) for key, value in given.items() if key in known):
        return None
    try:
        return kind(**{key: _freeze(value) for key, value in given.items() if key in known})
    except TypeError:
        return None


def _foreign_boundary(record: Record) -> CompactBoundary:
    meta = _object(record.data.get("compactMetadata"))
    kept = _object(meta.get("preservedSegment"))
    last: Json = record.data.get("logicalParentUuid")
    tokens: Json = meta.get("preTokens")
    names = (kept.get("headUuid"), kept.get("anchorUuid"), kept.get("tailUuid"))
    return CompactBoundary(
        trigger="manual" if meta.get("trigger") == "manual" else "auto",
        tokens_before=tokens if isinstance(tokens, int) else 0,
        last_uuid=last if isinstance(last, str) else None,
        preserved=cast(tuple[str, str, str], names) if all(isinstance(name, str) for name in names) else None,
    )


def _object(value: Json) -> JsonObject:
    return cast(JsonObject, value) if isinstance(value, dict) else {}


def _fits(value: Json, wanted: str) -> bool:
    if value is None:
        return wanted.endswith("| None")
    kinds = {"int": int, "float": (int, float), "bool": bool, "tuple": list, "dict": dict, "JsonObject": dict}
    kind = next((types for name, types in kinds.items() if wanted.startswith(name)), str)
    if isinstance(value, dict) and wanted.startswith("dict[str, "):
        inner = str if wanted.startswith("dict[str, str") else int
        return all(isinstance(item, inner) for item in cast(JsonObject, value).values())
    if isinstance(value, list) and wanted.startswith(("tuple[str", "tuple[JsonObject")):
        inner = str if wanted.startswith("tuple[str") else dict
        return all(isinstance(item, inner) for item in cast(list[Json], value))
    return isinstance(value, kind)


def _plain(value: Json) -> Json:
    if isinstance(value, tuple):
        return [_plain(item) for item in cast(tuple[Json, ...], value)]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in cast(JsonObject, value).items()}
    return value


def _freeze(value: Json) -> Json:
    return tuple(cast(list[Json], value)) if isinstance(value, list) else value
