"""The texts of a conversation as evidence for a write: the new part, and what came before it, also what was compacted
away. The text of others shows where words come from. A write is judged by those pieces of it that share words with the
write: judging by a whole long conversation would take seconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from reverie.memory.changes import Evidence
from reverie.storage.transcript.view import Entry
from reverie.text.words import content_terms
from reverie.types import Origin, TextBlock, ToolResultBlock

BLOCK_CHARACTERS: Final = 50_000
"""Of one block: a longer text is not a statement of the user."""
ALL_CHARACTERS: Final = 1_000_000
"""Of the text of others: the newest part counts."""
_PIECE: Final = 1_000
_SMALL: Final = 60_000
"""Text of others up to this size is judged as a whole."""
_PER_TERM: Final = 8
_MOST: Final = 40
_PREFIX: Final = 5
_RECENT: Final = 24
"""Texts of others, newest first, that the user may point at."""
_SHORT_ANSWER: Final = 60


def gather_evidence(entries: Sequence[Entry], new: int | None = None) -> tuple[Evidence, ...]:
    """The texts of these entries with their origins, oldest first. `new`: how many of the last entries the
    writer looks at; None: all that the user said is new, and the newest texts of others."""
    found, size, recent = list[Evidence](), 0, 0
    for place, entry in enumerate(reversed(entries)):
        for block in reversed(entry.message.content):
            text = block.text[:BLOCK_CHARACTERS] if isinstance(block, TextBlock | ToolResultBlock) else ""
            if not text.strip():
                continue
            is_users = block.origin.is_users
            is_new = is_users or recent < _RECENT if new is None else place < new
            if not is_users:
                recent += 1
                size += len(text)
                if size > ALL_CHARACTERS and not is_new:
                    continue
            found.append(Evidence(block.origin, text, entry.uuid or "", entry.timestamp or "", is_new))
    return tuple(reversed(found))


def select_near(evidence: Sequence[Evidence], text: str) -> tuple[Evidence, ...]:
    """The evidence for one text: everything that the user said, what a short answer of theirs may be a yes to, and of
    the rest the pieces that share words with the text."""
    old = [at for at, one in enumerate(evidence) if not (one.origin.is_users or _is_answered(evidence, at))]
    if sum(len(evidence[at].text) for at in old) <= _SMALL:
        return tuple(evidence)
    prefixes = {term[:_PREFIX] if term.isalpha() else term for term in content_terms(text)}
    pieces = [(at, piece) for at in old for piece in _pieces(evidence[at].text)]
    chosen: dict[int, list[str]] = {}
    for number in sorted(_choose(pieces, prefixes)):
        at, piece = pieces[number]
        chosen.setdefault(at, []).append(piece)
    whole = set(range(len(evidence))) - set(old)
    return tuple(
        one if at in whole else replace(one, text="\n".join(chosen[at]))
        for at, one in enumerate(evidence)
        if at in whole or at in chosen
    )


def _is_answered(evidence: Sequence[Evidence], at: int) -> bool:
    after = evidence[at + 1] if at + 1 < len(evidence) else None
    return (
        evidence[at].origin is Origin.MODEL
        and after is not None
        and after.origin.is_users
        and len(after.text) <= _SHORT_ANSWER
    )


def _choose(pieces: Sequence[tuple[int, str]], prefixes: Iterable[str]) -> set[int]:
    """The numbers of the newest pieces with each word, and of those with most of them."""
    shared: dict[int, int] = {}
    wanted: set[int] = set()
    lower = [piece.lower() for _, piece in pieces]
    for prefix in prefixes:
        having = [number for number in range(len(lower) - 1, -1, -1) if prefix in lower[number]]
        wanted.update(having[:_PER_TERM])
        for number in having:
            shared[number] = shared.get(number, 0) + 1
    best = sorted((number for number, count in shared.items() if count > 1), key=lambda at: (-shared[at], -at))
    return wanted | set(best[:_MOST])


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces of whole lines; a line without end is cut."""
    start = 0
    while start < len(text):
        end = start + _PIECE
        if end < len(text):
            line_end = text.rfind("\n", start + 1, end)
            end = line_end if line_end > start else end
        yield text[start:end]
        start = end
