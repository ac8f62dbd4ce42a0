"""An inbox on disk: messages for one reader, written by many processes. Each message is read exactly once.

The file is a JSON array with one message per line. It is replaced as a whole under a lock. `collect` returns the new
messages. A message moves to the archive only when the reader's transcript contains its id, so a kill loses and repeats
nothing. It blocks: in an event loop, call it in a thread. It waits a limited time and keeps what it cannot read.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from reverie.agents.messages.message import AgentMessage, recorded_ids
from reverie.errors import UserError
from reverie.moments import parse_time
from reverie.parsing import load_json
from reverie.quick import dataclass
from reverie.regular_files import LARGEST, open_regular, read_regular
from reverie.storage.atomic import make_private_dir, storage_error, write_atomic
from reverie.storage.locks import exclusive
from reverie.storage.transcript.session_log import SessionLog, timestamp
from reverie.types import JsonObject

LOCK_WAIT_S = 30.0
LARGEST_FILE = 64 * 1_048_576
_ID_CHARACTERS = 16


class InboxFull(UserError):
    """Too many messages that nobody reads; no more are added."""


class InboxClosed(UserError):
    """Nobody will read this inbox, because its owner has ended."""


@dataclass(frozen=True, slots=True)
class NewMessages:
    """New messages in order. `aside` is the file with unreadable content, if there was any."""

    messages: tuple[AgentMessage, ...]
    aside: Path | None = None


class InboxFile:
    """The inbox at `path`, which ends in `.json`. Several objects and processes may share it."""

    def __init__(
        self, path: Path, *, fsync: bool = False, lock_wait_s: float = LOCK_WAIT_S, largest: int = LARGEST_FILE
    ) -> None:
        self.path = path
        self.archive = path.with_suffix(".read.jsonl")
        self._lock = path.with_suffix(".lock")
        self._fsync = fsync
        self._lock_wait_s = lock_wait_s
        self._largest = largest

    def put(self, message: AgentMessage, *, is_open: Callable[[], bool] = lambda: True) -> None:
        """Adds a message. Raises InboxClosed if `is_open`, asked under the lock, says no, InboxFull or StorageError."""
        make_private_dir(self.path.parent)
        line = _line(message)
        with self._locked():
            if not is_open():
                raise InboxClosed(f"{message.to} has ended; nobody reads messages to it.")
            old = self._bytes()
            if len(old) + len(line) > self._largest:
                raise InboxFull(
                    f"The inbox of {message.to} holds {len(old):,} bytes that nobody has read; "
                    f"{len(line):,} more do not fit into {self._largest:,}: is it still working?"
                )
            self._replace(_splice(old, line) if _is_array(old) else self._rescue(old, [line]))

    def collect(self, recorded: Collection[str] = (), *, handed: Collection[str] = ()) -> NewMessages:
        """Returns the messages that are neither `recorded` (these go to the archive) nor `handed` yet, oldest first."""
        if not self.path.exists():
            return NewMessages(())
        with self._locked():
            entries, aside = self._entries()
            done = [entry for entry in entries if entry["id"] in recorded or entry.get("read")]
            left = [entry for entry in entries if not (entry["id"] in recorded or entry.get("read"))]
            if done:
                # The archive first: a kill before the next step repeats a line there, and loses none.
                self._archive({**entry, "read": True} for entry in done)
                self._write(left)
        return NewMessages(
            tuple(_parse_message(entry, self.path.stem) for entry in left if entry["id"] not in handed), aside
        )

    def close(self, leave: Callable[[], None] = lambda: None) -> Sequence[AgentMessage]:
        """Removes and returns all unread messages. `leave` runs under the lock first and closes the inbox for `put`."""
        make_private_dir(self.path.parent)
        with self._locked():
            leave()
            entries, _ = self._entries() if self.path.exists() else ([], None)
            if entries:
                self._archive({**entry, "unread": not entry.get("read")} for entry in entries)
                self._write([])
        return [_parse_message(entry, self.path.stem) for entry in entries if not entry.get("read")]

    @property
    def stamp(self) -> tuple[int, int, int] | None:
        """Changes whenever the file changes; None without a file. Needs no lock."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    @property
    def is_empty(self) -> bool:
        """Whether no message waits here. Needs no lock."""
        return self._bytes().strip() in (b"", b"[]", b"[\n]")

    # -- the file -------------------------------------------------------------------------------------------------

    def _locked(self) -> AbstractContextManager[None]:
        return exclusive(self._lock, timeout_s=self._lock_wait_s, what=f"the inbox {self.path.stem}")

    def _bytes(self) -> bytes:
        try:
            return read_regular(self.path, LARGEST)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise storage_error(error, self.path, "read the inbox") from error

    def _entries(self) -> tuple[list[JsonObject], Path | None]:
        """Returns all entries with unique ids and puts anything else aside. The caller holds the lock."""
        raw = self._bytes()
        found, aside = _parse_array(raw), None
        if found is None:
            rescued = self._rescue(raw, [])
            self._replace(rescued)
            found, aside = _parse_array(rescued) or [], self._aside_path(raw)
        good = [entry for entry in found if _is_entry(entry)]
        given = _with_ids(good)
        if len(good) < len(found):
            aside = self._put_aside(raw)
        if given != found:
            self._write(given)
        return given, aside

    def _write(self, entries: Sequence[JsonObject]) -> None:
        self._replace(_array([json.dumps(entry).encode() for entry in entries]))

    def _replace(self, data: bytes) -> None:
        write_atomic(self.path, data, fsync=self._fsync)

    def _archive(self, entries: Iterable[JsonObject]) -> None:
        # Start with a line break too: a line that a kill cut short must not join the next one.
        lines = b"\n" + b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)
        try:
            if self.archive.exists() and self.archive.stat().st_size > self._largest:
                self.archive.replace(self.archive.with_suffix(".older.jsonl"))
            with os.fdopen(open_regular(self.archive, append=True, follow=False), "ab") as file:
                file.write(lines)
        except OSError as error:
            raise storage_error(error, self.archive, "write") from error

    def _rescue(self, raw: bytes, more: Sequence[bytes]) -> bytes:
        """Returns a new file of the readable lines; the broken file is put aside as a whole."""
        self._put_aside(raw)
        good = [line for part in raw.splitlines() if (line := _good_line(part)) is not None]
        return _array([*good, *more])

    def _put_aside(self, raw: bytes) -> Path | None:
        if not raw.strip():
            return None
        path = self._aside_path(raw)
        write_atomic(path, raw, fsync=self._fsync)
        return path

    def _aside_path(self, raw: bytes) -> Path:
        import hashlib

        return self.path.with_name(f"{self.path.stem}.unreadable-{hashlib.sha256(raw).hexdigest()[:12]}")


def _line(message: AgentMessage) -> bytes:
    entry: JsonObject = {
        "id": message.id,
        "from": message.sender,
        "text": message.text,
        "timestamp": timestamp(message.at),
        "read": False,
        **({"summary": message.summary} if message.summary else {}),
        **({"color": message.color} if message.color else {}),
    }
    return json.dumps(entry).encode()


def _array(lines: Sequence[bytes]) -> bytes:
    return b"[\n" + b",\n".join(lines) + b"\n]\n" if lines else b"[]\n"


def _is_array(raw: bytes) -> bool:
    """Whether a line can be added without parsing the array; the reader finds errors inside."""
    text = raw.strip()
    return text.startswith(b"[") and text.endswith(b"]") and not text.endswith(b",]")


def _splice(old: bytes, line: bytes) -> bytes:
    body = old.strip()[:-1].rstrip()
    return body + (b"\n" if body == b"[" else b",\n") + line + b"\n]\n"


def _parse_array(raw: bytes) -> list[Any] | None:
    if not raw.strip():
        return []
    try:
        value: Any = load_json(raw)
    except ValueError:
        return None
    return cast("list[Any]", value) if isinstance(value, list) else None


def _good_line(part: bytes) -> bytes | None:
    line = part.strip().rstrip(b",").removeprefix(b"[").removesuffix(b"]").strip()
    try:
        value: Any = load_json(line)
    except ValueError:
        return None
    return json.dumps(value).encode() if _is_entry(value) else None


def _is_entry(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(cast(JsonObject, value).get("from"), str)
        and isinstance(cast(JsonObject, value).get("text"), str)
    )


def _with_ids(entries: Sequence[JsonObject]) -> list[JsonObject]:
    """Gives every entry a unique id. An entry that was put twice (its writer was not sure) counts once."""
    given = dict[str, JsonObject]()
    for entry in entries:
        id = entry.get("id")
        if not _is_id(id) or (id in given and given[id]["text"] != entry["text"]):
            entry = {**entry, "id": secrets.token_hex(_ID_CHARACTERS // 2)}
        given.setdefault(entry["id"], entry)
    return list(given.values())


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and len(value) == _ID_CHARACTERS and not set(value) - set("0123456789abcdef")


def _parse_message(entry: JsonObject, to: str) -> AgentMessage:
    at = parse_time(entry.get("timestamp")) or datetime.now(UTC)
    summary, color = entry.get("summary"), entry.get("color")
    return AgentMessage(
        id=entry["id"],
        sender=entry["from"],
        to=to,
        text=entry["text"],
        summary=summary if isinstance(summary, str) else "",
        at=at,
        color=color if isinstance(color, str) else "",
    )


class InboxReader:
    """Reads an inbox for one log. Record every new message in the log, or call `done` for it."""

    def __init__(self, inbox: InboxFile, log: SessionLog) -> None:
        self.inbox = inbox
        self._log = log
        self._read = 0
        self._recorded = set[str]()
        self._handed = set[str]()
        self._stamp: object = None

    def look_now(self) -> NewMessages:
        """Returns each new message once, in order. Blocks for the lock and the disk."""
        self._catch_up()
        return self._mark_handed(self.inbox.collect(self._recorded, handed=self._handed))

    async def look(self) -> NewMessages:
        """Does the same without blocking the loop; while nothing changes it costs one `stat`."""
        moved = self._catch_up()
        stamp = self.inbox.stamp
        if not moved and stamp == self._stamp:
            return NewMessages(())
        found = await asyncio.to_thread(self.inbox.collect, frozenset(self._recorded), handed=frozenset(self._handed))
        self._stamp = stamp  # taken before the look: messages that came during it are found next time
        return self._mark_handed(found)

    def done(self, id: str) -> None:
        """Marks a message that needs no place in the transcript, because the program has acted on it."""
        self._recorded.add(id)
        self._stamp = None

    def _mark_handed(self, found: NewMessages) -> NewMessages:
        self._handed |= {message.id for message in found.messages}
        return found

    def _catch_up(self) -> bool:
        """Whether the transcript contains messages that it did not contain before."""
        if self._log.unsaved:  # records in memory end with the process: the messages stay in the file
            return False
        records = self._log.records
        new = recorded_ids(records[self._read :])
        self._read = len(records)
        self._recorded |= new
        return bool(new)
