"""Syncs memory while a session runs, at its start and after turns that changed it: the team's part through a folder or
a git remote, and the whole directory with a memory server.

One background sync of each kind at a time. A failed sync is reported once and tried again; the local files stay
unchanged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, TypeAlias

from reverie.errors import ReverieError
from reverie.events import Event, Notice
from reverie.memory.opening import OpenedMemory
from reverie.memory.taxonomy import TEAM
from reverie.runtime.tasks import TaskHandle, Tasks
from reverie.session.parts import SessionParts
from reverie.types import Purpose

if TYPE_CHECKING:
    from reverie.memory.sharing.rounds import SyncReport

_FLAG = "team_memory"
_FIRST_WAIT_S = 1.0
"""How long the start of a session waits for a memory server."""
_LAST_WAIT_S = 5.0

_Seen: TypeAlias = frozenset[tuple[str, int, int]]


class BackgroundSync:
    """The syncs of one kind in one session. `act` blocks and runs in a thread; None: it did not try. `folder` is looked
    at for changes."""

    def __init__(
        self,
        what: str,
        folder: Path,
        minutes: float,
        act: Callable[[], SyncReport | None],
        tasks: Tasks,
        emit: Callable[[Event], None],
    ) -> None:
        self._what = what
        self._folder = folder
        self._every_s = minutes * 60
        self._act = act
        self._tasks = tasks
        self._emit = emit
        self._seen: _Seen | None = None
        self._last = 0.0
        self._running: asyncio.Event | None = None
        self._reported = ""
        self._held_back: tuple[str, ...] = ()

    def look(self) -> None:
        """Starts a sync if our files have changed, or it is time to look at theirs. Costs one look at a folder."""
        if self._running is not None:
            return
        due = self._seen is None or monotonic() - self._last >= self._every_s
        if due or self._files() != self._seen:
            self._running = asyncio.Event()
            self._tasks.start(Purpose.CLEANUP, self._what, self._sync, serial=self._what)

    async def settle(self, seconds: float) -> None:
        """Waits for a running sync, at most so long."""
        if self._running is not None:
            try:
                await asyncio.wait_for(self._running.wait(), seconds)
            except TimeoutError:
                return

    async def _sync(self, task: TaskHandle) -> None:
        self._last = monotonic()
        try:
            done = await asyncio.to_thread(self._act)
        except ReverieError as error:
            if str(error) != self._reported:
                self._emit(Notice(f"{self._what} was not synced: {error}", "warning", source="memory"))
            self._reported = str(error)
            raise
        finally:
            self._seen = self._files()
            if self._running is not None:
                self._running.set()
            self._running = None
        if done is None:
            return
        self._reported = ""
        task.progress(done.summary)
        if done.changed or done.held_back != self._held_back:
            self._emit(Notice(f"{self._what}: {done.summary}", source="memory"))
        self._held_back = done.held_back

    def _files(self) -> _Seen:
        seen = set[tuple[str, int, int]]()
        try:
            for path in self._folder.rglob("*.md"):
                status = path.stat()
                seen.add((str(path), status.st_mtime_ns, status.st_size))
        except OSError:
            return frozenset()  # something changed during the look: the next one sees it
        return frozenset(seen)


class SessionSyncs:
    """Every sync of one session; none where memory is not shared."""

    def __init__(self, parts: SessionParts, tasks: Tasks, memory: OpenedMemory, emit: Callable[[Event], None]) -> None:
        self._parts = parts
        self._tasks = tasks
        given, root = memory.settings, memory.directory.root
        minutes = given.team.sync_minutes
        self._team: BackgroundSync | None = None
        self._store: BackgroundSync | None = None
        self._is_started = False
        if given.team.sharing != "none":

            def sync_team() -> SyncReport:
                from reverie.memory.sharing.team import sync

                return sync(memory.directory, given, memory.places.team_sync(root), memory.gate)

            self._team = BackgroundSync("the team's memory", root / TEAM, minutes, sync_team, tasks, emit)
        if given.memory.store:

            def sync_server() -> SyncReport | None:
                from reverie.memory.sharing.store.background import is_paused
                from reverie.memory.sharing.store.sync import sync_store

                return None if is_paused(memory) else sync_store(memory)

            self._store = BackgroundSync("the memory server", root, minutes, sync_server, tasks, emit)

    def look(self) -> None:
        """Starts what is due."""
        if self._team is not None and self._is_on():
            self._team.look()
        if self._store is not None:
            self._store.look()

    async def start(self) -> None:
        """The first look. What a memory server has arrives before the first request, if it answers at once."""
        self.look()
        if self._store is not None and not self._is_started:
            await self._store.settle(_FIRST_WAIT_S)
        self._is_started = True

    async def finish(self) -> None:
        """Sends what the last background work has written. Waits a few seconds; the next session sends the rest."""
        self.look()
        await self._tasks.drain(_LAST_WAIT_S)

    def _is_on(self) -> bool:
        header = self._parts.log.view.header
        return bool(header.flags.get(_FLAG)) if header else self._parts.flags.snapshot().on(_FLAG)
