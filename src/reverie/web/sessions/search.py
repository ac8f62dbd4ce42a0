"""Searches the full text of all sessions with ripgrep: bounded in time and in results, never a whole file in memory."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from reverie.quick import dataclass
from reverie.tools.ripgrep import run_ripgrep

_TIME_S = 8.0
_MOST_FILES = 5_000
_WHERE = ("*.jsonl", "tool-results/*.txt", "tool-results/*.json")


@dataclass(frozen=True, slots=True)
class Hits:
    """Lines with the text by session (project and id). `is_all` is False if a limit ended the search."""

    lines: dict[tuple[str, str], int]
    is_all: bool


def search_text(projects: Path, text: str, project: str = "") -> Hits:
    """Finds a text, in any case, in transcripts, in those of agents, and in results on disk."""
    if not projects.is_dir():
        return Hits({}, True)
    stored = json.dumps(text, ensure_ascii=False)[1:-1]  # quotes and line ends are escaped in a transcript
    options = ["--no-config", "--color=never", "--no-ignore", "--no-messages", "--ignore-case", "--fixed-strings"]
    options += ["--count", "--null", "--with-filename", "--max-depth=4", *(f"--glob=**/{one}" for one in _WHERE)]
    options += ["--glob=!*/memory/**", "--regexp", stored, "--", f"./{project}" if project else "."]
    files = 0

    def enough(chunk: bytes) -> bool:
        nonlocal files
        files += chunk.count(b"\n")
        return files >= _MOST_FILES

    done = asyncio.run(run_ripgrep(options, projects, enough, _TIME_S))
    found = dict[tuple[str, str], int]()
    for line in done.data.decode("utf-8", "surrogateescape").splitlines():
        path, _, count = line.partition("\0")
        parts = Path(path).parts
        if len(parts) < 2 or not count.isdigit():
            continue
        key = (parts[0], parts[1].removesuffix(".jsonl"))
        found[key] = found.get(key, 0) + int(count)
    return Hits(found, not (done.stopped or done.late))
