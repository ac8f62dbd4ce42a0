"""Commands that run without a question get a limit for memory: what they read may be made to fill the machine, as a
file of git that leads to `/dev/zero`. A command that the user allowed is not one of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

_LEAST: Final = 2**30
_SHARE: Final = 16
_SIGNS: Final = ("memory", "alloc")


@cache
def most_memory() -> int:
    """The bytes of data that each process of such a command may have: a sixteenth of the machine, at least 1 GiB."""
    return max(_LEAST, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // _SHARE)


def bounded(words: Sequence[str | Path], most: int = 0) -> list[str]:
    """The command with the limit for itself and everything that it starts; `most` bytes, or `most_memory()`.

    The limit is for data (`RLIMIT_DATA`), not for addresses: node, Java and Go reserve many of those and use few. It is
    set by a shell that becomes the program, because a fork with Python code in it can hang. macOS knows no such limit.
    """
    limit = f'ulimit -d {(most or most_memory()) // 1_024} 2>/dev/null; exec "$@"'
    return ["/bin/sh", "-c", limit, "sh", *map(str, words)]


def explain_limit(code: int | None, complaint: str) -> str:
    """A sentence for a bounded command that failed and complains about memory; nothing for any other."""
    if not code or not any(sign in complaint.lower() for sign in _SIGNS):
        return ""
    size = f"{most_memory() / 2**30:.1f} GiB"
    return f"A command that runs without a question may use {size} of memory, and this one may have needed more."
