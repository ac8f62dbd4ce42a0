"""What the transcripts of past sessions hold and who said it: what the write gate judges a dream's statements by.

Only what a person typed supports a new statement; tool results and pages are read too, to know what must not. Bounded:
the newest transcripts, and of long foreign text its beginning. A file that cannot be read is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from reverie.errors import ReverieError
from reverie.memory.changes import Evidence
from reverie.storage.transcript import read_records
from reverie.types import Message, Origin, TextBlock, ToolResultBlock

MOST_TRANSCRIPTS: Final = 50
MOST_BYTES: Final = 64_000_000
"""Of a transcript; a larger one is left out."""
_FOREIGN_CHARACTERS: Final = 4_000
_TYPED_CHARACTERS: Final = 20_000
_ALL_CHARACTERS: Final = 8_000_000


def transcript_evidence(paths: Sequence[Path]) -> tuple[Evidence, ...]:
    """Who said what in these transcripts (newest first), oldest first."""
    found: list[Evidence] = []
    size = 0
    for path in reversed(paths[:MOST_TRANSCRIPTS]):
        try:
            if path.stat().st_size > MOST_BYTES:
                continue
            records = read_records(path).records
        except (OSError, ReverieError):
            continue
        for record in records:
            if record.message is None or record.is_sidechain:
                continue
            for one in message_evidence([(record.message, record.uuid or "")]):
                size += len(one.text)
                if size > _ALL_CHARACTERS:
                    return tuple(found)
                found.append(one)
    return tuple(found)


def message_evidence(messages: Iterable[tuple[Message, str]]) -> list[Evidence]:
    """The blocks of messages as evidence, each shortened to what may matter."""
    found: list[Evidence] = []
    for message, uuid in messages:
        for block in message.content:
            text = block.text if isinstance(block, TextBlock | ToolResultBlock) else ""
            most = _TYPED_CHARACTERS if block.origin is Origin.PERSON else _FOREIGN_CHARACTERS
            if text.strip():
                found.append(Evidence(block.origin, text[:most], uuid))
    return found
