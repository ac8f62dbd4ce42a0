"""In which sessions a memory was recalled lately, from the records of the newest transcripts. Reads only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from reverie.context.ledger import read_records_with
from reverie.paths import Places
from reverie.storage.transcript.records import Surfaced, from_record
from reverie.web.memories.kept import Kept
from reverie.web.site import Site

_BYTES: Final = 48_000_000
"""How much of the newest transcripts is searched."""
_MOST: Final = 10


def recalled_in(site: Site, places: Places, file: str) -> list[dict[str, Any]]:
    """The last times that recall showed a memory: session, time and who chose it, the newest first."""
    known = Kept.of(site).recalled
    found: list[dict[str, Any]] = []
    for path, stamp in _newest(places):
        cached = known.get(path)
        if cached is None or cached[0] != stamp:
            cached = known[path] = stamp, list(_read(path))
        times = [(when, by) for when, by, names in cached[1] if file in names]
        found += [{"session": path.stem, "when": when, "by": by} for when, by in times]
    return sorted(found, key=lambda one: str(one["when"]), reverse=True)[:_MOST]


def _read(path: Path) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for record in read_records_with(path, (Surfaced.subtype.encode(),)):
        payload = from_record(record)
        if isinstance(payload, Surfaced) and payload.names:
            yield record.timestamp or "", payload.by, payload.names


def _newest(places: Places) -> Iterator[tuple[Path, tuple[int, int]]]:
    from reverie.layers.l6_dreaming.gates import changed_transcripts, transcript_folders

    left = _BYTES
    for path in changed_transcripts(transcript_folders(places), None):
        try:
            status = path.stat()
        except OSError:
            continue
        left -= status.st_size
        if left < 0:
            return
        yield path, (status.st_mtime_ns, status.st_size)
