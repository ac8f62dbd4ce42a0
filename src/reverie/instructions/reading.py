"""Reads one file that somebody else may have written: regular files only, bounded, text or a sentence why not.

A pipe does not block it, a device is not opened for good, and a file too large for any prompt is not taken in. It never
raises for what it finds on disk.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

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
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NOCTTY)
    except (OSError, ValueError) as error:
        return ReadText(problem=f"cannot be read ({_reason(error)})")
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            return ReadText(problem="is not a regular file")
        raw = _read_bounded(fd)
    except OSError as error:
        return ReadText(problem=f"cannot be read ({_reason(error)})")
    finally:
        os.close(fd)
    if len(raw) > MAX_FILE_BYTES and not cut:
        return ReadText(problem=f"is larger than {MAX_FILE_BYTES:,} bytes")
    if b"\0" in raw:
        return ReadText(problem="is not a text file")
    try:
        text, damaged = raw.decode("utf-8-sig"), False
    except UnicodeDecodeError:
        text, damaged = raw.decode("utf-8-sig", "replace"), True
    return ReadText(text.replace("\r\n", "\n").replace("\r", "\n"), damaged=damaged, owner=found.st_uid)


def _read_bounded(fd: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while size <= MAX_FILE_BYTES and (part := os.read(fd, MAX_FILE_BYTES + 1 - size)):
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
