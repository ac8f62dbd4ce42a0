"""`@path` in an instruction file: finds includes, and inserts the content of the files they name.

A word that does not name a file stays unchanged. The caller reads the files: nothing here uses the disk.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from reverie.instructions.markdown import MarkdownProse
from reverie.quick import dataclass
from reverie.text.patterns import late

MAX_WORDS = 500  # the most words with an `@` that are checked in one file

_WORD = late(r"(?:(?<=\s)|^)@((?:[^\s\\]|\\ )+)", re.MULTILINE)
_LEAD = late(r"[ \t]*(?:[-*+][ \t]+|\d{1,9}[.)][ \t]+)?")
_TAIL = ".,;:!?)]}>\"'*_"


@dataclass(frozen=True, slots=True)
class Include:
    """One `@path` in a text: its position, and that of its line if the line contains nothing else."""

    start: int
    end: int
    word: str  # the word without the `@`
    line: tuple[int, int] | None

    def spellings(self) -> Iterator[str]:
        """Yields possible paths, likeliest first: unchanged, without a `#fragment`, without closing punctuation."""
        path = self.word.replace("\\ ", " ")
        yield path
        bare, hash_mark, _ = path.partition("#")
        if hash_mark and bare:
            yield bare
        shorter = path.rstrip(_TAIL)
        for cut in range(len(path) - 1, max(len(shorter), len(path) - 4) - 1, -1):
            if path[:cut]:
                yield path[:cut]


Expansion: TypeAlias = str | None
"""The content of an included file; empty if it is shown elsewhere; None if the word stays."""


def includes(text: str) -> Iterator[Include]:
    """Yields every word that starts with `@`, in code or not, in order."""
    if "@" not in text:
        return
    for number, found in enumerate(_WORD.finditer(text)):
        if number == MAX_WORDS:
            return
        start, end = found.span()
        line_start = text.rfind("\n", 0, start) + 1
        line_end = text.find("\n", end)
        line_end = len(text) if line_end < 0 else line_end
        alone = _LEAD.fullmatch(text, line_start, start) and not text[end:line_end].strip()
        yield Include(start, end, found[1], (line_start, line_end) if alone else None)


def expand(text: str, means: Callable[[Include], bool], content: Callable[[Include], Expansion]) -> str:
    """Inserts the content of includes: in place of their line, or at the end for an include inside a sentence."""
    prose = MarkdownProse(text)
    out: list[str] = []
    behind: list[str] = []
    done = 0
    for include in includes(text):
        if not means(include) or not prose.holds(include.start):
            continue
        inner = content(include)
        if inner is None:
            continue
        if include.line is not None:
            start, end = include.line
            out.append(text[done:start])
            out.append(inner.strip("\n"))
            done = end if inner.strip("\n") else min(end + 1, len(text))
        elif inner.strip():
            behind.append(f"Content of @{include.word.rstrip(_TAIL)}:\n\n{inner.strip()}")
    body = "".join(out) + text[done:]
    return "\n\n".join([body.rstrip(), *behind]) if behind else body
