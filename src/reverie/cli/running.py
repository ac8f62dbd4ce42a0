"""One event loop a command, and what Ctrl-C and SIGTERM mean while it runs.

The first signal stops what is under way (a turn) and lets the command end in its own way; where nothing is under way
it ends the command. Either way the session is closed, which waits for background work, and the exit code says what
happened. Whoever closes already is not hurried by being asked to end (SIGTERM); Ctrl-C, or a second signal, ends it.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable

CANCELLED = 130
_ENDING = {signal.SIGTERM: 143, signal.SIGHUP: 129}


class Signals:
    """What to do when a signal comes. `cancel` stops what is under way and says whether there was anything."""

    def __init__(self) -> None:
        self.cancel: Callable[[], bool] = lambda: False
        self.closing: Callable[[], bool] = lambda: False
        """Whether the command waits for background work as its last act."""
        self.ended_by: int | None = None
        """The exit code of the signal that wants this process to end."""
        self._main: asyncio.Task[int] | None = None

    def watch(self) -> None:
        """Takes the signals. To be called again whenever somebody else (a prompt) has had Ctrl-C."""
        self._main = self._main or asyncio.current_task()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupted)
        for number in _ENDING:
            loop.add_signal_handler(number, self._asked_to_end, number)

    def _interrupted(self) -> None:
        if not self.cancel() and self._main is not None:
            self._main.cancel()

    def _asked_to_end(self, number: signal.Signals) -> None:
        is_first, self.ended_by = self.ended_by is None, _ENDING[number]
        if not (is_first and self.closing()):
            self._interrupted()


def run_async(main: Callable[[Signals], Awaitable[int]]) -> int:
    """Runs a command's coroutine and returns its exit code."""
    signals = Signals()

    async def watched() -> int:
        signals.watch()
        try:
            code = await main(signals)
        except asyncio.CancelledError:
            code = CANCELLED
        return code if signals.ended_by is None else signals.ended_by

    return asyncio.run(watched())
