"""What all sessions of a home have cost together, and how their layers work: sums that go on when files grow.

The first reading opens every transcript once; later ones only read what was added. Never kept on disk: the transcripts
are the truth.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from reverie.context.health import HEALTH_WORDS, Health
from reverie.context.ledger import LEDGER_WORDS, UNDATED, DatedBreak, Ledger, LedgerEntry, Totals
from reverie.errors import StorageError
from reverie.quick import dataclass
from reverie.runtime.background_log import BackgroundLog
from reverie.types import Record
from reverie.web.money_tables import Sums, causes, health_data, session_totals
from reverie.web.readings import PATIENCE_S, GrowingFile, Readings, Work, parse_lines
from reverie.web.visit import Data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reverie.models.catalogue import Catalogue
    from reverie.web.site import Site

_FRESH_S = 1.0
"""For so long the list of files counts as current."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Where a sum belongs."""

    project: str
    day: str
    layer: str
    model: str


@dataclass(eq=False, slots=True)
class HomeCosts:
    """The costs of all sessions."""

    catalogue: Catalogue
    cells: dict[Cell, Sums] = field(default_factory=dict[Cell, Sums])
    sessions: dict[str, Sums] = field(default_factory=dict[str, Sums])
    projects: dict[str, str] = field(default_factory=dict[str, str])
    """Of every session."""
    breaks: list[DatedBreak] = field(default_factory=list[DatedBreak])
    spared: dict[tuple[str, str, str], int] = field(default_factory=dict[tuple[str, str, str], int])
    """Tokens that a layer kept out, by project, day and layer."""
    _ledger: Ledger = field(init=False)
    _last: dict[str, tuple[int, LedgerEntry]] = field(default_factory=dict[str, tuple[int, LedgerEntry]])

    def __post_init__(self) -> None:
        self._ledger = Ledger(self.catalogue)
        self.breaks = self._ledger.breaks

    def add(self, record: Record, session: str, project: str) -> None:
        ledger = self._ledger
        entries, spared = len(ledger.entries), len(ledger.spared)
        ledger.add(record, session=session, project=project)
        self.projects.setdefault(session, project)
        if len(ledger.entries) > entries:
            self._last[session] = (entries, ledger.entries[entries])
            self._book(ledger.entries[entries], session, project)
        elif (last := self._last.get(session)) is not None and ledger.entries[last[0]] is not last[1]:
            self._book(last[1], session, project, -1)  # a later record of the same response knows more
            self._last[session] = (last[0], ledger.entries[last[0]])
            self._book(ledger.entries[last[0]], session, project)
        for one in ledger.spared[spared:]:
            key = (project, day_of(one.at), one.layer)
            self.spared[key] = self.spared.get(key, 0) + one.tokens

    def _book(self, one: LedgerEntry, session: str, project: str, sign: int = 1) -> None:
        self.cells.setdefault(Cell(project, day_of(one.at), one.purpose, one.model), Sums()).add(one, sign)
        self.sessions.setdefault(session, Sums()).add(one, sign)

    def by(self, name: str, keep: Callable[[Cell], bool]) -> dict[str, Totals]:
        """Returns the sums by `project`, `day`, `layer` or `model`."""
        found = dict[str, Sums]()
        for cell, sums in self.cells.items():
            if keep(cell):
                found.setdefault(str(getattr(cell, name)), Sums()).plus(sums)
        return {key: sums.totals() for key, sums in found.items()}

    def total(self, keep: Callable[[Cell], bool]) -> Totals:
        whole = Sums()
        for cell, sums in self.cells.items():
            if keep(cell):
                whole.plus(sums)
        return whole.totals()


@dataclass(eq=False, slots=True)
class HomeHealth:
    """The health of all sessions."""

    health: Health
    projects: dict[str, str] = field(default_factory=dict[str, str])
    """Of every session."""

    def add(self, record: Record, session: str, project: str) -> None:
        self.projects.setdefault(session, project)
        self.health.sessions.setdefault(session, project)
        self.health.add(record, session=session, project=project)


T = TypeVar("T", HomeCosts, HomeHealth)


class HomeReading(Generic[T]):
    """Reads all transcripts of a home into one table."""

    def __init__(self, projects: Path, words: Sequence[bytes], empty: Callable[[], T]) -> None:
        self.table = empty()
        self._projects, self._words, self._empty = projects, words, empty
        self._files: dict[Path, GrowingFile] = {}
        self._checked = 0.0
        self.version = 0
        self.done, self.of = 0, 0

    def is_current(self) -> bool:
        if time.monotonic() - self._checked < _FRESH_S:
            return True
        return not any(True for _ in self._changed())

    def _changed(self) -> Iterator[tuple[Path, int]]:
        """Yields the files with something new, and how much. A file that is gone or was cut counts as -1."""
        seen = set[Path]()
        for path, size in _transcripts(self._projects):
            seen.add(path)
            known = self._files.get(path)
            offset = known.offset if known is not None else 0
            if size < offset:
                yield path, -1
            elif known is None or size > known.size:
                yield path, size - offset
        yield from ((path, -1) for path in self._files.keys() - seen)

    def catch_up(self) -> None:
        changed = list(self._changed())
        if any(size < 0 for _, size in changed):
            self.table, self._files = self._empty(), {}
            changed = list(self._changed())
        self.done, self.of = 0, sum(size for _, size in changed)
        for path, size in changed:
            file = self._files.setdefault(path, GrowingFile(path))
            try:
                for record in parse_lines(file.lines(), self._words):
                    self.table.add(record, path.stem, path.parent.name)
            except StorageError:
                continue  # deleted meanwhile, or not a file of ours
            self.done += size
        self.version += bool(changed)
        self._checked = time.monotonic()


class HomeTables:
    """Both tables of one home."""

    def __init__(self, site: Site, catalogue: Catalogue) -> None:
        projects = site.places.projects
        costs = HomeReading(projects, LEDGER_WORDS, lambda: HomeCosts(catalogue))
        health = HomeReading(projects, HEALTH_WORDS, lambda: HomeHealth(Health(catalogue)))
        self._costs = Work(costs, costs.catch_up)
        self._health = Work(health, health.catch_up)
        self._log = site.places.background_log
        self._told = dict[str, Data]()
        self._state = (0, 0.0)

    @classmethod
    def of(cls, site: Site) -> HomeTables:
        catalogue = Readings.of(site).catalogue
        return site.keep(cls, lambda: cls(site, catalogue))

    def costs(self, patience: float = PATIENCE_S) -> HomeCosts | Data:
        """The costs of all sessions, or how far the reading is."""
        return _answer(self._costs, patience)

    def health(self, project: str = "", patience: float = PATIENCE_S) -> Data:
        """How the layers worked, in all sessions or those of one project; or `reading`: how far that is."""
        found = _answer(self._health, patience)
        if isinstance(found, dict):
            return {"reading": found}
        state = (self._health.value.version, self._log.stat().st_mtime if self._log.exists() else 0.0)
        if state != self._state:
            self._state, self._told = state, {}
        if project not in self._told:
            self._told[project] = {"reading": None, **self._tell(found.health, found.projects, project)}
        return self._told[project]

    def _tell(self, whole: Health, projects: dict[str, str], project: str) -> Data:
        health = whole.only(lambda _at, session, _project: not project or projects.get(session) == project)
        for entry in BackgroundLog(self._log).read():
            health.add_entry(entry)
        return {
            "sessions": len(health.sessions),
            "conversation": session_totals(health.ledger)["conversation"],
            "causes": causes(health.ledger.breaks),
            "health": health_data(health),
        }


def _answer(work: Work[HomeReading[T]], patience: float) -> T | Data:
    if work.is_done(work.value.is_current, patience):
        return work.value.table
    return {"done": work.value.done, "of": max(1, work.value.of)}


def _transcripts(projects: Path) -> Iterator[tuple[Path, int]]:
    try:
        folders = sorted(entry.path for entry in os.scandir(projects) if entry.is_dir())
    except OSError:
        return
    for folder in folders:
        try:
            for entry in os.scandir(folder):
                if entry.name.endswith(".jsonl") and not entry.name.startswith("agent-") and entry.is_file():
                    yield Path(entry.path), entry.stat().st_size
        except OSError:
            continue


def day_of(at: datetime | None) -> str:
    return at.astimezone().date().isoformat() if at is not None else UNDATED
