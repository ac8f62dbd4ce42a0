"""Where a session's events go: to the turn that is running, else to a listener, else they wait for the first of these.

So nothing that happens while a session opens, or between two turns, is lost or printed behind a caller's back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from reverie.events import Event, Notice, TaskChanged


class Outlet:
    """One a session. `emit` never blocks and never fails."""

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
        """Hands over what waits, and from now on what happens between turns."""
        self._listener = listener
        for event in self._take():
            listener(event)

    def open_turn(self) -> asyncio.Queue[Event]:
        """The queue of a new turn; what waits comes first."""
        self._queue = asyncio.Queue()
        for event in self._take():
            self._queue.put_nowait(event)
        return self._queue

    def close_turn(self) -> None:
        """What the turn's reader left unread is gone with the turn, but for what is not about the turn."""
        queue, self._queue = self._queue, None
        while queue is not None and not queue.empty():
            event = queue.get_nowait()
            if isinstance(event, Notice | TaskChanged):
                self.emit(event)

    def _take(self) -> list[Event]:
        waiting, self._waiting = self._waiting, []
        return waiting
