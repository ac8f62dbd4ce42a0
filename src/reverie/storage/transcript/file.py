"""The transcript file: one JSON object per line, append-only.

Reading never fails on a bad line: it is reported by number and stays in the file. Appending is one write. Records that
the disk refuses are kept in memory and written first the next time. Paths of a home that was moved become paths of the
current home.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import cast

from reverie.errors import StorageError, UserError
from reverie.parsing import load_json_values
from reverie.quick import dataclass
from reverie.regular_files import LARGEST, open_regular, read_regular, read_tail
from reverie.storage.atomic import make_private_dir, storage_error
from reverie.storage.transcript.foreign import foreign_origins
from reverie.types import Json, JsonObject, Origin, Record, parse_message


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that could not be read. It stays in the file."""

    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """The records of a file in file order, and its problems."""

    records: list[Record]
    bad: list[BadLine] = field(default_factory=list[BadLine])
    doubled: int = 0
    torn: bool = False


def parse_record(raw: JsonObject) -> Record:
    """Parses one JSON object. `parse_record(x).stored() == x` for every object."""
    message = raw.get("message")
    if isinstance(message, dict) and raw.get("type") in ("user", "assistant"):
        parsed = parse_message(cast(JsonObject, message), _origins(raw, cast(JsonObject, message)))
        if parsed is not None:
            return Record({key: value for key, value in raw.items() if key != "message"}, parsed)
    return Record(raw)


def _origins(raw: JsonObject, message: JsonObject) -> list[Origin]:
    """Returns one origin per block. Ours are recorded; for foreign files they follow from the form of the record."""
    given = raw.get("origins")
    if isinstance(given, list):
        return [Origin.named(str(name)) for name in cast(list[Json], given)]
    return foreign_origins(raw, message)


def parse_line(line: bytes) -> list[Record]:
    """Parses one line: one record, or more where writers overlapped. Raises ValueError if it is not JSON objects."""
    found = list[Record]()
    for value in load_json_values(line.decode("utf-8").strip()):
        if not isinstance(value, dict):
            raise ValueError("not a JSON object")
        found.append(parse_record(cast(JsonObject, value)))
    return found


def dump_record(record: Record) -> bytes:
    """Returns one line with its newline. Characters that UTF-8 cannot hold (lone surrogates) are escaped."""
    value = record.stored()
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def read_records(path: Path) -> Loaded:
    """Reads a whole file. A torn last line is reported and left out; a record that was written twice counts once."""
    try:
        content = read_regular(path, LARGEST)
    except FileNotFoundError:
        raise UserError(f"there is no transcript at {path}") from None
    except OSError as error:
        raise storage_error(error, path, "read the transcript") from error
    records, bad, doubled = list[Record](), list[BadLine](), 0
    seen = set[str]()
    lines = content.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found = parse_line(line)
        except ValueError as error:
            if number == len(lines):
                return Loaded(records, bad, doubled, torn=True)
            bad.append(BadLine(number, _why(error)))
            continue
        for record in found:
            if record.uuid is not None and record.uuid in seen:
                doubled += 1
                continue
            if record.uuid is not None:
                seen.add(record.uuid)
            records.append(record)
    return Loaded(records, bad, doubled)


def _why(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 at byte {error.start}"
    return str(error) or type(error).__name__


class Transcript:
    """A file open for appending. Opening it repairs what a crash left at its end."""

    def __init__(self, path: Path, *, fsync: bool = False) -> None:
        self.path = path
        self._fsync = fsync
        self._fd: int | None = None
        self.written = 0
        """The bytes by which this object has made the file longer."""
        self._unsaved = list[bytes]()

    @property
    def unsaved(self) -> int:
        """The number of records that the disk has not accepted yet."""
        return len(self._unsaved)

    def append(self, records: Iterable[Record]) -> None:
        """Writes the records as one block. Raises StorageError; failed records are kept and written first next time."""
        self._unsaved += [dump_record(record) for record in records]
        if not self._unsaved:
            return
        try:
            self._write(b"".join(self._unsaved))
        except OSError as error:
            raise storage_error(error, self.path, "write the transcript") from error
        self._unsaved.clear()

    def confirm(self) -> None:
        """Writes unsaved records. Raises StorageError if that fails, or if the file cannot be opened for writing."""
        self.append(())
        try:
            if self._fd is None:
                self._fd = self._open()
        except OSError as error:
            raise storage_error(error, self.path, "write the transcript") from error

    def _write(self, block: bytes) -> None:
        if self._fd is None:
            self._fd = self._open()
        if os.fstat(self._fd).st_nlink == 0:
            raise FileNotFoundError(2, "the transcript was removed while the session was running")
        before = os.lseek(self._fd, 0, os.SEEK_END)
        if before and os.pread(self._fd, 1, before - 1) != b"\n":
            block = b"\n" + block  # another process died in the middle of a line, or is writing one
        try:
            view = memoryview(block)
            while view:
                view = view[os.write(self._fd, view) :]
            if self._fsync:
                os.fsync(self._fd)
        except OSError:
            os.ftruncate(self._fd, before)  # a full disk must not leave half a record
            raise
        self.written += len(block)

    def _open(self) -> int:
        make_private_dir(self.path.parent)
        fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._repair(fd)
        except OSError:
            os.close(fd)
            raise
        return fd

    def _repair(self, fd: int) -> None:
        """Ends an unfinished last line. A fragment was never acknowledged: it moves to a `.torn` file."""
        size = os.lseek(fd, 0, os.SEEK_END)
        tail, at = b"", size
        while at > 0 and b"\n" not in tail:
            step = min(65536, at)
            at -= step
            tail = os.pread(fd, step, at) + tail
        fragment = tail.rpartition(b"\n")[2]
        if not fragment:
            return
        try:
            parse_line(fragment)
        except ValueError:
            aside = open_regular(f"{self.path}.torn", append=True)
            try:
                os.write(aside, fragment + b"\n")
            finally:
                os.close(aside)
            os.ftruncate(fd, size - len(fragment))
            self.written -= len(fragment)
        else:
            self.written += os.write(fd, b"\n")

    def release_removed(self) -> None:
        """Closes a file that was removed; the next record opens the one that has this path then."""
        if self._fd is not None and os.fstat(self._fd).st_nlink == 0:
            os.close(self._fd)
            self._fd = None

    def close(self) -> None:
        """Writes unsaved records, if the disk accepts them now, and closes the file. An empty file is removed."""
        try:
            self.append(())
        finally:
            if self._fd is not None:
                if os.fstat(self._fd).st_size == 0:
                    with suppress(OSError):
                        self.path.unlink()
                os.close(self._fd)
                self._fd = None


def tail_records(path: Path, *, limit_bytes: int = 65536) -> Iterator[Record]:
    """Yields the last records of a file, newest first, without reading all of it."""
    try:
        tail, is_whole = read_tail(path, limit_bytes)
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error
    lines = tail.split(b"\n")
    for line in reversed(lines if is_whole else lines[1:]):
        try:
            yield from reversed(parse_line(line))
        except ValueError:
            continue


def move_home(record: Record, home: str) -> Record:
    """Returns the record with every path below its old home turned into one below `home`."""
    old = record.data.get("home")
    if not isinstance(old, str) or not old or old == home:
        return record
    pattern = re.compile(rf"(?<![\w./-]){re.escape(old)}(?![\w.-])")
    moved = cast(JsonObject, _replace_home(record.stored(), pattern, home))
    return parse_record({**moved, "home": old})


def is_from_other_home(record: Record, home: str) -> bool:
    """Whether the record was written while the home was somewhere else."""
    return record.data.get("home", home) != home


def _replace_home(value: Json, old: re.Pattern[str], new: str) -> Json:
    if isinstance(value, str):
        return old.sub(lambda _found: new, value)
    if isinstance(value, list):
        return [_replace_home(item, old, new) for item in cast(list[Json], value)]
    if isinstance(value, dict):
        given = cast(JsonObject, value)
        if given.get("type") in ("thinking", "redacted_thinking"):
            return given
        return {key: _replace_home(item, old, new) for key, item in given.items()}
    return value
