"""A request body as the cache sees it: positions in the order of rendering, a cumulative hash for each, and markers.

The order is tools, system, messages. Settings of a request (tool choice, thinking, images, speed …) become part of the
hash where the documentation says that they begin to matter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from hashlib import blake2b
from typing import Any, cast

from reverie.models.catalogue import ModelFacts
from reverie.quick import dataclass
from reverie.simulator.check import check_markers, check_objects, ttl_of
from reverie.simulator.edits import MessageView
from reverie.simulator.errors import invalid
from reverie.simulator.tokens import Block, Fingerprints, digest

Place = tuple[str, int, int]
MAX_POSITIONS = 100_000
"""The most blocks in one request."""
ATTRIBUTION = "x-anthropic-billing-header:"
"""Begins a system block that the server takes out before it reads the prompt. Claude Code sends it, with a value that
changes."""
_UNMARKABLE = ("thinking", "redacted_thinking")


@dataclass(frozen=True, slots=True)
class Mark:
    """A cache marker: its position and lifetime."""

    position: int
    ttl: str


@dataclass(slots=True)
class Prompt:
    """Positions in the order of rendering. `chain[i]` is the hash and `tokens[i]` the size up to position i."""

    model: str
    digests: list[bytes] = field(default_factory=list[bytes])
    chain: list[bytes] = field(default_factory=list[bytes])
    tokens: list[int] = field(default_factory=list[int])
    places: list[Place] = field(default_factory=list[Place])
    marks: list[Mark] = field(default_factory=list[Mark])
    system_starts: int = 0
    messages_start: int = 0
    settings: dict[str, str] = field(default_factory=dict[str, str])
    """The settings in the hash, by name."""
    edits: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    """Results that `cache_edits` deleted: reference and position, in the order they were sent."""
    deleted_tokens: int = 0
    altered: dict[int, str] = field(default_factory=dict[int, str])
    """Messages that the server changed: index and reason."""
    betas: tuple[str, ...] = ()
    """Beta features that change the rendering of a prompt."""
    conversation: bytes = b""
    """Fingerprint of the first message block, the same for all requests of a conversation."""
    last_answer: int = -1
    """Position of the last block of the assistant; -1 if it said nothing yet."""

    @property
    def total(self) -> int:
        """Tokens of the whole prompt."""
        return self.tokens[-1] if self.tokens else 0

    def path(self, position: int) -> str:
        """The path of a position in the body, such as `messages[12].content[0]`."""
        return place_path(self.places[position])


def place_path(place: Place) -> str:
    """The path of a place, such as `tools[3]`, `system[0]` or `messages[12].content[0]`."""
    section, index, block = place
    return f"{section}[{index}]" if block < 0 else f"{section}[{index}].content[{block}]"


def _dot_path(place: Place) -> str:
    section, index, block = place
    return f"{section}.{index}" if block < 0 else f"{section}.{index}.content.{block}"


SYSTEM_SETTINGS = ("speed", "citations", "output_format")
"""Settings that change the system part; the tools before it stay cached."""
RENDERING_BETAS = ("token-efficient-tools-",)
"""Beta features that are part of the hash: a change of them costs the whole cache."""
MESSAGE_SETTINGS = ("tool_choice", "images", "thinking", "effort")
"""Settings that only change how messages are read; tools and system stay cached."""


def render(
    body: Mapping[str, Any],
    views: Sequence[MessageView],
    facts: ModelFacts,
    seen: Fingerprints,
    workspace: str = "",
    betas: Sequence[str] = (),
) -> Prompt:
    """The prompt of a request. `views`: its messages after the server's edits. Refuses markers that break a rule."""
    model = facts.name if facts.known else str(body["model"])
    rendering = tuple(sorted(beta for beta in betas if beta.startswith(RENDERING_BETAS)))
    prompt = Prompt(model, betas=rendering)
    writer = _Writer(prompt, seen, digest("\0".join((model, workspace, *rendering))))
    writer.tools(cast("Sequence[Block]", body.get("tools") or ()))
    prompt.system_starts = len(prompt.chain)
    system = body.get("system") or ()
    blocks = ({"type": "text", "text": system},) if isinstance(system, str) else cast("Sequence[Block]", system)
    prompt.settings = _settings(body, views)
    writer.enter(prompt.settings, SYSTEM_SETTINGS)
    writer.system(blocks)
    prompt.messages_start = len(prompt.chain)
    writer.enter(prompt.settings, MESSAGE_SETTINGS)
    writer.messages(views, _deletions(body))
    _place_automatic(prompt, body, writer)
    check_markers([(_dot_path(prompt.places[mark.position]), mark.ttl) for mark in prompt.marks])
    return prompt


class _Writer:
    def __init__(self, prompt: Prompt, seen: Fingerprints, seed: bytes) -> None:
        self._prompt = prompt
        self._seen = seen
        self._hash = seed
        self._total = 0
        self._chain, self._digests = prompt.chain, prompt.digests
        self._tokens, self._places = prompt.tokens, prompt.places
        self.markable: int | None = None

    def enter(self, settings: Mapping[str, str], names: Sequence[str]) -> None:
        """Adds settings to the hash."""
        text = "\0".join(settings[name] for name in names)
        self._hash = blake2b(self._hash + text.encode("utf-8", "surrogatepass"), digest_size=16).digest()

    def tools(self, tools: Sequence[Block]) -> None:
        # Web search is rendered after the other tools, so switching it on or off does not change their cache.
        order = sorted(range(len(tools)), key=lambda i: str(tools[i].get("type", "")).startswith("web_search_"))
        for index in order:
            found, tokens = self._seen.tool(tools[index])
            self._add(("tools", index, -1), found, tokens, tools[index].get("cache_control"))

    def system(self, blocks: Sequence[Block]) -> None:
        for index, block in enumerate(blocks):
            if str(block.get("text")).startswith(ATTRIBUTION):
                continue
            found, tokens = self._seen.block("system", block)
            self._add(("system", index, -1), found, tokens, block.get("cache_control"))

    def messages(self, views: Sequence[MessageView], deletions: Mapping[str, int]) -> None:
        prompt, read = self._prompt, self._seen.block
        missing = dict(deletions)
        for view in views:
            index, role = view.index, view.role
            if view.altered:
                prompt.altered[index] = view.altered
            for place, block in enumerate(view.blocks):
                if block is None or (block.get("type") == "compaction" and not block.get("content")):
                    continue
                found, tokens = read(role, block)
                if not prompt.conversation:
                    prompt.conversation = found
                kind = block.get("type")
                marker = block.get("cache_control")
                if kind == "tool_result":
                    if marker is None and isinstance(block.get("content"), list):
                        marker = _inner_marker(block)
                    if missing and block.get("tool_use_id") in missing:
                        prompt.edits.append((str(block["tool_use_id"]), len(prompt.chain)))
                        prompt.deleted_tokens += tokens
                        del missing[str(block["tool_use_id"])]
                        tokens = 0
                markable = view.markable and kind not in _UNMARKABLE
                self._add(("messages", index, place), found, tokens, marker, markable)
            if role == "assistant":
                prompt.last_answer = len(prompt.chain) - 1
        for reference, number in missing.items():
            raise invalid(f"cache_edits.edits.{number}.cache_reference: no `tool_result` with id {reference}")
        prompt.edits.sort(key=lambda edit: deletions[edit[0]])

    def _add(self, place: Place, found: bytes, tokens: int, marker: object, markable: bool = True) -> None:
        chain = self._chain
        position = len(chain)
        if position >= MAX_POSITIONS:
            raise invalid(f"messages: at most {MAX_POSITIONS:,} tools, system and content blocks are allowed")
        if marker is not None:
            ttl = ttl_of(marker, _dot_path(place))
            if ttl is not None:
                self._prompt.marks.append(Mark(position, ttl))
        if markable:
            self.markable = position
        self._hash = key = blake2b(self._hash + found, digest_size=16).digest()
        self._total = total = self._total + tokens
        self._digests.append(found)
        chain.append(key)
        self._tokens.append(total)
        self._places.append(place)


def _inner_marker(block: Block) -> object:
    """A marker on a part of a tool result with parts. It counts for the result, because parts have no positions."""
    parts = cast("list[Block]", block["content"])
    return next((part["cache_control"] for part in parts if part.get("cache_control") is not None), None)


def _place_automatic(prompt: Prompt, body: Mapping[str, Any], writer: _Writer) -> None:
    """Puts the top-level `cache_control` on the last block that can have a marker."""
    ttl = ttl_of(body.get("cache_control"), "")
    if ttl is None or writer.markable is None:
        return
    there = next((mark for mark in prompt.marks if mark.position == writer.markable), None)
    if there is not None:
        if there.ttl == ttl:
            return
        path = _dot_path(prompt.places[there.position])
        raise invalid(
            f"cache_control.ttl: the last cacheable block ({path}) already has a cache_control with ttl='{there.ttl}', "
            f"which differs from the top-level ttl='{ttl}'."
        )
    if len(prompt.marks) >= 4:
        raise invalid(
            "A maximum of 4 blocks with cache_control may be provided. "
            f"Found {len(prompt.marks)} and a top-level cache_control, which needs its own slot."
        )
    prompt.marks.append(Mark(writer.markable, ttl))
    prompt.marks.sort(key=lambda mark: mark.position)


def _deletions(body: Mapping[str, Any]) -> dict[str, int]:
    """The references that `cache_edits` deletes, each with its number in the list."""
    given = body.get("cache_edits")
    if not given:
        return {}
    edits = cast("Mapping[str, Any]", given).get("edits") if isinstance(given, Mapping) else ""
    found: dict[str, int] = {}
    for number, edit in enumerate(check_objects(edits, "cache_edits.edits")):
        if edit.get("type") != "delete":
            raise invalid(f"cache_edits.edits.{number}.type: Input should be 'delete'")
        reference = edit.get("cache_reference")
        if not isinstance(reference, str):
            raise invalid(f"cache_edits.edits.{number}.cache_reference: Field required")
        found.setdefault(reference, number)
    return found


def _settings(body: Mapping[str, Any], views: Sequence[MessageView]) -> dict[str, str]:
    output = cast("Mapping[str, Any]", body.get("output_config") or {})
    images, citations = _scan(views)
    return {
        "speed": str(body.get("speed") or "standard"),
        "citations": str(citations),
        "output_format": _plain(output.get("format")),
        "tool_choice": _plain(body.get("tool_choice") or {"type": "auto"}),
        "images": str(images),
        "thinking": _plain(body.get("thinking") or {"type": "disabled"}),
        "effort": str(output.get("effort") or ""),
    }


def _scan(views: Sequence[MessageView]) -> tuple[bool, bool]:
    """Whether the messages have images, and documents with citations."""
    images = citations = False
    for view in views:
        if view.role != "user":
            continue
        for block in view.blocks:
            kind = None if block is None else block.get("type")
            if block is None or kind == "text":
                continue
            parts = block.get("content") if kind == "tool_result" else None
            if isinstance(parts, str):
                continue
            for each in cast("list[object]", parts) if isinstance(parts, list) else (block,):
                if isinstance(each, Mapping):
                    part = cast("Block", each)
                    images = images or part.get("type") == "image"
                    cited = part.get("citations")
                    citations = citations or (isinstance(cited, Mapping) and bool(cast("Block", cited).get("enabled")))
    return images, citations


def _plain(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)
