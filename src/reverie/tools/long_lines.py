"""Where in a very long line the match is, found in pieces: a line of any length costs no more memory than one of them.

ripgrep names the line and shows its beginning. Here it is read piece by piece, each is searched alone, and what is
around the first match is shown. Where no piece matches (a match may be longer than one) the beginning stays. It never
holds a whole line, and looks at few of them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from reverie.regular_files import open_regular
from reverie.tools.ripgrep import first_match

SHOWN_BYTES = 500
_PIECE = 1 << 20
_OVERLAP = 4_096
_MOST_LINES = 20
_MOST_PIECES = 300


@dataclass(frozen=True, slots=True)
class LongLine:
    """A line with a match that is too long to show: its file, where it begins there, and what is shown before it."""

    path: Path
    start: int
    lead: str
    beginning: str


async def in_view(entries: Sequence[str | LongLine], options: list[str], timeout_s: float) -> list[str]:
    """The entries as text, long lines cut around their first match. `options` say what matches."""
    out: list[str] = []
    lines = pieces = 0
    for entry in entries:
        if isinstance(entry, str):
            out.append(entry)
            continue
        lines += 1
        found = None
        if lines <= _MOST_LINES and pieces < _MOST_PIECES:
            found, used = await _around(entry, options, _MOST_PIECES - pieces, timeout_s)
            pieces += used
        out.append(entry.lead + (found or entry.beginning))
    return out


async def _around(line: LongLine, options: list[str], most: int, timeout_s: float) -> tuple[str | None, int]:
    """What is around the first match, if a piece shows it, and how many pieces were looked at."""
    with suppress(OSError):
        fd = open_regular(line.path)
        try:
            at, step = line.start, 0
            while step < most and (piece := os.pread(fd, _PIECE, at)):
                step += 1
                piece, ended, _ = piece.partition(b"\n")
                match = await first_match(options, piece, timeout_s)
                if match is not None:
                    return _shown(fd, line.start, at + match), step
                if ended or len(piece) <= _OVERLAP:
                    break
                at += len(piece) - _OVERLAP
            return None, step
        finally:
            os.close(fd)
    return None, 0


def _shown(fd: int, start: int, match: int) -> str:
    first = max(start, match - SHOWN_BYTES // 4)
    piece, ended, _ = os.pread(fd, SHOWN_BYTES, first).partition(b"\n")
    more = not ended and os.pread(fd, 1, first + len(piece)) not in (b"", b"\n")
    return f"{'…' if first > start else ''}{piece.decode('utf-8', 'replace')}{'…' if more else ''}"
