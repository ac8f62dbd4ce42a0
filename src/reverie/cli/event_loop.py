"""One event loop per command, and what Ctrl-C and SIGTERM do while it runs.

The first signal cancels the running turn, or ends the command if no turn runs. In both cases the session is closed,
which waits for background work. SIGTERM does not interrupt that wait; Ctrl-C or a second signal does.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable

CANCELLED = 130
_ENDING = {signal.SIGTERM: 143, signal.SIGHUP: 129}


class CommandSignals:
    """What a signal does. `cancel` stops the running work and returns whether there was any."""

    def __init__(self) -> None:
        self.cancel: Callable[[], bool] = lambda: False
        self.closing: Callable[[], bool] = lambda: False
        """Whether the command is closing and waits for background work."""
        self.ended_by: int | None = None
        """The exit code of the signal that ends this process."""
        self._main: asyncio.Task[int] | None = None

    def watch(self) -> None:
        """Installs the handlers. Call it again after a prompt has handled Ctrl-C itself."""
        self._main = self._main or asyncio.current_task()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        for number in _ENDING:
            loop.add_signal_handler(number, self._end, number)

    def _interrupt(self) -> None:
        if not self.cancel() and self._main is not None:
            self._main.cancel()

    def _end(self, number: signal.Signals) -> None:
        is_first, self.ended_by = self.ended_by is None, _ENDING[number]
        if not (is_first and self.closing()):
            self._interrupt()


def run_async(main: Callable[[CommandSignals], Awaitable[int]]) -> int:
    """Runs a command's coroutine and returns its exit code."""
    signals = CommandSignals()

    async def run_watched() -> int:
        signals.watch()
        try:
            code = await main(signals)
        except asyncio.CancelledError:
            code = CANCELLED
        return code if signals.ended_by is None else signals.ended_by

    return asyncio.run(run_watched())
