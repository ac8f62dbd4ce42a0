"""A log of every request that is sent, for debugging. It is off unless the user names a file, because it holds prompts.

One JSON line per request, appended by a single write, so that several processes can share a file. A line leaves out
what the previous request of its thread had too.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from reverie.errors import StorageError
from reverie.models import wire
from reverie.models.base import Request
from reverie.parsing import RECORD_DEPTH, load_json
from reverie.quick import dataclass
from reverie.regular_files import open_regular
from reverie.types import JsonObject


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """A logged request; `parts` are the blocks of its prefix (see `wire.prefix_parts`), as JSON text."""

    ts: float
    pid: int
    conversation: str
    thread: str
    purpose: str
    model: str
    announced_break: str | None
    parts: tuple[str, ...]


class RequestLog:
    """Appends to `path`, and creates the file if needed (mode 0600)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last: dict[tuple[str, str], list[str]] = {}
        self._rendered = wire.Rendered()

    def add(self, request: Request) -> None:
        """Writes down a request that is sent now."""
        key = (request.conversation, request.thread)
        parts = wire.prefix_parts(request, self._rendered)
        same = wire.count_shared(self._last.get(key, []), parts)
        line: JsonObject = {
            "ts": time.time(),
            "pid": os.getpid(),
            "conversation": request.conversation,
            "thread": request.thread,
            "purpose": request.purpose.value,
            "model": request.model,
            "announced_break": request.announced_break,
            "prefix": {"same": same, "parts": parts[same:]},
        }
        data = json.dumps(line, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
        if not self._last:
            data = b"\n" + data  # ends a line that a killed process may have left
        try:
            fd = open_regular(self._path, append=True)
            try:
                os.write(fd, data)
            finally:
                os.close(fd)
        except OSError as error:
            raise StorageError(f"The request log {self._path} cannot be written: {error.strerror or error}.") from error
        self._last[key] = parts


def read_log(path: Path) -> Iterator[LoggedRequest]:
    """The requests of a log, in the order they were sent; incomplete lines are left out."""
    last: dict[tuple[int, str, str], list[str]] = {}
    with os.fdopen(open_regular(path), encoding="utf-8", errors="surrogatepass") as lines:
        for line in lines:
            try:
                raw: JsonObject = load_json(line, depth=RECORD_DEPTH)
            except ValueError:
                continue
            key = (raw["pid"], raw["conversation"], raw["thread"])
            parts = [*last.get(key, [])[: raw["prefix"]["same"]], *raw["prefix"]["parts"]]
            last[key] = parts
            del raw["prefix"]
            yield LoggedRequest(**raw, parts=tuple(parts))
