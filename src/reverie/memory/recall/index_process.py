"""Brings a search index up to date in a process of its own: a program that shows pages stays quick meanwhile.

Run as `python -m reverie.memory.recall.index_process MEMORY INDEX`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from reverie.memory.recall.search_index import IndexFailed, SearchIndex


def refresh_elsewhere(memory: Path, index: Path) -> None:
    """Waits until another process has read the files that are new. If it fails, nothing is lost: the next refresh reads
    them."""
    words = [sys.executable, "-m", __name__, str(memory), str(index)]
    subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False)


if __name__ == "__main__":
    try:
        with SearchIndex(Path(sys.argv[1]), Path(sys.argv[2])) as found:
            found.refresh()
    except (IndexFailed, OSError):
        sys.exit(1)
