"""The texts of past sessions with their origins: the evidence by which the write gate judges a dream.

Only what the user typed supports a new statement; tool results and pages are read to know what does not. Bounded to the
newest transcripts and to the beginning of long texts. Unreadable files are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from reverie.errors import ReverieError
from reverie.memory.changes import Evidence
from reverie.storage.transcript.file import read_records
from reverie.text.words import content_terms
from reverie.types import Message, TextBlock, ToolResultBlock

MOST_TRANSCRIPTS: Final = 50
MOST_BYTES: Final = 64_000_000
"""A larger transcript is skipped."""
_FOREIGN_CHARACTERS: Final = 4_000
_TYPED_CHARACTERS: Final = 20_000
_ALL_CHARACTERS: Final = 3_000_000
_MOST_NEAR: Final = 300


def transcript_evidence(paths: Sequence[Path]) -> tuple[Evidence, ...]:
    """Returns the texts of these transcripts (given newest first), oldest first; if too much, the newest part."""
    found: list[list[Evidence]] = []
    size = 0
    for path in paths[:MOST_TRANSCRIPTS]:
        try:
            if path.stat().st_size > MOST_BYTES:
                continue
            records = read_records(path).records
        except (OSError, ReverieError):
            continue
        said = [
            one
            for record in records
            if record.message is not None and not record.is_sidechain
            for one in message_evidence([(record.message, record.uuid or "")], day=(record.timestamp or "")[:10])
        ]
        size += sum(len(one.text) for one in said)
        if found and size > _ALL_CHARACTERS:
            break
        found.append(said)
    return tuple(one for said in reversed(found) for one in said)


def message_evidence(messages: Iterable[tuple[Message, str]], *, day: str = "") -> list[Evidence]:
    """Returns the blocks of messages as evidence, shortened.

    `day` is when they were written: it dates words such as "in summer", which a dream writes out.
    """
    found: list[Evidence] = []
    for message, uuid in messages:
        for block in message.content:
            text = block.text if isinstance(block, TextBlock | ToolResultBlock) else ""
            most = _TYPED_CHARACTERS if block.origin.is_users else _FOREIGN_CHARACTERS
            if text.strip():
                dated = f"\n({day})" if day and block.origin.is_users else ""
                found.append(Evidence(block.origin, text[:most] + dated, uuid))
    return found


class Sources:
    """An index of all evidence by words. Judging by all of it would take too long."""

    def __init__(self, evidence: Sequence[Evidence]) -> None:
        self._evidence = tuple(evidence)
        self._holding: dict[str, list[int]] = {}
        for number, one in enumerate(self._evidence):
            for term in content_terms(one.text):
                self._holding.setdefault(term, []).append(number)

    def near(self, *texts: str) -> tuple[Evidence, ...]:
        """Returns the blocks that share two content words with one of these texts, and the user's next words."""
        wanted: set[int] = set()
        for text in texts:
            shared: dict[int, int] = {}
            for term in content_terms(text):
                for number in self._holding.get(term, ()):
                    shared[number] = shared.get(number, 0) + 1
            enough = sorted((-count, number) for number, count in shared.items() if count >= 2)
            wanted |= {number for _, number in enough[:_MOST_NEAR]}
        for number in list(wanted):
            after = number + 1  # a person's yes to what a model said
            if after < len(self._evidence) and self._evidence[after].origin.is_users:
                wanted.add(after)
        return tuple(self._evidence[number] for number in sorted(wanted))
