"""Where a session's events go: to the running turn, else to a listener; else they wait for one of these.

Nothing that happens while a session opens, or between two turns, is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from reverie.events import Event, Notice, TaskChanged


class Outlet:
    """The events of one session. `emit` never blocks and never fails."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Event] | None = None
        self._listener: Callable[[Event], None] | None = None
        self._waiting: list[Event] = []

    def emit(self, event: Event) -> None:
        if self._queue is not None:
            self._queue.put_nowait(event)
        elif self._listener is not None:
            self._listener(event)
        else:
            self._waiting.append(event)

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Hands over the waiting events, and from now on all events between turns."""
        self._listener = listener
        for event in self._take():
            listener(event)

    def open_turn(self) -> asyncio.Queue[Event]:
        """Returns the queue of a new turn, with the waiting events first."""
        self._queue = asyncio.Queue()
        for event in self._take():
            self._queue.put_nowait(event)
        return self._queue

    def close_turn(self) -> None:
        """Drops the unread events of the turn, except for those that are not about the turn."""
        queue, self._queue = self._queue, None
        while queue is not None and not queue.empty():
            event = queue.get_nowait()
            if isinstance(event, Notice | TaskChanged):
                self.emit(event)

    def _take(self) -> list[Event]:
        waiting, self._waiting = self._waiting, []
        return waiting
