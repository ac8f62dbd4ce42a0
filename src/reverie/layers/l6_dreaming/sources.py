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
from reverie.storage.transcript.file import read_records
from reverie.text.words import content_terms
from reverie.types import Message, TextBlock, ToolResultBlock

MOST_TRANSCRIPTS: Final = 50
MOST_BYTES: Final = 64_000_000
"""Of a transcript; a larger one is left out."""
_FOREIGN_CHARACTERS: Final = 4_000
_TYPED_CHARACTERS: Final = 20_000
_ALL_CHARACTERS: Final = 3_000_000
_MOST_NEAR: Final = 300


def transcript_evidence(paths: Sequence[Path]) -> tuple[Evidence, ...]:
    """Who said what in these transcripts (given newest first), oldest first; of very much, the newest part."""
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
    """The blocks of messages as evidence, each shortened to what may matter.

    `day` is when they were written: a person who says "in summer" has said which one, and a dream writes it out.
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
    """Everything that was said, ready to be asked for what is near to a text; to judge by all of it takes too long."""

    def __init__(self, evidence: Sequence[Evidence]) -> None:
        self._evidence = tuple(evidence)
        self._holding: dict[str, list[int]] = {}
        for number, one in enumerate(self._evidence):
            for term in content_terms(one.text):
                self._holding.setdefault(term, []).append(number)

    def near(self, *texts: str) -> tuple[Evidence, ...]:
        """The blocks that share two content words with one of these texts, and what the person said next to each."""
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
