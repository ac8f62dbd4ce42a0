"""What filled the window in every request of a session: the same measure as `window_fill`, over its whole life.

One fold over the records of a conversation, which can go on when records are added. Per request it keeps the shares of
all sources and the end of a chain of messages; chains share their beginnings, as prompts do. Never changes the view.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Literal, TypeAlias

from reverie.context.ledger import BYTES_PER_TOKEN
from reverie.context.window_fill import NOT_RECORDED, Share, header_blocks, share_out, source_of
from reverie.models.calibration import Calibrator
from reverie.models.features import Features, measure_blocks
from reverie.models.wire import model_id
from reverie.quick import dataclass
from reverie.storage.transcript.records import (
    CacheEdits,
    Clears,
    CompactBoundary,
    Fold,
    Payload,
    ResultDecisions,
    SessionHeader,
    from_record,
)
from reverie.storage.transcript.view import View
from reverie.types import Block, Message, Record, ToolResultBlock, ToolUseBlock, Usage

EventKind: TypeAlias = Literal["compaction", "clearing", "offload", "fold"]
Key: TypeAlias = tuple[str, str]
"""A source, and the tool of its results."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One message of a prompt, and the messages before it. `since`: per block, the first request that had it."""

    message: Message
    before: Piece | None
    since: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WindowAt:
    """The window of one request. `number` counts from 1; the last one is the request that would come next."""

    number: int
    at: str | None
    model: str
    used: int
    shares: tuple[Share, ...]
    over: int
    """By how much the estimate is above what the server counted, in a session of another agent."""
    header: SessionHeader | None
    top: Piece | None
    weights: tuple[float, ...]
    """Of the calibrator at that time."""
    usage: Usage | None = None
    message_id: str | None = None
    uuid: str | None = None

    @property
    def is_sent(self) -> bool:
        return self.uuid is not None


@dataclass(frozen=True, slots=True)
class LifeEvent:
    """Something that changed the window before request `number`."""

    kind: EventKind
    number: int
    at: str | None
    what: str
    tokens: int = 0
    """Compaction: before it. Clearing and folding: saved."""


@dataclass(frozen=True, slots=True)
class Gone:
    """A result that is not in the window as it was: `kind` says how, `number` since which request."""

    kind: Literal["cleared", "deleted", "on disk"]
    number: int
    size: int = 0
    """In bytes, if the record says so."""


@dataclass(frozen=True, slots=True)
class LifeBlock:
    """One block of a prompt, in its order."""

    number: int
    source: str
    tool: str
    tokens: int
    block: Block
    since: int
    gone: Gone | None = None
    original: ToolResultBlock | None = None
    """As it was recorded, if the model sees something else."""
    tokens_before: int = 0
    """Of the original."""


@dataclass(slots=True)
class _Sum:
    features: Features
    blocks: int


class WindowLife:
    """The life of one window. Add records in conversation order."""

    def __init__(self) -> None:
        self.view = View()
        self.requests: list[WindowAt] = []
        self.events: list[LifeEvent] = []
        self._gone: dict[str, list[Gone]] = {}
        self._originals: dict[str, ToolResultBlock] = {}
        self._names: dict[str, str] = {}
        self._path: list[Piece] = []
        self._messages: tuple[Message, ...] = ()
        self._sums: list[dict[Key, _Sum]] = []
        self._of_header: tuple[SessionHeader | None, dict[Key, _Sum]] = (None, {})
        self._since: dict[int | str, tuple[Block, int]] = {}
        self._last_id: str | None = None

    def add(self, record: Record) -> None:
        """Takes in one record."""
        payload = from_record(record)
        if payload is not None:
            self._note(payload, record)
            self.view.apply(record)
            return
        message = record.message
        if message is None or record.data.get("isApiErrorMessage"):
            return
        if message.role == "user":
            self._remember(message, record)
            self.view.apply(record)
            return
        self._names |= {call.id: call.name for call in message.tool_uses}
        is_brought = "compactOf" in record.data
        if is_brought or (message.id is not None and message.id == self._last_id):
            self.view.apply(record)
            if not is_brought and message.usage is not None and self.requests:  # the last part knows the most
                self.requests[-1] = replace(self.requests[-1], usage=message.usage)
            return
        self._last_id = message.id
        sums, header = self._sample(), self.view.header
        usage = message.usage if not record.data.get("uncounted") else None
        usage = usage if usage is not None and usage.total > 0 else None
        estimate = self.view.meter.tokens
        self.view.apply(record)
        self.requests.append(
            replace(
                self._window(sums, header, usage.prompt if usage is not None else estimate, usage is not None),
                at=record.timestamp,
                model=model_id(str(message.fields.get("model") or (header.model if header is not None else ""))),
                usage=usage,
                message_id=message.id,
                uuid=record.uuid or "",
            )
        )

    def now(self) -> WindowAt:
        """Returns the window of the request that would be sent next."""
        sums = self._sample()
        return self._window(sums, self.view.header, self.view.meter.tokens, self.view.last_usage is not None)

    # -- measuring ------------------------------------------------------------------------------------------------

    def _window(self, sums: dict[Key, _Sum], header: SessionHeader | None, used: int, is_counted: bool) -> WindowAt:
        meter = self.view.meter
        weights = {key: max(0.0, meter.calibrator.estimate(one.features)) for key, one in sums.items()}
        blocks = {key: one.blocks for key, one in sums.items()}
        used = used if sums else 0
        known, unknown = sum(weights.values()), 0.0
        if header is None and is_counted:  # counted by its server, and in no record
            unknown = max(used - known, min(meter.unrecorded, used))
        if unknown > 0:
            weights[NOT_RECORDED, ""], blocks[NOT_RECORDED, ""] = unknown, 0
        return WindowAt(
            number=len(self.requests) + 1,
            at=None,
            model=model_id(header.model) if header is not None else "",
            used=used,
            shares=tuple(share_out(weights, blocks, used)),
            over=max(0, round(known + unknown - used)) if unknown > 0 else 0,
            header=header,
            top=self._path[-1] if self._path else None,
            weights=meter.calibrator.weights,
        )

    def _sample(self) -> dict[Key, _Sum]:
        """Brings the chain up to the messages of the view; returns the sums of all sources."""
        messages, before = self.view.messages(), self._messages
        header = self.view.header
        if header is not self._of_header[0]:
            self._of_header = (header, _add_up({}, [((s, t), b) for s, t, b in header_blocks(header)]))
            before = ()  # the sums of every message begin with those of the header
        same = next((n for n in (len(before), len(before) - 1) if n >= 0 and before[:n] == messages[:n]), -1)
        if same < 0:
            pairs = zip(before, messages, strict=False)
            same = next((n for n, (old, new) in enumerate(pairs) if old is not new), min(len(before), len(messages)))
        del self._path[same:], self._sums[same:]
        self._messages = messages
        for number in range(same, len(messages)):
            self._push(messages[number], header.reminder if header is not None and number == 0 else "")
        return self._sums[-1] if self._sums else self._of_header[1] if messages else {}

    def _push(self, message: Message, reminder: str) -> None:
        since = tuple(self._first_seen(block) for block in message.content)
        found = [(source_of(message, block, self._names.get, reminder), block) for block in message.content]
        before = self._sums[-1] if self._sums else self._of_header[1]
        self._path.append(Piece(message, self._path[-1] if self._path else None, since))
        self._sums.append(_add_up(before, found))

    def _first_seen(self, block: Block) -> int:
        match block:
            case ToolResultBlock():
                key = f"result {block.tool_use_id}"
            case ToolUseBlock():
                key = f"call {block.id}"
            case _:
                key = id(block)
        return self._since.setdefault(key, (block, len(self.requests) + 1))[1]  # kept: its id stays its own

    # -- what happened --------------------------------------------------------------------------------------------

    def _remember(self, message: Message, record: Record) -> None:
        kept_bytes = int(record.data.get("keptBytes") or 0)
        for block in message.tool_results:
            self._originals.setdefault(block.tool_use_id, block)
            if kept_bytes:
                self._leave("on disk", block.tool_use_id, kept_bytes)
                self._happened("offload", "a result put on disk", record, kept_bytes // BYTES_PER_TOKEN)

    def _leave(self, kind: Literal["cleared", "deleted", "on disk"], call: str, size: int = 0) -> None:
        known = self._gone.setdefault(call, [])
        known.append(Gone(kind, len(self.requests) + 1, size or (known[-1].size if known else 0)))

    def _happened(self, kind: EventKind, what: str, record: Record, tokens: int = 0) -> None:
        self.events.append(LifeEvent(kind, len(self.requests) + 1, record.timestamp, what, tokens))

    def _note(self, payload: Payload, record: Record) -> None:
        happened = partial(self._happened, record=record)
        match payload:
            case CompactBoundary():
                by = f" by {payload.writer}" if payload.writer else ""
                happened("compaction", f"{payload.trigger} compaction{by}", tokens=payload.tokens_before)
            case Clears():
                for call in payload.cleared:
                    self._leave("cleared", call)
                happened(
                    "clearing", f"{len(payload.cleared)} results cleared ({payload.strategy})", tokens=payload.tokens
                )
            case CacheEdits():
                for call in payload.references:
                    self._leave("deleted", call)
                happened("clearing", f"{len(payload.references)} results deleted in the cache", tokens=payload.tokens)
            case ResultDecisions(replaced=replaced) if replaced:
                for call in replaced:
                    self._leave("on disk", call)
                happened("offload", f"{len(replaced)} results put on disk")
            case Fold():
                happened("fold", "old messages folded", tokens=payload.tokens)
            case _:
                pass

    # -- one request ----------------------------------------------------------------------------------------------

    def blocks(self, at: WindowAt) -> list[LifeBlock]:
        """Returns the blocks of one request in the order of its prompt; their tokens add up to what is known of it."""
        found: list[tuple[str, str, Block, int]] = [(*one, 1) for one in header_blocks(at.header)]
        found += self._message_blocks(at)
        calibrator = replace(Calibrator.prior(), weights=at.weights)

        def weigh(block: Block) -> float:
            return max(0.0, calibrator.estimate(measure_blocks((block,))))

        unknown = sum(share.tokens for share in at.shares if share.source == NOT_RECORDED)
        weights = [weigh(block) for _, _, block, _ in found]
        scale = (at.used - unknown) / (sum(weights) or 1.0)
        made, running, before = list[LifeBlock](), 0.0, 0
        for weight, (source, tool, block, since) in zip(weights, found, strict=True):
            running += weight * scale
            one = LifeBlock(len(made) + 1, source, tool, round(running) - before, block, since)
            before = round(running)
            if isinstance(block, ToolResultBlock) and (gone := self.gone_at(block.tool_use_id, at.number)) is not None:
                original = self._originals.get(block.tool_use_id)
                tokens = round(weigh(original) * scale) if original is not None else 0
                one = replace(one, gone=gone, original=original, tokens_before=tokens)
            made.append(one)
        return made

    def gone_at(self, call: str, number: int) -> Gone | None:
        """Returns how a result had left the window by that request, if it had."""
        return next((one for one in reversed(self._gone.get(call, ())) if one.number <= number), None)

    def _message_blocks(self, at: WindowAt) -> Iterator[tuple[str, str, Block, int]]:
        path, piece = list[Piece](), at.top
        while piece is not None:
            path.append(piece)
            piece = piece.before
        for number, one in enumerate(reversed(path)):
            reminder = at.header.reminder if at.header is not None and number == 0 else ""
            for block, since in zip(one.message.content, one.since, strict=True):
                yield (*source_of(one.message, block, self._names.get, reminder), block, since)


def _add_up(before: dict[Key, _Sum], blocks: list[tuple[Key, Block]]) -> dict[Key, _Sum]:
    """Returns the sums with these blocks; what does not change is shared."""
    sums = dict(before)
    for key, block in blocks:
        had = sums.get(key, _Sum(Features(), 0))
        sums[key] = _Sum(had.features + measure_blocks((block,)), had.blocks + 1)
    return sums
