"""Reads transcripts for pages: a little at a time, in the background if a file is large, and on from where it ended.

A page waits only a moment; then it shows what is read so far. Readers are shared by all visits and change no file.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event, Lock, RLock, Thread
from typing import Any, TypeVar

from reverie.quick import dataclass
from reverie.regular_files import LARGEST, open_regular
from reverie.storage.transcript.file import BadLine, parse_line
from reverie.types import Record
from reverie.web.site import Site
from reverie.web.visit import NotFound

T = TypeVar("T")

PATIENCE_S = 0.06
"""How long a page waits for a large file."""
LONG_PATIENCE_S = 20.0
"""The same for a page about one message, which can be anywhere in the file."""
_CHUNK = 1 << 20
_MOST_BYTES = 400_000_000
_MOST_READERS = 24
_RENDERING_S = 0.05
"""A page that was read is rendered and sent in this time."""
_FEW = 1_500
"""With at most this many records, even a slow derivation is done at once."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is read of a transcript. `records` never changes; `is_whole` is False while a large file is being read."""

    records: Sequence[Record]
    bad: Sequence[BadLine]
    read: int
    size: int
    is_whole: bool

    @property
    def share(self) -> float:
        return self.read / self.size if self.size else 1.0


class Courtesy:
    """Lets pages go first: background threads wait while one is made, because all of them share one interpreter."""

    def __init__(self) -> None:
        self._pages = 0
        self._ended = 0.0
        self._lock = Lock()
        self._quiet = Event()
        self._quiet.set()

    def __enter__(self) -> None:
        with self._lock:
            self._pages += 1
            self._quiet.clear()

    def __exit__(self, *_error: object) -> None:
        with self._lock:
            self._pages -= 1
            self._ended = time.monotonic()
            if not self._pages:
                self._quiet.set()

    def wait(self) -> None:
        """Called by background threads between small steps."""
        self._quiet.wait(1.0)
        time.sleep(_RENDERING_S if time.monotonic() - self._ended < _RENDERING_S else 0.0005)


COURTESY = Courtesy()


class TranscriptReader:
    """One transcript. A file that was replaced (by a purge, for example) is read again from its start.

    A large file is read in the background, and `warm` derives what pages need from it there. Until then pages get the
    beginning.
    """

    def __init__(self, path: Path, warm: Callable[[TranscriptReader, Snapshot], object] | None = None) -> None:
        self.path = path
        self._warm = warm
        self._beginning: Snapshot | None = None
        self._lock = RLock()
        self._deriving = RLock()
        self._later = dict[str, int]()
        self._running = False
        self._derived = dict[str, tuple[tuple[int, int], float, Any]]()
        self._generation = 0
        self._forget()

    def _forget(self) -> None:
        self._file: tuple[int, int] | None = None
        self._records = list[Record]()
        self._bad = list[BadLine]()
        self._seen = set[str]()
        self._read = self._lines = 0
        self._generation += 1
        self._derived.clear()
        self._beginning = None

    @property
    def weight(self) -> int:
        return self._read

    def look(self, patience_s: float = PATIENCE_S) -> Snapshot:
        """Reads what is new, for at most about this long; the rest follows in the background."""
        until = time.monotonic() + patience_s
        while self._running and patience_s > PATIENCE_S and time.monotonic() < until:
            time.sleep(0.02)
        with self._lock:
            if self._running and self._beginning is not None:
                return replace(self._beginning, read=self._read)
        size, is_whole = self._advance(until)
        snapshot = self._snapshot(size, is_whole)
        if not is_whole:
            self._beginning = snapshot
            self._go_on()
        return snapshot

    def _snapshot(self, size: int, is_whole: bool) -> Snapshot:
        with self._lock:
            return Snapshot(self._records[:], self._bad[:], self._read, size, is_whole)

    def derive(self, name: str, snapshot: Snapshot, make: Callable[[Snapshot], T], *, for_s: float = 0.0) -> T:
        """What `make` returns for this snapshot; kept until there are more records, or at least for some seconds."""
        key, name = (self._generation, len(snapshot.records)), name if snapshot.is_whole else f"{name} of the beginning"
        with self._deriving:
            kept = self._derived.get(name)
            if kept is None or (kept[0] != key and time.monotonic() - kept[1] >= for_s):
                kept = self._derived[name] = (key, time.monotonic(), make(snapshot))
            return kept[2]

    def derive_later(self, name: str, snapshot: Snapshot, make: Callable[[Snapshot], T]) -> T | None:
        """The same in a thread, for what takes seconds; None until it is there. A small transcript is done at once."""
        if len(snapshot.records) <= _FEW:
            return self.derive(name, snapshot, make)
        kept, at = self._derived.get(name), self._later.get(name)
        if (kept is None or kept[0][1] != len(snapshot.records)) and at != len(snapshot.records):
            self._later[name] = len(snapshot.records)
            Thread(target=self.derive, args=(name, snapshot, make), name="derive", daemon=True).start()
        return kept[2] if kept is not None else None

    def _go_on(self) -> None:
        with self._lock:
            if self._running:
                return
            self._running = True

        def run() -> None:
            try:
                while not (found := self._advance(0.0))[1]:
                    COURTESY.wait()
                if self._warm is not None:
                    self._warm(self, self._snapshot(*found))
            except NotFound:
                return
            finally:
                self._running = False

        Thread(target=run, name="transcript", daemon=True).start()

    def _advance(self, until: float) -> tuple[int, bool]:
        """Reads whole lines until the end of the file or the time. Returns the size, and whether it got to the end."""
        try:
            fd = open_regular(self.path)
        except OSError as error:
            raise NotFound(f"The transcript {self.path} cannot be read: {error.strerror}.") from None
        with os.fdopen(fd, "rb", buffering=0) as file:
            found = os.fstat(fd)
            if found.st_size > LARGEST:
                raise NotFound(f"The transcript {self.path} has more than {LARGEST:,} bytes.")
            while True:
                with self._lock:
                    if self._file != (found.st_dev, found.st_ino) or found.st_size < self._read:
                        self._forget()
                        self._file = (found.st_dev, found.st_ino)
                    if not self._take(file, found.st_size):
                        return found.st_size, True
                if time.monotonic() > until:
                    return found.st_size, self._read >= found.st_size

    def _take(self, file: Any, size: int) -> bool:
        """Takes one piece of the file; False if there is no whole line any more."""
        wanted = _CHUNK // 8
        file.seek(self._read)
        raw: bytes = file.read(min(wanted, size - self._read))
        end = raw.rfind(b"\n")
        while end < 0 and self._read + len(raw) < size:
            more: bytes = file.read(min(_CHUNK, size - self._read - len(raw)))
            if not more:
                break
            raw += more
            end = raw.rfind(b"\n")
        if end < 0:
            return self._take_last(raw)
        for line in raw[:end].split(b"\n"):
            self._lines += 1
            if line.strip():
                self._parse(line)
        self._read += end + 1
        return True

    def _take_last(self, raw: bytes) -> bool:
        """Takes a last line without a line end, if it is complete: other agents may leave one."""
        try:
            if not raw.strip() or not parse_line(raw):
                return False
        except ValueError:
            return False
        self._lines += 1
        self._parse(raw)
        self._read += len(raw)
        return True

    def _parse(self, line: bytes) -> None:
        try:
            found = parse_line(line)
        except ValueError as error:
            self._bad.append(BadLine(self._lines, str(error)[:200] or type(error).__name__))
            return
        for record in found:
            if record.uuid is not None:
                if record.uuid in self._seen:
                    continue
                self._seen.add(record.uuid)
            self._records.append(record)


class Transcripts:
    """The readers of this server; those that were used long ago are forgotten when memory fills."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._readers = OrderedDict[Path, TranscriptReader]()

    def reader(self, path: Path, warm: Callable[[TranscriptReader, Snapshot], object] | None) -> TranscriptReader:
        with self._lock:
            found = self._readers.pop(path, None) or TranscriptReader(path, warm)
            self._readers[path] = found
            while len(self._readers) > _MOST_READERS or (
                len(self._readers) > 1 and sum(one.weight for one in self._readers.values()) > _MOST_BYTES
            ):
                self._readers.popitem(last=False)
            return found


def reader_of(
    site: Site, path: Path, warm: Callable[[TranscriptReader, Snapshot], object] | None = None
) -> TranscriptReader:
    """The reader of a transcript; `warm` derives in the background what pages need from a large one."""
    return site.keep(Transcripts, Transcripts).reader(path, warm)
