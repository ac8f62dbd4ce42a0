"""Counts the tokens of blocks by a fixed rule, and makes a fingerprint of each.

The rule: text and thinking are UTF-8 bytes / 4; JSON (tool definitions, tool inputs) is bytes / 3; an image is 1,600
and a document that is not text 2,000. Every block is rounded up. Roles, messages and tools add nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, cast

TEXT_BYTES_PER_TOKEN = 4
JSON_BYTES_PER_TOKEN = 3
IMAGE_TOKENS = 1_600
DOCUMENT_TOKENS = 2_000
_REMEMBERED = 200_000
_HELD_CHARACTERS = 64_000_000

Block = Mapping[str, Any]
Identity = tuple[Any, ...]

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode


def digest(text: str) -> bytes:
    """A fingerprint of 16 bytes."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def text_tokens(text: str) -> int:
    """Tokens of plain text by the rule above."""
    return -(-_size(text) // TEXT_BYTES_PER_TOKEN)


def json_tokens(value: object) -> int:
    """Tokens of a JSON value by the rule above."""
    return -(-_size(_encode(value)) // JSON_BYTES_PER_TOKEN)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


class Fingerprints:
    """The fingerprints and token counts of blocks, kept by content, so that each block is counted once."""

    def __init__(self, most: int | None = None) -> None:
        self._seen: dict[Identity, tuple[bytes, int]] = {}
        self._held = 0
        self._most = most or _HELD_CHARACTERS

    def block(self, role: str, block: Block) -> tuple[bytes, int]:
        """Fingerprint and tokens of one content block, without cache markers and null fields."""
        identity = _identity(role, block)
        found = self._seen.get(identity)
        if found is None:
            shown = repr(identity)
            found = self._remember(identity, (digest(shown), block_tokens(block)), len(shown))
        return found

    def tool(self, tool: Block) -> tuple[bytes, int]:
        """Fingerprint and tokens of one tool definition."""
        text = _encode(_bare(tool))
        found = self._seen.get(("tool", text))
        if found is None:
            tokens = -(-_size(text) // JSON_BYTES_PER_TOKEN)
            found = self._remember(("tool", text), (digest("tool" + text), tokens), len(text))
        return found

    def _remember(self, identity: Identity, found: tuple[bytes, int], size: int) -> tuple[bytes, int]:
        if len(self._seen) >= _REMEMBERED or self._held > self._most:
            self._seen.clear()
            self._held = 0
        self._held += size
        self._seen[identity] = found
        return found


def block_tokens(block: Block) -> int:
    """Tokens of one content block, by its type."""
    match block.get("type"):
        case "text" | "thinking" as kind:
            return text_tokens(str(block.get(kind, "")))
        case "redacted_thinking":
            return text_tokens(str(block.get("data", "")))
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            return json_tokens([block.get("name"), block.get("input")])
        case "tool_result":
            return _content_tokens(block.get("content"))
        case "compaction":
            return text_tokens(str(block.get("content") or ""))
        case "image":
            return IMAGE_TOKENS
        case "document":
            return _document_tokens(block)
        case _:
            return json_tokens(_bare(block))


def _content_tokens(content: object) -> int:
    return text_tokens(content) if isinstance(content, str) else sum(block_tokens(part) for part in _parts(content))


def _document_tokens(block: Block) -> int:
    source = cast("Mapping[str, Any]", block.get("source") or {})
    match source.get("type"):
        case "text":
            return text_tokens(str(source.get("data", "")))
        case "content":
            return _content_tokens(source.get("content"))
        case _:
            return DOCUMENT_TOKENS


def _parts(content: object) -> Sequence[Block]:
    if not isinstance(content, Sequence) or isinstance(content, str):
        return ()
    return [cast("Block", part) for part in cast("Sequence[object]", content) if isinstance(part, Mapping)]


def _identity(role: str, block: Block) -> Identity:
    """Two blocks with the same identity are the same to the cache. The order of keys only counts in a tool input."""
    kind = block.get("type")
    size = len(block) - ("cache_control" in block)
    if kind == "text" and size == 2:
        return (role, block.get("text"))
    if kind == "tool_result":
        content = block.get("content")
        if not isinstance(content, str):
            content = tuple(_identity("", part) for part in _parts(content))
        return (role, kind, block.get("tool_use_id"), content, bool(block.get("is_error")))
    if kind == "tool_use" and size == 4:
        return (role, kind, block.get("id"), block.get("name"), _encode(block.get("input")))
    bare = _bare(block)
    if len(bare) < size:
        # An SDK also sends its empty fields; without them the block is the same.
        return _identity(role, bare)
    return (role, kind, *((key, _encode(bare[key])) for key in sorted(bare)))


def _bare(block: Block) -> dict[str, Any]:
    return {key: value for key, value in block.items() if value is not None and key != "cache_control"}
