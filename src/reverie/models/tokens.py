"""The fixed estimate of tokens: bytes/4, JSON bytes/2, a flat number for images.

The same block always gets the same number. `calibration.py` is more precise after a model has answered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import PurePath
from typing import assert_never, cast

from reverie.types import (
    Block,
    DocumentBlock,
    ImageBlock,
    Json,
    Message,
    OtherBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)

PROSE_BYTES = 4
"""Bytes per token of text that is not JSON."""

JSON_BYTES = 2
"""Bytes per token of JSON, where quotes, braces and escapes are separate tokens."""

MEDIA_TOKENS = 2_000
"""Tokens of an image or a document of any size."""

_SEALED = 1_000
_ENCODED = re.compile(r"(?:data:[^,\s]{0,100},)?[A-Za-z0-9+/_=-]{900}")
_JSON_SUFFIXES = frozenset({".json", ".jsonl"})


def encoded(text: str) -> bytes:
    """The UTF-8 bytes of `text`; half a surrogate pair, which some tools print, has three bytes."""
    return text.encode("utf-8", "surrogatepass")


def json_text(value: Json) -> str:
    """`value` as JSON in a request; values that JSON cannot hold as their printed form."""
    return json.dumps(value, ensure_ascii=False, default=str)


def without_sealed(value: Json) -> tuple[Json, int]:
    """`value` without its long strings of encoded bytes (images, sound, sealed text), and how many they are."""
    found = 0

    def walk(part: Json) -> Json:
        nonlocal found
        if isinstance(part, dict):
            return {key: walk(inner) for key, inner in cast("dict[str, Json]", part).items()}
        if isinstance(part, list):
            return [walk(inner) for inner in cast("list[Json]", part)]
        if isinstance(part, str) and len(part) >= _SEALED and _ENCODED.match(part):
            found += 1
            return ""
        return part

    return walk(value), found


def is_json_file(path: str) -> bool:
    """Whether a file of this name holds JSON."""
    return PurePath(path).suffix.lower() in _JSON_SUFFIXES


def opens_json_file(call: ToolUseBlock) -> bool:
    """Whether a tool call has a JSON file in its input, so that its result counts as JSON."""
    given: Json = call.input
    match given:
        case {"file_path": str(path)} | {"path": str(path)}:
            return is_json_file(path)
        case _:
            return False


def estimate_text(text: str, *, is_json: bool = False) -> int:
    """Tokens of a text by the fixed rule, rounded up."""
    return -(-len(encoded(text)) // (JSON_BYTES if is_json else PROSE_BYTES))


def estimate_block(block: Block, *, is_json: bool = False) -> int:
    """Tokens of one block by the fixed rule. `is_json`: the text in it comes from a .json or .jsonl file."""
    match block:
        case TextBlock():
            return estimate_text(block.text, is_json=is_json)
        case ThinkingBlock():
            return estimate_text(block.thinking)
        case ToolUseBlock():
            return estimate_text(json_text(block.input), is_json=True)
        case ToolResultBlock(content=tuple() as parts):
            return sum(estimate_block(part, is_json=is_json) for part in parts)
        case ToolResultBlock():
            return estimate_text(block.text, is_json=is_json)
        case ImageBlock() | DocumentBlock():
            return MEDIA_TOKENS
        case OtherBlock(raw={"type": "reverie_item"} as item):
            plain, sealed = without_sealed(item)
            return estimate_text(json_text(plain), is_json=True) + sealed * MEDIA_TOKENS
        case OtherBlock():
            return estimate_text(json_text(block.raw), is_json=True)
        case _:
            assert_never(block)


def estimate_blocks(blocks: Iterable[Block]) -> int:
    """Tokens of blocks in order. The result of an earlier call that opened a JSON file counts as JSON."""
    total = 0
    json_calls: set[str] = set()
    for block in blocks:
        if isinstance(block, ToolUseBlock) and opens_json_file(block):
            json_calls.add(block.id)
        from_json = isinstance(block, ToolResultBlock) and block.tool_use_id in json_calls
        total += estimate_block(block, is_json=from_json)
    return total


def estimate_message(message: Message) -> int:
    """Tokens of one message by the fixed rule."""
    return estimate_blocks(message.content)


def pad(tokens: int) -> int:
    """An estimate for a decision that must not come late: four thirds, rounded up."""
    return -(-tokens * 4 // 3)
