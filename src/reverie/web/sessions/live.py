"""A session while it runs: whether a process has it open, what it does, and its new messages as events for a page.

Each open page looks at the size of the file; only growth is read, once for all pages. A page in the background of a
browser closes its stream.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from threading import Lock

from reverie.cli.tool_lines import call_text
from reverie.errors import ReverieError
from reverie.moments import modified_time
from reverie.runtime.live_client import ask_live
from reverie.storage.lease import Lease
from reverie.storage.transcript.sessions import SessionInfo
from reverie.types import JsonObject
from reverie.web.rendering import render
from reverie.web.sessions.items import Transcript
from reverie.web.sessions.opened import Opened
from reverie.web.site import Site
from reverie.web.visit import Data, Event, NotFound, Visit

_LOOK_S = 0.5
_STATUS_S = 2.0
_QUIET_S = 60.0
"""A file that did not grow for so long is not live any more, unless a process has it open."""
_OPEN_ITEMS = 8
"""The last items can still change: results come later than their calls."""
_ANSWER_S = 1.0


def growing(info: SessionInfo) -> bool:
    """Whether a process has the session open, or its file was written a moment ago."""
    try:
        if Lease.holder(info.lease) is not None:
            return True
        return time.time() - modified_time(info.path.stat()) < _QUIET_S
    except (ReverieError, OSError):
        return False


class LiveAnswers:
    """What live sessions answered last: all pages together ask each of them at most every two seconds."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known = dict[str, tuple[float, JsonObject]]()

    def ask(self, info: SessionInfo) -> JsonObject:
        """The process, and what it says about itself; empty if there is none."""
        with self._lock:
            at, known = self._known.get(info.id, (0.0, {}))
            if time.monotonic() - at < _STATUS_S:
                return known
        found: JsonObject = {}
        try:
            holder = Lease.holder(info.lease)
            if holder is not None:
                found = {"pid": int(holder.get("pid") or 0)}
                if isinstance(holder.get("socket"), str) and holder["socket"]:
                    found |= ask_live(Path(holder["socket"]), {"do": "status"}, _ANSWER_S)
        except (ReverieError, ValueError):
            pass
        with self._lock:
            self._known = {key: one for key, one in self._known.items() if time.monotonic() - one[0] < 60}
            self._known[info.id] = (time.monotonic(), found)
        return found


def status(opened: Opened) -> Data:
    """What the session does now."""
    return _status(opened.site, opened.info, opened.main)


def _status(site: Site, info: SessionInfo, transcript: Transcript) -> Data:
    answer = site.keep(LiveAnswers, LiveAnswers).ask(info)
    running = _open_calls(transcript) if answer.get("busy", True) else []
    busy = answer.get("busy")
    state = "working" if busy else "waiting for you" if busy is False else "open" if answer else "written just now"
    return {
        "state": state,
        "pid": answer.get("pid"),
        "tools": running,
        "used": answer.get("used"),
        "window": answer.get("window"),
    }


def _open_calls(transcript: Transcript) -> list[str]:
    """The calls of the last message that have no result yet."""
    for item in reversed(transcript.items[-_OPEN_ITEMS:]):
        if item.kind == "message":
            calls = [call for one in item.records if one.message is not None for call in one.message.tool_uses]
            return [call_text(one.name, one.input, None, 100) for one in calls if one.id not in transcript.results]
    return []


async def events(visit: Visit) -> AsyncIterator[str | Event]:
    """Status at once and when it changes, new messages, messages whose results have come; then `ended`."""
    follower = await asyncio.to_thread(_Follower, visit)
    yield await asyncio.to_thread(follower.update, True) or Event("")
    while not follower.is_over:
        await asyncio.sleep(_LOOK_S)
        if (event := await asyncio.to_thread(follower.update)) is not None:
            yield event
    yield Event("ended", name="ended")


class _Follower:
    """What one page knows, and what is new for it."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._info = visit.site.session(visit.path["session"])
        items, _, records = visit.query.get("last", "").partition(".")
        self._items = int(items[:9]) if items.isdecimal() else None
        self._records = int(records[:9]) if records.isdecimal() else -1
        self._size = -1
        self._looked = 0.0
        self._said = ""
        self._shown = dict[str, str]()
        self._opened: Opened | None = None
        self.is_over = False

    def update(self, first: bool = False) -> Event | None:
        try:
            size = os.stat(self._info.path).st_size  # noqa: PTH116
        except OSError:
            self.is_over = True
            return None
        now = time.monotonic()
        if size == self._size and now - self._looked < _STATUS_S:
            return None
        self._looked = now
        try:
            opened = self._opened if size == self._size and self._opened else Opened.of(self._visit)
        except NotFound:
            self.is_over = True
            return None
        changed, new = self._changes(opened) if size != self._size else ([], [])
        self._opened, self._size = opened, size
        self.is_over = not growing(self._info)
        known = _status(opened.site, self._info, opened.main) | ({"state": "ended"} if self.is_over else {})
        said = str(known)
        if not (changed or new or first or said != self._said):
            return None
        self._said = said
        text = render("session_live", {"live": known, "changed": changed, "new": new, "session": opened.info.id})
        return Event(text or "", id=f"{self._items}.{self._records}")

    def _changes(self, opened: Opened) -> tuple[list[Data], list[Data]]:
        items, describer = opened.main.items, opened.describer()
        known = min(len(items), self._items) if self._items is not None else len(items)
        is_known = len(opened.snapshot.records) == self._records
        changed = list[Data]()
        for item in items[max(0, known - _OPEN_ITEMS) : known]:
            data = describer.describe(item)
            mark = hashlib.sha256(repr(data).encode("utf-8", "replace")).hexdigest()
            before = self._shown.get(item.id, mark if is_known else "")
            if mark != before:
                changed.append(data)
            self._shown[item.id] = mark
        new = list[Data]()
        for item in items[known:]:
            data = describer.describe(item)
            self._shown[item.id] = hashlib.sha256(repr(data).encode("utf-8", "replace")).hexdigest()
            new.append(data)
        self._items, self._records = len(items), len(opened.snapshot.records)
        return changed, new
