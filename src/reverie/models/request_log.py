"""A log of every request actually sent, for debugging and for the check that no prefix breaks unannounced.

One JSON line a request, appended by a single write, so that several processes can share a file. What a request has in
common with the one before it in its thread is not written again: a long conversation stays readable and linear in size.
Holds prompts in full: it is off unless somebody names a file.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reverie.errors import StorageError
from reverie.models import wire
from reverie.models.base import Request
from reverie.parsing import RECORD_DEPTH, load_json
from reverie.regular_files import open_regular
from reverie.types import JsonObject

MAIN = "main"


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """A request as it was logged; `parts` are the blocks of its prefix (see `wire.prefix_parts`), as JSON text."""

    ts: float
    pid: int
    conversation: str
    thread: str
    purpose: str
    model: str
    announced_break: str | None
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PrefixBreak:
    """Two requests in a row of one thread that do not share what came first, and the part where they part."""

    before: LoggedRequest
    after: LoggedRequest
    index: int

    def __str__(self) -> str:
        was = self.before.parts[self.index]
        now = self.after.parts[self.index] if self.index < len(self.after.parts) else "(nothing)"
        where = f"{self.after.conversation or 'a conversation'}, thread {self.after.thread}, part {self.index}"
        return f"The prefix broke unannounced ({where}): it was {_short(was)}, it is {_short(now)}."


class RequestLog:
    """Appends to `path`, which is made if it is not there (mode 0600)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last: dict[tuple[str, str], list[str]] = {}
        self._rendered = wire.Rendered()

    def sent(self, request: Request) -> None:
        """Notes that this request goes out now."""
        key = (request.conversation, request.thread)
        parts = wire.prefix_parts(request, self._rendered)
        same = _shared(self._last.get(key, []), parts)
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
            data = b"\n" + data  # ends what a killed process may have left torn
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
    """The requests of a log in the order they were sent; a line torn by a kill is left out."""
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
            yield LoggedRequest(
                ts=raw["ts"],
                pid=raw["pid"],
                conversation=raw["conversation"],
                thread=raw["thread"],
                purpose=raw["purpose"],
                model=raw["model"],
                announced_break=raw["announced_break"],
                parts=tuple(parts),
            )


_ANSWER = '{"assistant"'


def prefix_breaks(path: Path) -> list[PrefixBreak]:
    """Every request of a log that does not continue the one before it in its thread and did not say why.

    A fork's first request continues the last one of the conversation it was forked from; or an earlier one and its
    answer, if the conversation went on before the fork was run; or the last one of another fork, whose own it is.
    """
    before: dict[tuple[str, str, int], LoggedRequest] = {}
    mains: dict[str, list[LoggedRequest]] = {}
    found: list[PrefixBreak] = []
    for request in read_log(path):
        pid = 0 if request.thread == MAIN else request.pid  # a fork ends with its process: its name may come again
        key = (request.conversation, request.thread, pid)
        own = before.get(key)
        last = own or before.get((request.conversation, MAIN, 0))
        if last and request.announced_break is None:
            index = _shared(last.parts, request.parts)
            earlier = mains.get(request.conversation, ()) if own is None else ()
            forks = [one for one in before.values() if one.conversation == request.conversation] if own is None else []
            if (
                index < len(last.parts)
                and not any(_goes_on_from(one, request, index) for one in earlier)
                and not any(_shared(one.parts, request.parts) == len(one.parts) for one in forks)
            ):
                found.append(PrefixBreak(last, request, index))
        before[key] = request
        if request.thread == MAIN:
            mains.setdefault(request.conversation, []).append(request)
    return found


def _goes_on_from(main: LoggedRequest, fork: LoggedRequest, index: int) -> bool:
    """Whether a fork holds this request and its answer and then, from `index` on, what is its own."""
    end = len(main.parts)
    if end > index or index >= len(fork.parts) or _shared(main.parts, fork.parts) < end:
        return False
    answer = fork.parts[end:index]
    return all(part.startswith(_ANSWER) for part in answer) and not fork.parts[index].startswith(_ANSWER)


def _shared(before: list[str] | tuple[str, ...], after: list[str] | tuple[str, ...]) -> int:
    count = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        count += 1
    return count


def _short(part: str) -> str:
    return part if len(part) <= 160 else f"{part[:120]}…{part[-39:]}"
