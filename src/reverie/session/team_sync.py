"""Syncs the team's part of the memory while a session runs: at its start, and after turns that changed it.

One background sync at a time. A failed sync is reported once and tried again; the local files stay unchanged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import TypeAlias

from reverie.errors import ReverieError
from reverie.events import Event, Notice
from reverie.memory.opening import OpenedMemory
from reverie.memory.taxonomy import TEAM
from reverie.runtime.tasks import TaskHandle, Tasks
from reverie.session.parts import SessionParts
from reverie.types import Purpose

_FLAG = "team_memory"

_Seen: TypeAlias = frozenset[tuple[str, int, int]]


class TeamSync:
    """The syncs of one session; none where team memory is off or not shared."""

    def __init__(self, parts: SessionParts, tasks: Tasks, memory: OpenedMemory, emit: Callable[[Event], None]) -> None:
        self._parts = parts
        self._tasks = tasks
        self._memory = memory
        self._emit = emit
        self._seen: _Seen | None = None
        self._last = 0.0
        self._running = False
        self._reported = ""

    def look(self) -> None:
        """Starts a sync if our files have changed, or it is time to look at theirs. Costs one look at a folder."""
        given = self._parts.settings.team
        if given.sharing == "none" or self._running or not self._is_on():
            return
        due = self._seen is None or monotonic() - self._last >= given.sync_minutes * 60
        if due or self._files() != self._seen:
            self._running = True
            self._tasks.start(Purpose.CLEANUP, "the team's memory", self._sync, serial="team-sync")

    def _is_on(self) -> bool:
        header = self._parts.log.view.header
        return bool(header.flags.get(_FLAG)) if header else self._parts.flags.snapshot().on(_FLAG)

    async def _sync(self, task: TaskHandle) -> None:
        from reverie.memory.sharing.team import sync

        memory = self._memory
        keep = self._parts.places.team_sync(memory.directory.root)
        self._last = monotonic()
        try:
            done = await asyncio.to_thread(sync, memory.directory, self._parts.settings, keep, memory.gate)
        except ReverieError as error:
            if str(error) != self._reported:
                self._emit(Notice(f"the team's memory was not synced: {error}", "warning", source="memory"))
            self._reported = str(error)
            raise
        finally:
            self._seen = self._files()
            self._running = False
        self._reported = ""
        task.progress(done.summary)
        if done.changed or done.held_back:
            self._emit(Notice(f"the team's memory: {done.summary}", source="memory"))

    def _files(self) -> _Seen:
        seen = set[tuple[str, int, int]]()
        try:
            for path in (self._memory.directory.root / TEAM).rglob("*.md"):
                status = path.stat()
                seen.add((str(path), status.st_mtime_ns, status.st_size))
        except OSError:
            return frozenset()  # something changed during the look: the next one sees it
        return frozenset(seen)
