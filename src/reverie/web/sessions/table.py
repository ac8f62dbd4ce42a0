"""The list of all sessions with rounds, tokens and cost. Figures are computed in the background, and kept.

A row is valid for the size and the time of its file. Figures (no text) are also kept in the home, so that a new server
has them at once. A page never waits: what is not known yet is None.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Literal, TypeAlias, cast

from reverie.context.ledger import LEDGER_WORDS, Ledger, read_records_with
from reverie.errors import ReverieError
from reverie.models.catalogue import Catalogue
from reverie.moments import parse_time
from reverie.parsing import Unparsable, load_json
from reverie.paths import make_private
from reverie.regular_files import LARGEST, read_regular
from reverie.storage.atomic import write_atomic
from reverie.storage.following.copying import IMPORTED
from reverie.storage.transcript.file import tail_records
from reverie.storage.transcript.records import build
from reverie.storage.transcript.sessions import SessionInfo, describe
from reverie.types import JsonObject, Purpose
from reverie.web.sessions.reading import COURTESY
from reverie.web.site import Site

Source: TypeAlias = Literal["reverie", "claude-code", "codex", "pi"]
SOURCES = {"reverie": "Reverie", "claude-code": "Claude Code", "codex": "Codex", "pi": "pi"}
_SAVE_S = 5.0
_SMALL = 2_000_000
"""Bytes of a transcript that a page counts at once."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What a transcript says in numbers, for one size and time of its file."""

    size: int
    modified: int
    rounds: int
    tokens: int
    cost: float
    unpriced: int
    requests: int
    source: str
    said: float


@dataclass(frozen=True, slots=True)
class SessionFile:
    """A transcript as a listing of its folder shows it."""

    project: str
    id: str
    folder: str
    size: int
    modified_ns: int

    @property
    def path(self) -> Path:
        return Path(self.folder, f"{self.id}.jsonl")

    @property
    def modified(self) -> float:
        return self.modified_ns / 1e9

    @property
    def key(self) -> str:
        return f"{self.project}/{self.id}.jsonl"

    @property
    def stamp(self) -> tuple[int, int]:
        return self.size, self.modified_ns


@dataclass(slots=True)
class Row:
    """One session. `info` and `figures` are None until they are read; those of an older state are better than none."""

    file: SessionFile
    info: SessionInfo | None = None
    figures: Figures | None = None
    is_described: bool = False

    @property
    def is_counted(self) -> bool:
        return self.figures is not None and (self.figures.size, self.figures.modified) == self.file.stamp


class SessionTable:
    """All sessions of a home. One background thread reads those that are new or have changed."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._lock = Lock()
        self._rows = dict[str, Row]()
        self._kept = dict[str, Figures]()
        self._wake = Event()
        self._waiting = list[Row]()
        self._worker: Thread | None = None
        self._place = site.places.session_figures
        self._load()

    # -- reading

    def list(self, projects: Iterable[str] | None = None) -> list[Row]:
        """All sessions, without waiting. Those that are not read yet are given to the worker."""
        with self._lock:
            rows = [self._row(file) for file in self._files(projects)]
            if projects is None:
                self._rows = {row.file.key: row for row in rows}  # without those that were deleted
        missing = [row for row in rows if not (row.is_counted and row.is_described)]
        if missing:
            self._start(sorted(missing, key=lambda one: one.file.modified_ns))
        return [row for row in rows if row.info is not None or not row.is_described]

    def _row(self, file: SessionFile) -> Row:
        known = self._rows.get(file.key)
        if known is None:
            known = self._rows[file.key] = Row(file, None, self._kept.get(file.key))
        elif known.file.stamp != file.stamp:
            known = self._rows[file.key] = Row(file, known.info, known.figures)
        return known

    def describe(self, row: Row) -> Row:
        """The same row with its title, read now if it must be."""
        if not row.is_described:
            row.info, row.is_described = _describe(row.file), True
        return row

    def row(self, info: SessionInfo) -> Row:
        """The row of one session; a small file is read now."""
        found = info.path.stat()
        folder = str(info.path.parent)
        file = SessionFile(info.path.parent.name, info.id, folder, found.st_size, found.st_mtime_ns)
        with self._lock:
            row = self._row(file)
        if not row.is_counted:
            if file.size <= _SMALL:
                self._count(row)
            else:
                with self._lock:
                    waiting = [one for one in self._waiting if one is not row]
                self._start([*waiting, row])
        return row

    def _files(self, projects: Iterable[str] | None) -> Iterator[SessionFile]:
        root = str(self._site.places.projects)
        try:
            names = sorted(projects) if projects is not None else sorted(e.name for e in os.scandir(root) if e.is_dir())
        except OSError:
            return
        for project in names:
            folder = f"{root}/{project}"
            try:
                entries = list(os.scandir(folder))
            except OSError:
                continue
            for entry in entries:
                name = entry.name
                if name.endswith(".jsonl") and not name.startswith("agent-"):
                    with suppress(OSError):
                        found = entry.stat()
                        yield SessionFile(project, name[:-6], folder, found.st_size, found.st_mtime_ns)

    # -- counting

    def _start(self, rows: list[Row]) -> None:
        """Gives rows to the worker, which begins with the last one."""
        with self._lock:
            self._waiting = rows
            if self._worker is None:
                self._worker = Thread(target=self._run, name="session table", daemon=True)
                self._worker.start()
        self._wake.set()

    def _run(self) -> None:
        saved, dirty = time.monotonic(), 0
        while True:
            with self._lock:
                row = self._waiting.pop() if self._waiting else None
            if row is None:
                if dirty:
                    self._save()
                    dirty = 0
                self._wake.wait()
                self._wake.clear()
                continue
            COURTESY.wait()
            with suppress(ReverieError, OSError):
                self.describe(row)
                if not row.is_counted:
                    self._count(row)
            dirty += 1
            if time.monotonic() - saved > _SAVE_S:
                self._save()
                saved, dirty = time.monotonic(), 0

    def _count(self, row: Row) -> None:
        try:
            row.figures = count(row.file, Catalogue.load(self._site.settings.catalogue.files))
        except OSError:
            return  # deleted meanwhile, or read the next time
        except (ReverieError, ValueError, ArithmeticError):
            row.figures = _no_figures(row.file)

    # -- keeping

    def _load(self) -> None:
        try:
            found: Any = load_json(read_regular(self._place, LARGEST))
            given = cast("dict[str, Any]", found["sessions"]) if found.get("version") == 1 else {}
        except (OSError, Unparsable, ValueError, KeyError, TypeError, AttributeError):
            return
        for name, one in given.items():
            if isinstance(one, dict) and (figures := build(Figures, cast(JsonObject, one))) is not None:
                self._kept[name] = figures

    def _save(self) -> None:
        with self._lock:
            rows = {key: asdict(one.figures) for key, one in self._rows.items() if one.figures is not None}
        with suppress(OSError, ReverieError):
            make_private(self._place.parent)
            write_atomic(self._place, json.dumps({"version": 1, "sessions": rows}).encode(), fsync=False)


def _describe(file: SessionFile) -> SessionInfo | None:
    try:
        return describe(file.path)
    except ReverieError:
        return None


def _no_figures(file: SessionFile) -> Figures:
    """For a transcript that is too large, or whose numbers make no sense."""
    return Figures(file.size, file.modified_ns, 0, 0, 0.0, 0, 0, "reverie", file.modified)


def count(file: SessionFile, catalogue: Catalogue) -> Figures:
    """Reads the figures of one transcript: only lines that have some are parsed."""
    if file.size > LARGEST:
        return _no_figures(file)
    ledger = Ledger(catalogue)
    for number, record in enumerate(read_records_with(file.path, LEDGER_WORDS)):
        ledger.add(record, session=file.id, project=file.project)
        if number % 200 == 199:
            COURTESY.wait()
    whole, rounds = ledger.total, sum(one.purpose == Purpose.MAIN for one in ledger.entries)
    if not rounds:  # another agent may record no usage
        answers = (one for one in read_records_with(file.path, (b'"assistant"',)) if not one.is_sidechain)
        rounds = sum(one.message is not None and one.message.role == "assistant" for one in answers)
    last = list(tail_records(file.path))
    source = next((str(one.data[IMPORTED]) for one in last if IMPORTED in one.data), "reverie")
    if source == "reverie" and last and not any({"opening", "schemaVersion"} & one.data.keys() for one in last):
        source = "claude-code"
    said = max((at.timestamp() for one in last if (at := parse_time(one.timestamp)) is not None), default=0.0)
    return Figures(
        size=file.size,
        modified=file.modified_ns,
        rounds=rounds,
        tokens=whole.usage.total,
        cost=whole.cost,
        unpriced=whole.unpriced,
        requests=whole.requests,
        source=source,
        said=min(said or file.modified, file.modified),
    )


def table_of(site: Site) -> SessionTable:
    return site.keep(SessionTable, lambda: SessionTable(site))
