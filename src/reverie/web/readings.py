"""What pages derive from whole transcripts, kept in memory: read once, continued when a file grows.

Reading a long session takes seconds, and a page must not wait for it: what is not ready after a moment is read on in a
thread, and the page shows how far it is.
"""

from __future__ import annotations

import os
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from reverie.regular_files import open_regular
from reverie.storage.atomic import storage_error
from reverie.storage.transcript.file import parse_line
from reverie.types import Record
from reverie.web.visit import Data

if TYPE_CHECKING:
    from reverie.context.request_costs import RequestCosts
    from reverie.context.window_life import WindowLife
    from reverie.models.catalogue import Catalogue
    from reverie.web.site import Site

PATIENCE_S = 0.12
"""How long a page waits for a reading before it shows its progress."""
_MOST_KEPT = 6
_MOST_BYTES = 200_000_000
"""So many sessions stay in memory, and at most so many bytes of their files."""
_PIECE = 1 << 20

T = TypeVar("T")


class GrowingFile:
    """Reads what a file has got since the last time, whole lines only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        self.size = 0
        self._inode = 0

    def lines(self) -> Iterator[bytes]:
        """Yields the new lines."""
        try:
            with os.fdopen(open_regular(self.path), "rb", buffering=_PIECE) as file:
                found = os.fstat(file.fileno())
                self.size, self._inode = found.st_size, found.st_ino
                file.seek(self.offset)
                for line in file:
                    if not line.endswith(b"\n") and not _is_whole(line):
                        return  # another process is in the middle of it
                    self.offset += len(line)
                    yield line
        except OSError as error:
            raise storage_error(error, self.path, "read the transcript") from error

    def is_another(self) -> bool:
        """Whether the file was cut or replaced since the last time."""
        try:
            found = self.path.stat()
        except OSError:
            return True
        return found.st_size < self.offset or (self._inode != 0 and found.st_ino != self._inode)

    def has_more(self) -> bool:
        try:
            return self.path.stat().st_size > self.offset
        except OSError:
            return False


def _is_whole(line: bytes) -> bool:
    try:
        return bool(parse_line(line))
    except ValueError:
        return False


def parse_lines(lines: Iterator[bytes], words: Sequence[bytes] = ()) -> Iterator[Record]:
    """Yields the records of lines (with one of these words); bad lines are left out."""
    for line in lines:
        if not words or any(word in line for word in words):
            try:
                yield from parse_line(line)
            except ValueError:
                continue


class SessionReading:
    """One session: what its window held in every request, and what each request cost."""

    def __init__(self, path: Path, catalogue: Catalogue) -> None:
        self.path = path
        self._catalogue = catalogue
        self._start()

    def _start(self) -> None:
        from reverie.context.request_costs import RequestCosts
        from reverie.context.window_life import WindowLife

        self.file = GrowingFile(self.path)
        self.records = list[Record]()
        self.life: WindowLife = WindowLife()
        self.costs: RequestCosts = RequestCosts(self._catalogue, self.path.stem, self.path.parent.name)
        self.now = self.life.now()
        self._derived = dict[str, Any]()
        self._seen = set[str]()
        self._ordered = list[Record]()

    def once(self, name: str, derive: Callable[[], T]) -> T:
        """What a page derives from all of it: once, until there is more to read."""
        found = self._derived
        if name not in found:
            found[name] = derive()
        return found[name]

    def is_current(self) -> bool:
        return self.file.offset > 0 and not self.file.is_another() and not self.file.has_more()

    @property
    def progress(self) -> tuple[int, int]:
        return self.file.offset, self.file.size

    def catch_up(self) -> None:
        """Takes in what is new. What happened before is not computed again, unless the conversation changed course."""
        from reverie.context.window_life import WindowLife
        from reverie.storage.transcript.chain import conversation

        if self.file.is_another():
            self._start()
        for record in parse_lines(self.file.lines()):
            if record.uuid is not None and record.uuid in self._seen:
                continue
            if record.uuid is not None:
                self._seen.add(record.uuid)
            self.records.append(record)
            self.costs.add(record)
        ordered, known = conversation(self.records), len(self._ordered)
        if len(ordered) < known or any(a is not b for a, b in zip(self._ordered, ordered, strict=False)):
            self.life, known = WindowLife(), 0
        for record in ordered[known:]:
            self.life.add(record)
        self._ordered = ordered
        self.now = self.life.now()
        self._derived = {}


class Work(Generic[T]):
    """Something that is read in a thread, once at a time."""

    def __init__(self, value: T, catch_up: Callable[[], None]) -> None:
        self.value = value
        self._catch_up = catch_up
        self._lock = Lock()
        self._done: Event | None = None
        self._error: BaseException | None = None

    def is_done(self, is_current: Callable[[], bool], patience: float) -> bool:
        """Whether the value is up to date. Else starts a reading, or joins the one that runs, and waits a moment."""
        with self._lock:
            if self._done is None and is_current():
                return True
            if self._done is None:
                self._done, self._error = Event(), None
                Thread(target=self._read, args=(self._done,), daemon=True, name="reading").start()
            done = self._done
        if not done.wait(patience):
            return False
        if self._error is not None:
            raise self._error
        return True

    def _read(self, done: Event) -> None:
        try:
            self._catch_up()
        finally:
            with self._lock:
                self._error, self._done = sys.exc_info()[1], None
            done.set()


class Readings:
    """The sessions that were shown lately."""

    def __init__(self, site: Site) -> None:
        from reverie.models.catalogue import Catalogue

        self.catalogue = Catalogue.load(site.settings.catalogue.files)
        self._lock = Lock()
        self._kept: OrderedDict[Path, Work[SessionReading]] = OrderedDict()

    @classmethod
    def of(cls, site: Site) -> Readings:
        return site.keep(cls, lambda: cls(site))

    def session(self, path: Path, patience: float = PATIENCE_S) -> SessionReading | Data:
        """The reading of a session; if that takes long, how far it is (`done` of `of` bytes)."""
        with self._lock:
            work = self._kept.pop(path, None)
            if work is None:
                reading = SessionReading(path, self.catalogue)
                work = Work(reading, reading.catch_up)
            self._kept[path] = work
            self._forget()
        if work.is_done(work.value.is_current, patience):
            return work.value
        done, of = work.value.progress
        return {"done": done, "of": max(of, done, 1)}

    def _forget(self) -> None:
        size = sum(work.value.file.size for work in self._kept.values())
        while len(self._kept) > 1 and (len(self._kept) > _MOST_KEPT or size > _MOST_BYTES):
            _, gone = self._kept.popitem(last=False)
            size -= gone.value.file.size
