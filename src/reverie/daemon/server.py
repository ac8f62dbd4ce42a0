"""The service behind the hooks: one per home, started by the first hook, ending when nothing happens any more.

It answers events over a Unix socket (`runtime/live.py`) and hands background work to `jobs.py`. An event that fails or
takes too long gets an empty answer. It never asks a model.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import signal
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from reverie import __version__
from reverie.daemon.hook import OTHER_SECONDS, SECONDS
from reverie.daemon.jobs import Jobs
from reverie.daemon.skipped import drop_taken, find_skipped, forget_attempt, take_skipped
from reverie.errors import SessionBusy
from reverie.paths import daemon_lock
from reverie.runtime.background_log import BackgroundLog
from reverie.runtime.live import LiveServer
from reverie.runtime.live_client import is_own_socket
from reverie.storage.atomic import make_private_dir
from reverie.storage.lease import Lease
from reverie.types import Json, JsonObject

T = TypeVar("T")

LARGEST_EVENT = 16 * 1_048_576
"""The most bytes of one event. The agents cut what their tools return far below it; a larger one is not answered."""
MOST_CLIENTS = 64
IDLE_MINUTES = 15.0
TICK_SECONDS = 1.0

_REQUEST_SECONDS = 10.0
_HUNG_SECONDS = 60.0
_TAKE_OVER_SECONDS = 5.0
_CLOSE_SECONDS = 15.0
_MOST_FAULTS = 200
_ASKED, _IDLE, _REPLACED = "asked to stop", "idle", "another version is installed"
_GOOD_REASONS = (_ASKED, _IDLE, _REPLACED, signal.SIGTERM.name, signal.SIGINT.name)
_PACKAGE = Path(__file__).resolve().parents[1]
_WATCHED = (_PACKAGE / "__init__.py", Path(__file__).resolve(), _PACKAGE / "daemon" / "hook.py")


class Events(Protocol):
    """What answers the events of the agents; `handle` returns what is added to `{"ok": true}`."""

    async def handle(
        self, agent: str, event: str, payload: JsonObject, environment: Mapping[str, str]
    ) -> JsonObject: ...
    async def close(self) -> None: ...
    def status(self) -> JsonObject: ...


class Service:
    """One service. `serve` returns when it is idle, told to stop, replaced by another version, or signalled."""

    def __init__(
        self,
        home: Path,
        socket: Path,
        log: BackgroundLog,
        jobs: Jobs,
        make_events: Callable[[Jobs], Events],
        *,
        idle_s: float = IDLE_MINUTES * 60,
    ) -> None:
        self._home = home
        self._socket = socket
        self._log = log
        self._jobs = jobs
        self._make_events = make_events
        self._idle_s = idle_s
        self._events: Events | None = None
        self._stop = asyncio.Event()
        self._why = ""
        self._started = time.time()
        self._last = time.monotonic()
        self._count = 0
        self._late_since: float | None = None
        self._faults: dict[tuple[str, ...], int] = {}

    async def serve(self) -> bool:
        """Serves until there is a reason to end; returns False at once if another process serves this home."""
        lease = await self._take()
        if lease is None:
            return False
        with lease:
            faulthandler.dump_traceback_later(_HUNG_SECONDS, exit=True, file=2)
            code = _state_of_code()
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self._end, number.name)
            working: asyncio.Task[None] | None = None
            try:
                self._events = self._make_events(self._jobs)
                for request in take_skipped(self._home, self._log):
                    await self._hook(request)
                drop_taken(self._home)
                verbs = {"hook": self._hook, "status": self._status, "stop": self._asked_to_stop}
                async with LiveServer(
                    self._socket,
                    verbs,
                    request_wait_s=_REQUEST_SECONDS,
                    most_clients=MOST_CLIENTS,
                    largest_request=LARGEST_EVENT,
                ):
                    lease.update({"socket": str(self._socket), "version": __version__})
                    self._log.write("hook_service", event="started", pid=os.getpid(), version=__version__)
                    working = asyncio.create_task(self._jobs.run())
                    await self._watch(code, working)
            finally:
                faulthandler.dump_traceback_later(_CLOSE_SECONDS, exit=True, file=2)
                await self._close(working)
            if self._is_meant:
                forget_attempt(self._home)
            self._log.write("hook_service", event="ended", pid=os.getpid(), reason=self._why, events=self._count)
        return True

    async def _take(self) -> Lease | None:
        """Takes the lock of the home, or waits a moment for a service that is ending. None: another one serves."""
        path = daemon_lock(self._home)
        make_private_dir(path.parent)
        until = time.monotonic() + _TAKE_OVER_SECONDS
        while True:
            try:
                return Lease.take(path, info={})
            except SessionBusy:
                if is_own_socket(self._socket) or time.monotonic() > until:
                    return None
            await asyncio.sleep(0.05)

    async def _watch(self, code: object, working: asyncio.Task[None]) -> None:
        """Waits for a reason to end."""
        while not self._stop.is_set():
            # If this loop hangs, the process ends, and the next hook starts another.
            faulthandler.dump_traceback_later(_HUNG_SECONDS, exit=True, file=2)
            if time.monotonic() - self._last > self._idle_s and not self._jobs.is_busy:
                self._end(_IDLE)
            elif _state_of_code() != code:
                self._end(_REPLACED)
            elif not is_own_socket(self._socket):
                self._end("the socket is gone")
            elif self._late_since is not None and time.monotonic() - self._late_since > _HUNG_SECONDS:
                self._end("the handlers hang")
            elif working.done():
                self._fault("jobs", working.exception())
                self._end("the queue failed")
            with suppress(TimeoutError):
                async with asyncio.timeout(min(TICK_SECONDS, max(0.05, self._idle_s / 4))):
                    await self._stop.wait()

    async def _close(self, working: asyncio.Task[None] | None) -> None:
        if working is not None:
            working.cancel()
            await asyncio.wait({working})
        if self._events is not None:
            await self._attempt("close", self._events.close(), _CLOSE_SECONDS / 2)

    def _end(self, why: str) -> None:
        self._why = self._why or why
        self._stop.set()

    @property
    def _is_meant(self) -> bool:
        """Whether it ends for a good reason: then the next hook may start another one at once."""
        return self._why in _GOOD_REASONS

    async def _asked_to_stop(self, _: JsonObject) -> JsonObject:
        asyncio.get_running_loop().call_later(0.05, self._end, _ASKED)  # after the answer
        return {"pid": os.getpid()}

    async def _status(self, _: JsonObject) -> JsonObject:
        return {
            "pid": os.getpid(),
            "version": __version__,
            "home": str(self._home),
            "socket": str(self._socket),
            "started": self._started,
            "idle_seconds": round(time.monotonic() - self._last, 1),
            "idle_limit_seconds": self._idle_s,
            "events": self._count,
            "faults": sum(self._faults.values()),
            "skipped": find_skipped(self._home, self._log)._asdict(),
            "jobs": self._jobs.status(),
            "hooks": self._events.status() if self._events is not None else {},
        }

    async def _hook(self, request: JsonObject) -> JsonObject:
        """Answers one event. A failed or late handler is logged, and the agent goes on without an answer."""
        self._last = time.monotonic()
        self._count += 1
        agent, event, payload = request.get("agent"), request.get("event"), request.get("payload")
        if not isinstance(agent, str) or not isinstance(event, str) or not isinstance(payload, dict):
            return {}
        given: Any = request.get("environment")
        variables = cast("dict[str, Json]", given) if isinstance(given, dict) else {}
        environment = {name: value for name, value in variables.items() if isinstance(value, str)}
        assert self._events is not None
        handling = self._events.handle(agent, event, cast(JsonObject, payload), environment)
        return await self._attempt(f"{agent} {event}", handling, SECONDS.get(event, OTHER_SECONDS)) or {}

    async def _attempt(self, what: str, work: Coroutine[Any, Any, T], seconds: float) -> T | None:
        """Returns the result of a handler, or None if it failed, or took longer and was cancelled."""
        running = asyncio.create_task(work)
        await asyncio.wait({running}, timeout=seconds)
        if not running.done():
            running.cancel()
            self._late_since = self._late_since or time.monotonic()
            self._fault(what, TimeoutError(f"not done after {seconds:g} s"))
            return None
        self._late_since = None
        error = None if running.cancelled() else running.exception()
        if error is not None:
            self._fault(what, error)
        return None if error is not None or running.cancelled() else running.result()

    def _fault(self, where: str, error: BaseException | None) -> None:
        """Counts an error, and logs the first of each kind."""
        trace = error.__traceback__ if error is not None else None
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        line = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace is not None else ""
        kind = (where[:80], type(error).__name__, line)
        if kind in self._faults or len(self._faults) < _MOST_FAULTS:
            self._faults[kind] = self._faults.get(kind, 0) + 1
            if self._faults[kind] == 1:
                self._log.write("hook_fault", event=kind[0], error=f"{kind[1]}: {error}", at=line)


def _state_of_code() -> object:
    """What changes when another version is installed over this one."""
    found: list[object] = []
    for path in _WATCHED:
        try:
            state = path.stat()
            found.append((state.st_ino, state.st_size, state.st_mtime_ns))
        except OSError:
            found.append(None)
    return found
