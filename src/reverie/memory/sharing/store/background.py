"""Syncs that nobody waits for, or not for long: at the first access, now and then, and some seconds after a change. A
failure is one line in the status and the background log; work goes on, and each failure doubles the pause."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Final

from reverie.errors import ReverieError
from reverie.memory.opening import OpenedMemory
from reverie.memory.sharing.rounds import SyncReport
from reverie.memory.sharing.store.status import load_status
from reverie.memory.sharing.store.sync import store_folder, sync_store
from reverie.runtime.background_log import BackgroundLog
from reverie.storage.locks import LockTimeout

FIRST_WAIT_S: Final = 1.0
"""How long the first access waits for what is new."""
_QUIET_S: Final = 2.0
"""A change is sent when no other one followed for this time."""
_END_S: Final = 5.0


def is_due(memory: OpenedMemory) -> bool:
    """Whether it is time to look for changes of others; not while the server is down."""
    status = load_status(store_folder(memory))
    return not status.is_paused() and status.is_older_than(memory.settings.team.sync_minutes * 60)


def is_paused(memory: OpenedMemory) -> bool:
    """Whether the last sync failed just now."""
    return load_status(store_folder(memory)).is_paused()


def sync_quietly(memory: OpenedMemory, within_s: float | None = None) -> SyncReport:
    """A sync that never fails: the status and the background log have the reason. It does nothing while the server is
    known to be down."""
    if is_paused(memory):
        return SyncReport()
    try:
        return sync_store(memory, within_s=within_s)
    except LockTimeout:
        return SyncReport()  # another process syncs right now
    except ReverieError as error:
        if load_status(store_folder(memory)).failures <= 1:
            BackgroundLog(memory.places.background_log).write("store_sync_failed", error=str(error))
        return SyncReport()


class StoreKeeper:
    """Keeps the memory of a program in step, beside its work. `pull` before an access, `push` after a change, `close`
    at the end. It is used by one thread; the syncs run in another."""

    def __init__(self, memory: OpenedMemory) -> None:
        self._memory = memory
        self._running: threading.Thread | None = None
        self._timer: threading.Timer | None = None
        self._is_changed = False
        self._is_first = True

    def pull(self) -> None:
        """Starts a sync if it is time. The first one is waited for, a moment."""
        if self._is_first or is_due(self._memory):
            running = self._start()
            if self._is_first and running is not None:
                running.join(FIRST_WAIT_S)
        self._is_first = False

    def push(self) -> None:
        """Sends what changed, soon."""
        self._is_changed = True
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(_QUIET_S, self._start)
        self._timer.daemon = True
        self._timer.start()

    def close(self) -> None:
        """Sends what is left, and waits for it a few seconds; the next process sends the rest."""
        if self._timer is not None:
            self._timer.cancel()
        if self._running is not None:
            self._running.join(_END_S)
        if self._is_changed:
            with suppress(RuntimeError):  # the program is ending
                running = self._start()
                if running is not None:
                    running.join(_END_S)

    def _start(self) -> threading.Thread | None:
        if self._running is not None and self._running.is_alive():
            return self._running
        self._is_changed = False
        self._running = threading.Thread(target=sync_quietly, args=(self._memory,), name="reverie-store", daemon=True)
        self._running.start()
        return self._running
