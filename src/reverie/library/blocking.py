"""The event loop for callers without one: in one daemon thread, for all blocking classes and clients of a process.

Background work goes on there between two calls. It runs any coroutine.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, TypeVar

from reverie.errors import ReverieError, UserError

T = TypeVar("T")

_EXIT_S: Final = 10.0
"""How long the end of the process waits for objects that were left open."""


class BlockingLoop:
    """One event loop in one daemon thread, for this process."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.loop.set_default_executor(ThreadPoolExecutor(thread_name_prefix="reverie-sync"))
        self.thread = threading.Thread(target=self.loop.run_forever, name="reverie-sync", daemon=True)
        self.thread.start()
        self.open: weakref.WeakSet[Any] = weakref.WeakSet()
        """What is closed when the process ends."""
        # As `atexit.register`, but before thread pools end: until then, the work can go on.
        getattr(threading, "_register_atexit", atexit.register)(self.end)

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Starts a coroutine, and does not wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def wait(self, work: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Runs a coroutine to its end. Its exception keeps its traceback."""
        if threading.current_thread() is self.thread:
            work.close()
            raise UserError("A blocking call inside `ask` would wait for itself; use the async object there.")
        future = self.start(work)
        try:
            return future.result(timeout)
        except BaseException:
            future.cancel()  # Ctrl-C, for example: nobody waits for it any more
            raise

    def end(self) -> None:
        """Closes what is still open when the process ends, and waits for the work of what nobody holds any more."""
        if self.process != os.getpid() or not self.thread.is_alive():
            return
        for one in list(self.open):
            with suppress(ReverieError, TimeoutError, RuntimeError):
                self.wait(getattr(one, "async_object", one).close(), _EXIT_S)
        with suppress(TimeoutError):
            self.wait(_settle(), _EXIT_S)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(_EXIT_S)


async def _settle() -> None:
    running = asyncio.all_tasks() - {asyncio.current_task()}
    if running:
        await asyncio.wait(running)


_running: BlockingLoop | None = None
_starting = threading.Lock()


def blocking_loop() -> BlockingLoop:
    """The loop of this process."""
    global _running
    with _starting:
        if _running is None or _running.process != os.getpid():  # threads do not live on in a fork
            _running = BlockingLoop()
        return _running
