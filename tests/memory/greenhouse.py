"""A memory directory and queries of our own: people who automate greenhouses. Written once, before it was measured on.

No number of the ranker is fitted on it, though it was looked at when signals were chosen. The tests hold the ranker to
floors on it, so that a change that only helps the data it was fitted on is noticed.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from bench.recall.data import Collection, Query

_HERE = Path(__file__).parent


def write_greenhouse(folder: Path) -> Collection:
    """Writes the directory with its mtimes and returns it with its queries."""
    for line in _lines("greenhouse_files.txt"):
        name, day, title, description, body = line.split("|")
        kind = {"gotcha": "feedback"}.get(name.split("_")[0], name.split("_")[0])
        path = folder / name
        path.write_text(
            f"---\nname: {title}\ndescription: {description}\ntype: {kind}\n---\n\n{body}\n", encoding="utf-8"
        )
        when = datetime.fromisoformat(f"{day}T09:00:00+00:00").timestamp()
        os.utime(path, (when, when))
    return Collection("greenhouse", folder, tuple(map(_query, _lines("greenhouse_queries.txt"))))


def _lines(name: str) -> list[str]:
    return (_HERE / name).read_text(encoding="utf-8").splitlines()


def _query(line: str) -> Query:
    kind, text, relevant, acceptable, *rest = line.split("|")
    forbidden, tools = [*rest, "", ""][:2]
    return Query(
        text=text.replace("\\n", "\n"),
        kind=kind,
        tools=_names(tools),
        relevant=frozenset(_names(relevant)),
        acceptable=frozenset(_names(acceptable)),
        forbidden=frozenset(_names(forbidden)),
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)
