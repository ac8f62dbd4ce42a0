"""The log of background work, one JSON object per line: tasks, failures, refusals.

Each line is one append, so many processes can share the file; two files of limited size are kept. It contains no
conversation and no secrets: long text is cut, known secrets are masked, and a field with conversation is replaced by
its length. If the log cannot be written, the work itself goes on.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from reverie.errors import StorageError
from reverie.moments import parse_time
from reverie.parsing import load_json
from reverie.quick import dataclass
from reverie.regular_files import LARGEST, open_regular, read_regular
from reverie.storage.atomic import make_private_dir, storage_error
from reverie.text.patterns import late
from reverie.types import Json, JsonObject

ROTATE_BYTES = 5_000_000
_TEXT_CHARACTERS = 500
_LIST_ITEMS = 50
# Fields of these names contain conversation: only their length is kept.
_CONVERSATION = frozenset({"prompt", "text", "content", "input", "output", "message", "messages", "system", "stdin"})
_SECRETS = late(
    r"""(?x)
    \b(?:sk|rk|pk)-[A-Za-z0-9_-]{8,}                       # model vendors
    | \b(?:gh[pousr]|github_pat|glpat|xox[abeprs])[-_][A-Za-z0-9_-]{8,}
    | \bA(?:KIA|SIA)[A-Z0-9]{12,}
    | \bAIza[A-Za-z0-9_-]{20,}
    | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}[.A-Za-z0-9_-]*  # signed tokens
    | (?i:\bbearer\s+|(?:api[-_]?key|token|secret|password|authorization)["']?\s*[=:]\s*["']?)[^\s"',;&]{4,}
    | (?<=://)[^\s/@]+(?=@)                                 # user:password in an address
    """
)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One line of the log."""

    time: datetime
    kind: str
    session: str | None
    fields: JsonObject

    def to_json(self) -> JsonObject:
        who = {} if self.session is None else {"session": self.session}
        return {"time": self.time.isoformat(timespec="milliseconds"), "kind": self.kind, **who, **self.fields}


class BackgroundLog:
    """The log at `path`; its lines are marked with `session`. `lost` counts lines that the disk refused."""

    def __init__(self, path: Path, session: str | None = None, *, rotate_bytes: int = ROTATE_BYTES) -> None:
        self.path = path
        self.lost = 0
        self.error: StorageError | None = None
        self._session = session
        self._rotate_bytes = rotate_bytes
        self._torn = False  # the disk accepted only half of the last line: the next one must not join it

    def write(self, kind: str, /, **fields: Json) -> None:
        """Appends one line. An error of the disk is not raised: `lost` counts the line, and `error` says why."""
        who = {} if self._session is None else {"session": self._session}
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        kept = {key: value for name, given in fields.items() for key, value in [_fit(name, given)]}
        line = json.dumps({"time": now, "kind": kind, **who, **kept}, ensure_ascii=False) + "\n"
        try:
            make_private_dir(self.path.parent)
            self._append(line.encode("utf-8", "replace"))
        except StorageError as error:
            self.lost, self.error = self.lost + 1, error

    def read(
        self,
        limit: int | None = None,
        since: datetime | None = None,
        kind: str | None = None,
        session: str | None = None,
    ) -> list[LogEntry]:
        """Returns the newest `limit` matching lines, oldest first. `kind` and `session` match the start."""
        found: list[LogEntry] = []
        for entry in self._newest_first():
            if (limit is not None and len(found) >= limit) or (since is not None and entry.time < since):
                break
            if entry.kind.startswith(kind or "") and (session is None or (entry.session or "").startswith(session)):
                found.append(entry)
        return found[::-1]

    def _append(self, line: bytes) -> None:
        try:
            while True:
                fd = open_regular(self.path, append=True, follow=False)
                try:
                    if os.fstat(fd).st_size + len(line) <= self._rotate_bytes or not self._rotate(fd):
                        whole = b"\n" * self._torn + line
                        self._torn = os.write(fd, whole) < len(whole)
                        if self._torn:
                            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                        return
                finally:
                    os.close(fd)
        except OSError as error:
            raise storage_error(error, self.path, "write the background log") from error

    def _rotate(self, fd: int) -> bool:
        """Moves the full file away, once. False: it is empty, and this line alone fills it."""
        if os.fstat(fd).st_size == 0:
            return False
        fcntl.flock(fd, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if os.path.samestat(self.path.stat(), os.fstat(fd)):
                self.path.replace(self._older)
        return True

    @property
    def _older(self) -> Path:
        return self.path.with_name(self.path.name + ".1")

    def _newest_first(self) -> Iterator[LogEntry]:
        for path in (self.path, self._older):
            try:
                lines = read_regular(path, LARGEST).split(b"\n")
            except FileNotFoundError:
                continue
            except OSError as error:
                raise storage_error(error, path, "read the background log") from error
            for line in reversed(lines):
                entry = _parse(line)
                if entry is not None:
                    yield entry


def _parse(line: bytes) -> LogEntry | None:
    try:
        raw: Any = load_json(line)
        if not isinstance(raw, dict):
            return None
        fields = dict(cast(JsonObject, raw))
        time = parse_time(fields.pop("time"), needs_zone=True)
        kind, session = fields.pop("kind"), fields.pop("session", None)
    except (ValueError, KeyError, TypeError):
        return None
    if time is None or not isinstance(kind, str) or not isinstance(session, str | None):
        return None
    return LogEntry(time, kind, session, fields)


def _fit(name: str, value: Json) -> tuple[str, Json]:
    if name in _CONVERSATION:
        return f"{name}_characters", len(value if isinstance(value, str) else json.dumps(value, default=str))
    if name in ("time", "kind", "session"):
        name += "_"
    if isinstance(value, dict):  # its values may be anything: keep only the keys
        name, value = f"{name}_keys", list(cast(JsonObject, value))
    if isinstance(value, list | tuple | set | frozenset):
        items = list(cast("list[Json]", value))
        return name, [_scalar(item) for item in items[:_LIST_ITEMS]]
    return name, _scalar(value)


def _scalar(value: Json) -> Json:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = _SECRETS.sub("[secret]", str(value))
    return text if len(text) <= _TEXT_CHARACTERS else text[: _TEXT_CHARACTERS - 1] + "…"
