"""Masks secrets in what code writes about a conversation: only the transcript may have them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

from reverie.memory.secrets.scan import MASK, find_secrets, redact
from reverie.storage.transcript.view import Entry
from reverie.types import TextBlock, ToolUseBlock

_PART: Final = re.compile(r"\w{5,}")
_MOST: Final = 120_000
"""Characters of the conversation that are searched, the newest first: less than half a second."""


def without_secrets(text: str, entries: Sequence[Entry]) -> str:
    """The text without secrets, and without names that are parts of one: notes take single names out of the session."""
    secrets = {said[found.start : found.end] for said in _texts(entries) for found in find_secrets(said)}
    hidden = {part for secret in secrets for part in _PART.findall(secret) if not part.islower()}
    return _PART.sub(lambda found: MASK if found[0] in hidden else found[0], redact(text))


def _texts(entries: Sequence[Entry]) -> Iterator[str]:
    left = _MOST
    for entry in reversed(entries):
        for one in entry.message.content:
            if isinstance(one, TextBlock | ToolUseBlock) and left > 0:
                said = one.text if isinstance(one, TextBlock) else json.dumps(one.input, ensure_ascii=False)
                yield said[:left]
                left -= len(said)
