"""Reads the new part of a session file that another program is writing, as records of ours.

Only complete lines are read: a half-written one is left for the next time. The file never changes.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from reverie.regular_files import LARGEST, open_regular
from reverie.storage.transcript.codex_sessions import CodexReader
from reverie.storage.transcript.file import parse_line
from reverie.storage.transcript.pi_sessions import read_pi_session
from reverie.storage.transcript.session_files import Form, form_of, is_session_name
from reverie.types import JsonObject, Record

_CHECKED = 4_096
"""The bytes at the start and before the offset by which a file is recognised."""


class SessionPart:
    """A session file from `offset` on. After all records were read, `offset` is where the next part begins."""

    def __init__(self, path: Path, *, offset: int = 0, form: Form | None = None, reader: JsonObject | None = None):
        self.path = path
        self.form: Form = form or form_of(path)
        self.offset = offset
        self.begins_later = offset > 0
        self.bad = 0
        """How many lines could not be read."""
        self.reader = reader
        """What the reader of the next part needs; None if this form is always read from the start."""
        self.stat: list[int] = []

    def records(self) -> Iterator[Record]:
        """Yields the records. Raises `OSError` if the file cannot be read."""
        fd = open_regular(self.path)
        with os.fdopen(fd, "rb") as file:
            found = os.fstat(fd)
            self.stat = identity(found)
            if found.st_size - self.offset > LARGEST:
                raise OSError(errno.EOVERFLOW, f"it has more than {LARGEST:,} bytes", str(self.path))
            if self.form == "pi":
                self.offset = found.st_size
                loaded = read_pi_session(self.path)
                self.bad = len(loaded.bad)
                yield from loaded.records
                return
            file.seek(self.offset)
            lines = self._lines(file, found.st_size)
            if self.form == "codex":
                reader = CodexReader(self.path.stem, self.reader)
                yield from reader.feed(lines)
                self.bad, self.reader = len(reader.bad), reader.state
                return
            for line in filter(bytes.strip, lines):
                try:
                    found_in_line = parse_line(line)
                except ValueError:
                    self.bad += 1
                    continue
                yield from found_in_line

    def read_head(self, records: Iterator[Record], into: list[Record]) -> tuple[str, str]:
        """Reads records until one has named the session and one its folder; returns both, empty if none did."""
        session = cwd = ""
        for record in records:
            into.append(record)
            session = session or str(record.data.get("sessionId") or "")
            cwd = cwd or str(record.data.get("cwd") or "")
            if session and cwd:
                break
        if self.form == "claude-code" and is_session_name(self.path):
            session = self.path.stem  # a resumed session may begin with records of another one
        return session or self.path.stem, cwd

    def _lines(self, file: Iterator[bytes], size: int) -> Iterator[bytes]:
        """Yields lines up to the size that the file had at first; the last one only if it is complete."""
        for line in file:
            if not line.endswith(b"\n") and not _is_complete(line):
                return
            self.offset += len(line)
            yield line
            if self.offset >= size:
                return


def _is_complete(line: bytes) -> bool:
    try:
        return bool(parse_line(line))
    except ValueError:
        return False


def identity(found: os.stat_result) -> list[int]:
    """What changes when somebody writes the file."""
    return [found.st_ino, found.st_size, found.st_mtime_ns]


def digest_before(path: Path, offset: int) -> str:
    """Returns a digest of the start of the file and of the bytes before `offset`."""
    fd = open_regular(path)
    try:
        start = min(_CHECKED, offset)
        head, tail = os.pread(fd, start, 0), os.pread(fd, start, offset - start)
    finally:
        os.close(fd)
    return hashlib.sha256(head + tail).hexdigest()[:24]
