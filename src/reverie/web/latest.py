"""The last used sessions of all projects, with how full their window was, without reading whole files. Reads only."""

from __future__ import annotations

import heapq
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from reverie.errors import StorageError
from reverie.storage.transcript.file import tail_records
from reverie.storage.transcript.sessions import describe
from reverie.web.readings import Readings
from reverie.web.visit import Data

if TYPE_CHECKING:
    from reverie.web.site import Site


def latest_sessions(site: Site, count: int) -> list[Data]:
    """The sessions that were used last, the newest first."""
    found: list[Data] = []
    catalogue = Readings.of(site).catalogue
    for _, path in heapq.nlargest(count * 3, _transcripts(site.places.projects)):
        info = describe(Path(path))
        if info is None:
            continue
        used, model = _last_request(info.path)
        window = catalogue.facts(model).window if model else 0
        found.append(
            {
                "id": info.id,
                "title": info.title,
                "folder": info.cwd,
                "project": info.path.parent.name,
                "said": info.said,
                "model": model,
                "used_tokens": used,
                "window_tokens": window,
                "fill": min(1.0, used / window) if window and used else None,
            }
        )
        if len(found) == count:
            break
    # An import writes old conversations now: what counts is the last message.
    return sorted(found, key=lambda one: one["said"], reverse=True)


def _transcripts(projects: Path) -> list[tuple[float, str]]:
    found: list[tuple[float, str]] = []
    with suppress(OSError):
        for folder in os.scandir(projects):
            with suppress(OSError):
                for entry in os.scandir(folder.path) if folder.is_dir() else ():
                    if entry.name.endswith(".jsonl") and not entry.name.startswith("agent-") and entry.is_file():
                        found.append((entry.stat().st_mtime, entry.path))
    return found


def _last_request(path: Path) -> tuple[int, str]:
    """The tokens of the last request of the conversation, and its model; 0 if the end of the file has none."""
    with suppress(StorageError):
        for record in tail_records(path):
            message = record.message
            if message is None or message.role != "assistant" or record.is_sidechain:
                continue
            if message.usage is not None and message.usage.total:
                return message.usage.total, str(message.fields.get("model") or "")
    return 0, ""
