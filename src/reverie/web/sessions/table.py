"""The list of all sessions with rounds, tokens and cost. Figures are computed in the background, and kept.

A row is valid for the size and the time of its file. Figures (no text) are also kept in the home, so that a new server
has them at once. A page never waits: what is not known yet is None.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Literal, TypeAlias, cast

from reverie.context.ledger import LEDGER_WORDS, Ledger, read_records_with
from reverie.errors import ReverieError
from reverie.models.catalogue import Catalogue
from reverie.moments import modified_time, parse_time
from reverie.parsing import Unparsable, load_json
from reverie.paths import make_private
from reverie.regular_files import LARGEST, read_regular
from reverie.storage.atomic import write_atomic
from reverie.storage.following.copying import IMPORTED
from reverie.storage.transcript.file import tail_records
from reverie.storage.transcript.records import build
from reverie.storage.transcript.sessions import SessionInfo, describe
from reverie.types import JsonObject, Purpose
from reverie.web.site import Site

Source: TypeAlias = Literal["reverie", "claude-code", "codex", "pi"]
SOURCES = {"reverie": "Reverie", "claude-code": "Claude Code", "codex": "Codex", "pi": "pi"}
_SAVE_S = 5.0


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
    path: Path
    size: int
    modified_ns: int
    modified: float

    @property
    def id(self) -> str:
        return self.path.stem


@dataclass(frozen=True, slots=True)
class Row:
    """One session. `info` and `figures` are None until they are read."""

    file: SessionFile
    info: SessionInfo | None
    figures: Figures | None


class SessionTable:
    """All sessions of a home. One background thread reads those that are new or have changed."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._lock = Lock()
        self._infos = dict[Path, tuple[tuple[int, int], SessionInfo | None]]()
        self._figures = dict[Path, Figures]()
        self._wake = Event()
        self._waiting = list[SessionFile]()
        self._worker: Thread | None = None
        self._place = site.places.session_figures
        self._load()

    # -- reading

    def list(self, projects: Iterable[str] | None = None) -> list[Row]:
        """All sessions, without waiting. Those that are not read yet are given to the worker."""
        files = list(self._files(projects))
        with self._lock:
            rows = [Row(file, self._known(file), self._counted(file)) for file in files]
        missing = [row.file for row in rows if row.figures is None or not self._is_described(row.file)]
        if missing:
            self._start(missing)
        return [row for row in rows if row.info is not None or not self._is_described(row.file)]

    def describe(self, row: Row) -> Row:
        """The same row with its title, read now if it must be."""
        if self._is_described(row.file):
            with self._lock:
                return replace(row, info=self._known(row.file))
        info = _describe(row.file)
        with self._lock:
            self._infos[row.file.path] = (_stamp(row.file), info)
        return replace(row, info=info)

    def row(self, info: SessionInfo) -> Row:
        """The row of one session; a small file is read now."""
        found = info.path.stat()
        file = SessionFile(info.path.parent.name, info.path, found.st_size, found.st_mtime_ns, modified_time(found))
        with self._lock:
            figures = self._counted(file)
        if figures is None:
            if file.size <= 3_000_000:
                figures = self._count(file)
            else:
                self._start([file])
        return Row(file, info, figures)

    def _files(self, projects: Iterable[str] | None) -> Iterable[SessionFile]:
        root = self._site.places.projects
        try:
            names = sorted(projects) if projects is not None else sorted(e.name for e in os.scandir(root) if e.is_dir())
        except OSError:
            return
        for project in names:
            try:
                entries = list(os.scandir(root / project))
            except OSError:
                continue
            for entry in entries:
                if not entry.name.endswith(".jsonl") or entry.name.startswith("agent-"):
                    continue
                with suppress(OSError):
                    found = entry.stat()
                    path = Path(entry.path)
                    yield SessionFile(project, path, found.st_size, found.st_mtime_ns, modified_time(found))

    def _is_described(self, file: SessionFile) -> bool:
        kept = self._infos.get(file.path)
        return kept is not None and kept[0] == _stamp(file)

    def _known(self, file: SessionFile) -> SessionInfo | None:
        kept = self._infos.get(file.path)
        return kept[1] if kept is not None else None  # the title of an older state is better than none

    def _counted(self, file: SessionFile) -> Figures | None:
        kept = self._figures.get(file.path)
        return kept if kept is not None and (kept.size, kept.modified) == _stamp(file) else None

    # -- counting

    def _start(self, files: list[SessionFile]) -> None:
        with self._lock:
            self._waiting = sorted(files, key=lambda one: one.modified_ns)  # the newest is read first
            if self._worker is None:
                self._worker = Thread(target=self._run, name="session table", daemon=True)
                self._worker.start()
        self._wake.set()

    def _run(self) -> None:
        saved, dirty = time.monotonic(), 0
        while True:
            with self._lock:
                file = self._waiting.pop() if self._waiting else None
            if file is None:
                if dirty:
                    self._save()
                    dirty = 0
                if not self._wake.wait(300):
                    continue
                self._wake.clear()
                continue
            with suppress(ReverieError, OSError):
                self._read(file)
            dirty += 1
            time.sleep(0.001)  # pages come first
            if time.monotonic() - saved > _SAVE_S:
                self._save()
                saved, dirty = time.monotonic(), 0

    def _read(self, file: SessionFile) -> None:
        if not self._is_described(file):
            info = _describe(file)
            with self._lock:
                self._infos[file.path] = (_stamp(file), info)
        with self._lock:
            known = self._counted(file)
        if known is None:
            self._count(file)

    def _count(self, file: SessionFile) -> Figures | None:
        try:
            figures = count(file, Catalogue.load(self._site.settings.catalogue.files))
        except (ReverieError, OSError):
            return None
        with self._lock:
            self._figures[file.path] = figures
        return figures

    # -- keeping

    def _load(self) -> None:
        try:
            found: Any = load_json(read_regular(self._place, LARGEST))
            given = cast("dict[str, Any]", found["sessions"]) if found.get("version") == 1 else {}
        except (OSError, Unparsable, ValueError, KeyError, TypeError, AttributeError):
            return
        root = self._site.places.projects
        for name, one in given.items():
            if isinstance(one, dict) and (figures := build(Figures, cast(JsonObject, one))) is not None:
                self._figures[root / name] = figures

    def _save(self) -> None:
        root = self._site.places.projects
        with self._lock:
            rows = {str(path.relative_to(root)): asdict(one) for path, one in self._figures.items()}
        with suppress(OSError, ReverieError):
            make_private(self._place.parent)
            write_atomic(self._place, json.dumps({"version": 1, "sessions": rows}).encode(), fsync=False)


def _stamp(file: SessionFile) -> tuple[int, int]:
    return file.size, file.modified_ns


def _describe(file: SessionFile) -> SessionInfo | None:
    try:
        return describe(file.path)
    except ReverieError:
        return None


def count(file: SessionFile, catalogue: Catalogue) -> Figures:
    """Reads the figures of one transcript: only lines that have some are parsed."""
    if file.size > LARGEST:
        return Figures(file.size, file.modified_ns, 0, 0, 0.0, 0, 0, "reverie", file.modified)
    ledger = Ledger(catalogue)
    for record in read_records_with(file.path, LEDGER_WORDS):
        ledger.add(record, session=file.id, project=file.project)
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
