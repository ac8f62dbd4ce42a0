"""Which identifiers came up, the ones most likely to be needed again first: used often, lately, and by whom.

A name weighs by where it stood: what was written into a file or typed by the person says more about the work than what
a search printed. Weights halve with distance from the end, measured in messages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from reverie.layers.l4_compaction.by_code.operations import given_to
from reverie.storage.view import Entry
from reverie.types import Block, Origin, TextBlock, ToolResultBlock, ToolUseBlock

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{3,59}")
_IS_CODE = re.compile(r"_[A-Za-z0-9]|[a-z][A-Z]|[A-Z]{2}[a-z]|[A-Za-z]\d|^[A-Z][A-Z0-9_]{3,}$")
_NOT_A_NAME = re.compile(r"[0-9a-f]{4,}|[A-Z]{4,}|n[A-Z][a-z]+")  # hashes, shouting, an escaped line break
_HALF_LIFE = 40.0
_PERSON, _EDITED, _SAID, _CALLED, _PRINTED = 6.0, 3.0, 3.0, 2.0, 0.25
_MOST_FROM_ONE_BLOCK = 3


def names_in_use(entries: Sequence[Entry], limit: int) -> list[str]:
    """The names that matter, best first. Only what looks like code: inner capitals, underscores, digits."""
    weights = dict[str, float]()
    last = len(entries)
    for at, entry in enumerate(entries):
        near = 0.5 ** ((last - at) / _HALF_LIFE) + 0.05
        for block in entry.message.content:
            text, weight = _weighed(block)
            counts = dict[str, int]()
            for name in _NAME.findall(text):
                if (
                    _IS_CODE.search(name)
                    and not _NOT_A_NAME.fullmatch(name)
                    and counts.get(name, 0) < _MOST_FROM_ONE_BLOCK
                ):
                    counts[name] = counts.get(name, 0) + 1
            for name, times in counts.items():
                weights[name] = weights.get(name, 0.0) + weight * near * times
    ranked = sorted(weights, key=lambda name: (-weights[name], name))
    return ranked[:limit]


def _weighed(block: Block) -> tuple[str, float]:
    match block:
        case TextBlock(text=text, origin=Origin.PERSON):
            return text, _PERSON
        case TextBlock(text=text, origin=Origin.MODEL):
            return text, _SAID
        case ToolUseBlock(name="Edit" | "Write" | "MultiEdit"):
            return _values(block), _EDITED
        case ToolUseBlock():
            return _values(block), _CALLED
        case ToolResultBlock():
            return block.text[:20_000], _PRINTED
        case _:
            return "", 0.0


def _values(call: ToolUseBlock) -> str:
    return "\n".join(str(value) for value in given_to(call).values())[:40_000]
