"""Reads transcripts for pages: a little at a time, in the background if a file is large, and on from where it ended.

A page waits only a moment; then it shows what is read so far. Readers are shared by all visits and change no file.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, RLock, Thread
from typing import Any, TypeVar

from reverie.regular_files import LARGEST, open_regular
from reverie.storage.transcript.file import BadLine, parse_line
from reverie.types import Record
from reverie.web.site import Site
from reverie.web.visit import NotFound

T = TypeVar("T")

PATIENCE_S = 0.1
"""How long a page waits for a large file."""
_CHUNK = 1 << 20
_MOST_BYTES = 400_000_000
_MOST_READERS = 24


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


class TranscriptReader:
    """One transcript. A file that was replaced (by a purge, for example) is read again from its start."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = RLock()
        self._running = False
        self._derived = dict[str, tuple[tuple[int, int], Any]]()
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

    @property
    def weight(self) -> int:
        return self._read

    def look(self, patience_s: float = PATIENCE_S) -> Snapshot:
        """Reads what is new, for at most about this long; the rest follows in the background."""
        size, is_whole = self._advance(time.monotonic() + patience_s)
        if not is_whole:
            self._go_on()
        with self._lock:
            return Snapshot(self._records[:], self._bad[:], self._read, size, is_whole)

    def derive(self, name: str, snapshot: Snapshot, make: Callable[[Snapshot], T]) -> T:
        """What `make` returns for this snapshot; kept until there are more records."""
        key = (self._generation, len(snapshot.records))
        with self._lock:
            kept = self._derived.get(name)
            if kept is None or kept[0] != key:
                kept = self._derived[name] = (key, make(snapshot))
            return kept[1]

    def _go_on(self) -> None:
        with self._lock:
            if self._running:
                return
            self._running = True

        def run() -> None:
            try:
                while not self._advance(time.monotonic() + 0.5)[1]:
                    time.sleep(0.002)  # pages come first
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
        wanted = _CHUNK if self._read else _CHUNK // 4
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

    def reader(self, path: Path) -> TranscriptReader:
        with self._lock:
            found = self._readers.pop(path, None) or TranscriptReader(path)
            self._readers[path] = found
            while len(self._readers) > _MOST_READERS or (
                len(self._readers) > 1 and sum(one.weight for one in self._readers.values()) > _MOST_BYTES
            ):
                self._readers.popitem(last=False)
            return found


def reader_of(site: Site, path: Path) -> TranscriptReader:
    return site.keep(Transcripts, Transcripts).reader(path)
