"""Texts for memories and questions, from Markdown files: sentences that people wrote, with the words they share."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from reverie.errors import UserError
from reverie.memory.topic_file import decode
from reverie.regular_files import read_regular
from reverie.text.sentences import sentences

REAL: Final = 2_000
"""So many sentences are encoded; the vectors of a large population lie around theirs."""
_SHORTEST: Final = 40
_LONGEST: Final = 300


def load_sentences(folder: Path) -> list[str]:
    """Different sentences of the Markdown files in a folder, in a fixed random order."""
    found = dict[str, None]()
    for path in sorted(folder.rglob("*.md")):
        fenced = False
        for line in decode(read_regular(path)).splitlines():
            if line.startswith("```"):
                fenced = not fenced
            elif not fenced and (said := line.lstrip("-*|0123456789. "))[:1].isalnum():
                found |= {one: None for one in sentences(said) if _SHORTEST <= len(one) <= _LONGEST}
    if len(found) < REAL:
        raise UserError(f"{folder}: has {len(found):,} sentences in Markdown files, and {REAL:,} are needed.")
    ordered = list(found)
    random.Random(7).shuffle(ordered)
    return ordered


def write_memories(sentences: list[str], count: int) -> Iterator[tuple[int, str]]:
    """`count` memories: each the text of a topic file, with the number of its first sentence."""
    chance = random.Random(11)
    for number in range(count):
        first = chance.randrange(REAL)
        rest = " ".join(chance.choices(sentences, k=chance.randrange(1, 4)))
        title = f"{sentences[first][:60].rstrip()} ({number:x})"
        yield (
            first,
            f"---\nname: {title!r}\ndescription: {sentences[first]!r}\ntype: project\n---\n\n"
            f"{sentences[first]}\n\n{rest}\n",
        )
