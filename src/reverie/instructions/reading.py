"""Reads one file that somebody else may have written: regular files only, bounded, text or a sentence why not.

A pipe does not block it, a device is not opened for good, and a file too large for any prompt is not taken in. It never
raises for what it finds on disk.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from reverie.regular_files import open_regular

MAX_FILE_BYTES = 1_000_000
"""Larger files are nobody's instructions."""


@dataclass(frozen=True, slots=True)
class ReadText:
    """What a file holds, or `problem`: why it cannot be used, as the end of a sentence about it."""

    text: str = ""
    problem: str = ""
    damaged: bool = False
    """It held bytes that are not UTF-8; each stands as a replacement character."""
    owner: int = 0


def read_text(path: Path, *, cut: bool = False) -> ReadText:
    """The text of a regular file, line ends made plain. `path` has its links resolved already.

    With `cut`, a file that is too large is read as far as the limit instead of refused.
    """
    try:
        with os.fdopen(open_regular(path, follow=False), "rb") as file:
            owner, raw = os.fstat(file.fileno()).st_uid, file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        return ReadText(problem=f"cannot be read ({_reason(error)})")
    if len(raw) > MAX_FILE_BYTES and not cut:
        return ReadText(problem=f"is larger than {MAX_FILE_BYTES:,} bytes")
    if b"\0" in raw:
        return ReadText(problem="is not a text file")
    try:
        text, damaged = raw.decode("utf-8-sig"), False
    except UnicodeDecodeError:
        text, damaged = raw.decode("utf-8-sig", "replace"), True
    return ReadText(text.replace("\r\n", "\n").replace("\r", "\n"), damaged=damaged, owner=owner)


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
