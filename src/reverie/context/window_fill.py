"""What fills the window, by source: system prompt, tools, instructions, messages, thinking, calls and results.

Every block is weighed by the calibrated estimate, and the weights are scaled so that they add up to the used tokens.
Runs only on request, never during a round.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping

from reverie.layers.l2_microcompact.lessons import Lessons
from reverie.models.features import measure_blocks
from reverie.models.window import Thresholds
from reverie.models.wire import model_id
from reverie.quick import dataclass
from reverie.storage.transcript.records import SessionHeader
from reverie.storage.transcript.view import View
from reverie.types import (
    Block,
    DocumentBlock,
    ImageBlock,
    JsonObject,
    Message,
    Origin,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    without_item,
)

SOURCES = {
    "not_recorded": "system prompt and tools of the other agent (not recorded)",
    "system": "system prompt",
    "tools": "tool definitions",
    "instructions": "instructions and memory index",
    "summary": "summary of what came before",
    "user": "what you wrote",
    "material": "what you piped or pasted",
    "assistant": "what the model wrote",
    "thinking": "thinking",
    "tool_calls": "tool calls",
    "tool_results": "tool results",
    "images": "images and documents",
    "restored": "files read again after a compaction",
    "recalled": "recalled memories",
    "injected": "reminders and hooks",
    "agents": "messages of agents",
}
"""Every source in display order, with its label."""

NOT_RECORDED = "not_recorded"
_ORIGINS = {
    "user": (Origin.TYPED, Origin.ENTERED),
    "material": (Origin.PASTED, Origin.PIPED),
    "assistant": (Origin.MODEL,),
    "restored": (Origin.TOOL, Origin.PAGE, Origin.PLAN),
    "recalled": (Origin.RECALLED,),
    "injected": (Origin.HOOK, Origin.IMPORTED, Origin.CODE),
    "agents": (Origin.AGENT, Origin.TEAM),
    "summary": (Origin.SUMMARY, Origin.NOTES),
}
_TEXTS = {origin: source for source, origins in _ORIGINS.items() for origin in origins}

_BLOCKS: dict[type, str] = {
    ThinkingBlock: "thinking",
    ToolUseBlock: "tool_calls",
    ImageBlock: "images",
    DocumentBlock: "images",
}


@dataclass(frozen=True, slots=True)
class Share:
    """What one source uses of the window. Tool results have one share per `tool`."""

    source: str
    tokens: int
    blocks: int
    tool: str = ""

    @property
    def label(self) -> str:
        name = SOURCES[self.source]
        return f"{name}: {self.tool}" if self.tool else name


@dataclass(frozen=True, slots=True)
class WindowFill:
    """The window in tokens: `used` + `free` + `buffer` + `reserve` is the window, unless it is over-full."""

    model: str
    window: int
    used: int
    shares: tuple[Share, ...]
    free: int
    """Left before a compaction."""
    buffer: int
    """Between compaction and the reserve."""
    reserve: int
    """Kept for the response."""
    percent_left: int
    ttl: str = "5m"
    ttl_reason: str = ""
    on_disk: int = 0
    on_disk_bytes: int = 0
    cleared: int = 0
    cleared_tokens: int = 0
    requested_again: int = 0
    """How often a cleared result was requested again."""
    resting_rounds: int = 0
    """For how many rounds nothing is cleared because of that."""
    over: int = 0
    """By how much the parts of another agent's context exceed the reported total."""

    def to_json(self) -> JsonObject:
        return {
            "model": self.model,
            "window": self.window,
            "used": self.used,
            "free": self.free,
            "buffer": self.buffer,
            "reserve": self.reserve,
            "percent_left": self.percent_left,
            "sources": [
                {"source": s.source, "label": s.label, "tokens": s.tokens, "blocks": s.blocks}
                | ({"tool": s.tool} if s.tool else {})
                for s in self.shares
            ],
            "cache": {"ttl": self.ttl, "why": self.ttl_reason},
            "on_disk": {"results": self.on_disk, "bytes": self.on_disk_bytes},
            "cleared": {
                "results": self.cleared,
                "tokens": self.cleared_tokens,
                "requested_again": self.requested_again,
                "resting_rounds": self.resting_rounds,
            },
            "over": self.over,
        }

    @classmethod
    def from_json(cls, raw: JsonObject) -> WindowFill:
        """Reads what `to_json` returned."""
        shares = tuple(Share(s["source"], s["tokens"], s["blocks"], s.get("tool", "")) for s in raw["sources"])
        plain = {key: raw[key] for key in ("model", "window", "used", "free", "buffer", "reserve", "percent_left")}
        return cls(
            shares=shares,
            ttl=raw["cache"]["ttl"],
            ttl_reason=raw["cache"]["why"],
            on_disk=raw["on_disk"]["results"],
            on_disk_bytes=raw["on_disk"]["bytes"],
            cleared=raw["cleared"]["results"],
            cleared_tokens=raw["cleared"]["tokens"],
            requested_again=raw["cleared"].get("requested_again", 0),
            resting_rounds=raw["cleared"].get("resting_rounds", 0),
            over=raw.get("over", 0),
            **plain,
        )


def fill(view: View, limits: Thresholds, *, model: str = "") -> WindowFill:
    """Measures the window of this conversation. `model` names it if there is no header."""
    weigh = view.meter.calibrator.estimate
    weights, blocks = dict[tuple[str, str], float](), dict[tuple[str, str], int]()
    for source, tool, block in _sources(view):
        key = (source, tool)
        weights[key] = weights.get(key, 0.0) + max(0.0, weigh(measure_blocks((block,))))
        blocks[key] = blocks.get(key, 0) + 1
    used = view.meter.tokens if blocks else 0
    header = view.header
    known, unknown = sum(weights.values()), 0.0
    if header is None and view.last_usage is not None:  # counted by its server, and in no record
        unknown = max(used - known, min(view.meter.unrecorded, used))
    if unknown > 0:
        weights[NOT_RECORDED, ""], blocks[NOT_RECORDED, ""] = unknown, 0
    room, lessons = max(0, limits.effective - limits.autocompact), Lessons.of(view)
    return WindowFill(
        model=model_id(header.model) if header is not None else model,
        window=limits.window,
        used=used,
        shares=tuple(share_out(weights, blocks, used)),
        over=max(0, round(known + unknown - used)) if unknown > 0 else 0,
        free=max(0, limits.autocompact - used),
        buffer=max(0, min(room, limits.effective - used)),
        reserve=max(0, min(limits.window - limits.effective, limits.window - used)),
        percent_left=limits.percent_left(used),
        ttl=header.ttl if header is not None else "5m",
        ttl_reason=header.ttl_reason if header is not None else "",
        on_disk=len(view.on_disk) + len(view.replaced),
        on_disk_bytes=sum(view.on_disk),
        cleared=len(view.cleared),
        cleared_tokens=view.cleared_tokens,
        requested_again=sum(lessons.again.values()),
        resting_rounds=max(0, lessons.resting_until - lessons.rounds),
    )


def share_out(
    weights: Mapping[tuple[str, str], float], blocks: Mapping[tuple[str, str], int], used: int
) -> Iterator[Share]:
    """Yields whole tokens that add up to `used`: each share is the step between two rounded running sums."""
    unknown = weights.get((NOT_RECORDED, ""), 0.0)
    scale = (used - unknown) / (sum(weights.values()) - unknown or 1.0)
    order = list(SOURCES)
    running, before = 0.0, 0
    for key in sorted(weights, key=lambda key: (order.index(key[0]), -weights[key])):
        running += weights[key] * (1.0 if key[0] == NOT_RECORDED else scale)
        yield Share(key[0], round(running) - before, blocks[key], key[1])
        before = round(running)


def _sources(view: View) -> Iterator[tuple[str, str, Block]]:
    header = view.header
    yield from header_blocks(header)
    for number, message in enumerate(view.messages()):
        reminder = header.reminder if header is not None and number == 0 else ""
        for block in message.content:
            yield (*source_of(message, block, view.call_name, reminder), block)


def header_blocks(header: SessionHeader | None) -> Iterator[tuple[str, str, TextBlock]]:
    """Yields what the header adds to the prompt, with source and name: texts of the system prompt, then the tools."""
    if header is not None:
        for text in header.system:
            yield "system", "", TextBlock(text)
        for schema in header.tools:
            yield "tools", "", TextBlock(json.dumps(without_item(schema)))


def source_of(
    message: Message, block: Block, call_name: Callable[[str], str | None], reminder: str = ""
) -> tuple[str, str]:
    """Returns the source of a block and, for a result, its tool. `reminder`: the header's, in the first message."""
    if reminder and isinstance(block, TextBlock) and block.text == reminder:
        return "instructions", ""
    if isinstance(block, ToolResultBlock):
        return "tool_results", call_name(block.tool_use_id) or "unknown"
    if type(block) in _BLOCKS:
        return _BLOCKS[type(block)], ""
    if message.role == "assistant":
        return "assistant", ""
    return (_TEXTS[block.origin] if isinstance(block, TextBlock) else "injected"), ""
