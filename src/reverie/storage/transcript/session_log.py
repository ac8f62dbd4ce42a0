"""The log of one session: appends a record, applies it to the view and moves the head.

It is the only writer of a transcript. If the disk fails, the session continues in memory and reports this once.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from reverie.errors import StorageError
from reverie.origins import fence_block
from reverie.storage.transcript.chain import can_be_parent, conversation
from reverie.storage.transcript.file import BadLine, Transcript, move_home, read_records
from reverie.storage.transcript.records import SCHEMA_VERSION, CompactBoundary, Payload, Rewind, Undo, to_data
from reverie.storage.transcript.view import View
from reverie.types import JsonObject, Message, Record, TextBlock

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)


def timestamp(now: datetime) -> str:
    """Returns ISO 8601 in UTC with milliseconds, as in every record."""
    return now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class SessionLog:
    """The records of one session, and the view that results from them."""

    def __init__(
        self,
        path: Path | None,
        session_id: str,
        *,
        cwd: Path,
        version: str,
        home: Path | None = None,
        git_branch: str = "",
        agent_id: str | None = None,
        fsync: bool = False,
        clock: Clock = utc_now,
        on_storage_error: Callable[[StorageError], None] = lambda _error: None,
    ) -> None:
        self.session_id = session_id
        self.records: list[Record] = []
        self.bad: list[BadLine] = []
        self.view = View()
        self.head: str | None = None
        self._clock = clock
        self._transcript = Transcript(path, fsync=fsync) if path is not None else None
        self._on_storage_error = on_storage_error
        self._disk_failed = False
        self._waiting = list[Record]()
        self._common: JsonObject = {
            "sessionId": session_id,
            "cwd": str(cwd),
            "version": version,
            "gitBranch": git_branch,
            "isSidechain": agent_id is not None,
            "userType": "external",
            "opening": uuids.uuid4().hex[:8],
        } | ({"agentId": agent_id} if agent_id is not None else {})
        self._home = str(home) if home is not None else ""
        if self._home:
            self._common["home"] = self._home

    @property
    def path(self) -> Path | None:
        return self._transcript.path if self._transcript is not None else None

    @property
    def written(self) -> int:
        """The bytes by which this log has made its file longer."""
        return self._transcript.written if self._transcript is not None else 0

    @property
    def unsaved(self) -> int:
        """The number of records that are only in memory, because the disk refused them."""
        return self._transcript.unsaved if self._transcript is not None else 0

    def confirm(self) -> None:
        """Tries to save again; raises StorageError unless every record is on disk and the file can be written."""
        if self._transcript is not None:
            self._transcript.confirm()

    def load(self, path: Path) -> None:
        """Loads a file, with the paths of a moved home updated. Bad lines are in `bad` and stay in the file."""
        loaded = read_records(path)
        self.records = [move_home(record, self._home) for record in loaded.records] if self._home else loaded.records
        self.bad = loaded.bad
        self._refold()

    def reload(self) -> None:
        """Reads the own file again as it is now. One that was removed has no records: the conversation starts over."""
        if self._transcript is None:
            return
        self._transcript.release_removed()
        if self._transcript.path.exists():
            self.load(self._transcript.path)
        else:
            self.records, self.bad = [], []
            self._refold()

    def append_message(self, message: Message, **fields: object) -> Record:
        """Records one message after the current head, with the origins of its blocks."""
        return self._append(self._of_message(message, fields))

    def append(self, payload: Payload, **fields: object) -> Record:
        """Records one decision. Boundaries and headers become the head; other decisions do not."""
        return self._append(self._of_payload(payload, fields))

    def hold(self, payload: Payload) -> Record:
        """Applies one decision without writing it: it goes to disk before the next record, or never."""
        record = self._of_payload(payload, {})
        self._waiting.append(record)
        return self._take_in(record)

    def append_all(self, parts: Sequence[tuple[Payload | Message, JsonObject]]) -> list[Record]:
        """Records several things in one write, each after the one before."""
        records = list[Record]()
        for what, fields in parts:
            made = self._of_message(what, fields) if isinstance(what, Message) else self._of_payload(what, fields)
            records.append(self._take_in(made))
        self._save(records)
        return records

    def _of_message(self, message: Message, fields: JsonObject) -> Record:
        data: JsonObject = {**self._new(message.role), **fields}
        if message.role == "user":
            blocks = tuple(fence_block(block) if isinstance(block, TextBlock) else block for block in message.content)
            message = message if blocks == message.content else replace(message, content=blocks, plain=False)
            data["origins"] = [block.origin.value for block in message.content]
        return Record(data, message)

    def _of_payload(self, payload: Payload, fields: JsonObject) -> Record:
        data: JsonObject = {
            **self._new("system"),
            "subtype": payload.subtype,
            "content": payload.subtype.replace("_", " "),
            "level": "info",
            "reverie": to_data(payload),
            **fields,
        }
        if isinstance(payload, CompactBoundary):
            data["parentUuid"] = None
            data["logicalParentUuid"] = payload.last_uuid
            data["compactMetadata"] = {"trigger": payload.trigger, "preTokens": payload.tokens_before}
        return Record(data)

    def _new(self, kind: str) -> JsonObject:
        return {
            "parentUuid": self.head,
            **self._common,
            "type": kind,
            "uuid": str(uuids.uuid4()),
            "timestamp": timestamp(self._clock()),
            "schemaVersion": SCHEMA_VERSION,
        }

    def _append(self, record: Record) -> Record:
        self._save((record,))
        return self._take_in(record)

    def _take_in(self, record: Record) -> Record:
        self.records.append(record)
        if record.subtype in (Undo.subtype, Rewind.subtype):
            self._refold()
        else:
            self.view.apply(record)
            if can_be_parent(record):
                self.head = record.uuid
        return record

    def fork(self, thread: str) -> SessionLog:
        """Returns a log in memory that starts here; nothing appended to it reaches this log or the disk."""
        twin = SessionLog(None, self.session_id, cwd=Path(), version="", clock=self._clock)
        twin._common = {**self._common, "isSidechain": True, "agentId": thread}
        twin.view, twin.head = self.view.copy(), self.head
        return twin

    def _save(self, records: Iterable[Record]) -> None:
        if self._transcript is None:
            return
        waiting, self._waiting = self._waiting, []
        try:
            self._transcript.append([*waiting, *records])
        except StorageError as error:
            if not self._disk_failed:
                self._on_storage_error(error)
            self._disk_failed = True
        else:
            self._disk_failed = False

    def _refold(self) -> None:
        ordered = conversation(self.records)
        self.view = View.of(ordered)
        self.head = next((record.uuid for record in reversed(ordered) if can_be_parent(record)), None)

    def close(self) -> None:
        if self._transcript is None:
            return
        try:
            self._transcript.close()
        except StorageError as error:
            if not self._disk_failed:
                self._on_storage_error(error)
