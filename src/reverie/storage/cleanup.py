"""Removes old tool results on disk, by age and by size, if no session can ask for them any longer.

A file stays if its session is open or its transcript names it. Folders of killed sessions are removed too.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from reverie.errors import SessionBusy, StorageError
from reverie.quick import dataclass
from reverie.regular_files import LARGEST, read_regular
from reverie.storage.lease import Lease

FOLDER = "tool-results"
_DAY_S = 86_400
_MEMORY = "memory"
_STARTING_S = 60.0  # time for a session from its lease to its first record


@dataclass(frozen=True, slots=True)
class CleanupResult:
    """How much was removed."""

    files: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class _ResultFile:
    path: Path
    modified: float
    size: int


def needs_cleaning(project: Path, *, skip: str = "") -> bool:
    """Whether there are results of other sessions, or folders of killed ones. A quick look before a task is started."""
    return any(True for _ in _folders(project, skip)) or any(True for _ in _abandoned_folders(project, skip))


def clean_tool_results(
    project: Path, *, keep_days: int, keep_bytes: int, skip: str = "", now: float | None = None
) -> CleanupResult:
    """Deletes unreferenced results: those older than `keep_days`, then the oldest above `keep_bytes` (0: no limit)."""
    limit = (time.time() if now is None else now) - keep_days * _DAY_S
    files_of = {folder: _files(folder) for folder in _folders(project, skip)}
    crowded = 0 < keep_bytes < sum(file.size for files in files_of.values() for file in files)
    lost = list[_ResultFile]()
    for folder, files in files_of.items():
        # Transcripts can be large: one is read only if a result of its session might be deleted.
        if crowded or (keep_days > 0 and any(file.modified < limit for file in files)):
            lost += _unreferenced(project, folder, files)
    lost.sort(key=lambda file: file.modified)
    left = sum(file.size for file in lost)
    gone = freed = 0
    for file in lost:
        too_old = keep_days > 0 and file.modified < limit
        too_much = keep_bytes > 0 and left > keep_bytes
        if not (too_old or too_much):
            continue
        try:
            file.path.unlink()
        except OSError:
            continue
        gone, freed, left = gone + 1, freed + file.size, left - file.size
    _drop_empty(project, skip)
    return CleanupResult(gone, freed)


def _folders(project: Path, skip: str) -> Iterator[Path]:
    for folder in sorted(project.glob(f"*/{FOLDER}")):
        session = folder.parent
        if session.name != skip and folder.is_dir() and not folder.is_symlink() and not session.is_symlink():
            yield folder


def _files(folder: Path) -> list[_ResultFile]:
    found = list[_ResultFile]()
    try:
        for entry in os.scandir(folder):
            if entry.is_file(follow_symlinks=False):
                status = entry.stat(follow_symlinks=False)
                found.append(_ResultFile(Path(entry.path), status.st_mtime, status.st_size))
    except OSError:
        return []
    return found


def _unreferenced(project: Path, folder: Path, files: list[_ResultFile]) -> list[_ResultFile]:
    session = folder.parent
    if Lease.holder(session / Lease.NAME) is not None:
        return []
    named = _read_transcript(project / f"{session.name}.jsonl")
    return [] if named is None else [file for file in files if file.path.name.encode() not in named]


def _read_transcript(transcript: Path) -> bytes | None:
    try:
        return read_regular(transcript, LARGEST)
    except FileNotFoundError:
        return b""
    except OSError:
        return None


def _abandoned_folders(project: Path, skip: str) -> Iterator[Path]:
    """Yields folders of sessions without a transcript that hold only a lease and results, and are not new."""
    try:
        entries = {entry.name: entry for entry in os.scandir(project)}
    except OSError:
        return
    for name, entry in entries.items():
        if name in (skip, _MEMORY) or f"{name}.jsonl" in entries:
            continue
        with suppress(OSError):
            held = {one.name for one in os.scandir(entry)} if entry.is_dir(follow_symlinks=False) else {name}
            is_old = entry.stat(follow_symlinks=False).st_mtime < time.time() - _STARTING_S
            if held <= {FOLDER, Lease.NAME} and (is_old or FOLDER in held):
                yield Path(entry.path)


def _drop_empty(project: Path, skip: str) -> None:
    for folder in list(_abandoned_folders(project, skip)):
        # Folders that are not empty, or in use, stay.
        with suppress(OSError, SessionBusy, StorageError):
            if (folder / FOLDER).is_dir():
                (folder / FOLDER).rmdir()
            Lease.take(folder / Lease.NAME, info={}).release()
