"""Background tasks: start, list, watch, kill, and wait for them at exit.

Errors of a task are logged and never reach the conversation. Tasks with the same `serial` key never overlap.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import traceback
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

from reverie.errors import ReverieError, UserError
from reverie.quick import dataclass
from reverie.runtime.background_log import BackgroundLog
from reverie.types import JsonObject, Purpose

PROGRESS_LINES = 30
KILL_GRACE_S = 5.0
_FINISHED_KEPT = 50
_LINE_CHARACTERS = 300
_FRAMES = 5

T = TypeVar("T")


class TaskState(StrEnum):
    """STARTING also means that it waits in a serial queue."""

    STARTING = "starting"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    KILLED = "killed"

    @property
    def is_over(self) -> bool:
        return self in (TaskState.COMPLETED, TaskState.FAILED, TaskState.KILLED)


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """The current state of a task. `progress` holds its last lines, newest last; `error` says why it failed."""

    id: str
    purpose: Purpose
    title: str
    state: TaskState
    started: datetime
    ended: datetime | None = None
    progress: tuple[str, ...] = ()
    error: str | None = None

    @property
    def seconds(self) -> float:
        return ((self.ended or datetime.now(UTC)) - self.started).total_seconds()

    def to_json(self) -> JsonObject:
        """The form for the socket and `--json`, with its running time in `seconds`."""
        return {
            "id": self.id,
            "purpose": self.purpose.value,
            "title": self.title,
            "state": self.state.value,
            "started": self.started.isoformat(timespec="milliseconds"),
            "ended": None if self.ended is None else self.ended.isoformat(timespec="milliseconds"),
            "seconds": round(self.seconds, 1),
            "progress": list(self.progress),
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """The results of the tasks of one purpose in this session."""

    started: int = 0
    completed: int = 0
    failed: int = 0
    killed: int = 0
    failures_in_a_row: int = 0
    last_success: datetime | None = None


class TaskHandle:
    """What the work sees of its task."""

    def __init__(self, id: str, note: Callable[[str], None]) -> None:
        self.id = id
        self._note = note

    def progress(self, text: str) -> None:
        """Adds a line of progress; ignored after the end of the task."""
        self._note(text)


Work: TypeAlias = Callable[[TaskHandle], Coroutine[Any, Any, T]]


@dataclass(slots=True, eq=False)
class Task(Generic[T]):
    """A started task. `info` is always current; `result` is set on success; `over` is set at the end."""

    info: TaskInfo
    result: T | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def id(self) -> str:
        return self.info.id

    async def wait(self, timeout_s: float | None = None) -> TaskInfo:
        """Waits for the end, at most `timeout_s`. Raises nothing: look at the state. The task itself continues."""
        try:
            async with asyncio.timeout(timeout_s):
                await self.over.wait()
        except TimeoutError:
            pass
        return self.info


class Tasks:
    """The background tasks of one session. `on_change` is called in the event loop on every change of a task."""

    def __init__(self, log: BackgroundLog, on_change: Callable[[TaskInfo], None]) -> None:
        self._log = log
        self._on_change = on_change
        self._live: dict[str, Task[Any]] = {}
        self._running: dict[str, asyncio.Task[Any]] = {}  # with abandoned tasks, until they are over
        self._finished: deque[TaskInfo] = deque(maxlen=_FINISHED_KEPT)
        self._queues: dict[str, asyncio.Lock] = {}
        self._counts: dict[Purpose, TaskCounts] = {}

    def start(self, purpose: Purpose, title: str, work: Work[T], *, serial: str | None = None) -> Task[T]:
        """Starts `work(handle)` and returns at once. Tasks with the same `serial` never overlap."""
        info = TaskInfo(
            id=f"{purpose.value}-{secrets.token_hex(3)}",
            purpose=purpose,
            title=_line(title),
            state=TaskState.STARTING,
            started=datetime.now(UTC),
        )
        task: Task[T] = Task(info)
        self._live[info.id] = task
        counts = self.counts(purpose)
        self._counts[purpose] = replace(counts, started=counts.started + 1)
        self._log.write("task_started", task=info.id, purpose=purpose.value, title=info.title)
        self._on_change(info)
        running = asyncio.create_task(self._run(task, work, serial), name=info.id)
        self._running[info.id] = running
        # The edge of a background task. The asyncio task keeps every exception of the work until `_settle` reads,
        # counts and logs it, so nothing reaches the conversation.
        running.add_done_callback(lambda done: self._settle(task, done))
        return task

    def list(self) -> tuple[TaskInfo, ...]:
        """Returns the last finished tasks, then the running ones, each oldest first."""
        return (*self._finished, *self.running)

    @property
    def running(self) -> tuple[TaskInfo, ...]:
        """The tasks that are not over, oldest first."""
        return tuple(task.info for task in self._live.values())

    def counts(self, purpose: Purpose) -> TaskCounts:
        return self._counts.get(purpose, TaskCounts())

    def failures_in_a_row(self, purpose: Purpose) -> int:
        """Failures since the last success; killed tasks do not count."""
        return self.counts(purpose).failures_in_a_row

    async def kill(self, id: str, *, grace_s: float = KILL_GRACE_S) -> TaskInfo:
        """Cancels a task and waits until it is over. One that does not stop within `grace_s` is abandoned."""
        task = self._live.get(id)
        if task is None:
            for info in reversed(self._finished):
                if info.id == id:
                    return info
            known = ", ".join(self._live) or "none is running"
            raise UserError(f"There is no task {id!r}; running tasks: {known}.")
        self._running[id].cancel()
        await task.wait(grace_s)
        if not task.info.state.is_over:
            self._end(task, TaskState.KILLED, error=f"It did not stop within {grace_s:g} s and was abandoned.")
        return task.info

    async def settle(self, purpose: Purpose, timeout_s: float, ignore_after_s: float | None = None) -> bool:
        """Waits until no task of this purpose runs (older ones than `ignore_after_s` do not count); False if late."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_s
        most = float("inf") if ignore_after_s is None else ignore_after_s
        while waiting := [
            task for task in self._live.values() if task.info.purpose is purpose and task.info.seconds <= most
        ]:
            if loop.time() >= until:
                return False
            await waiting[0].wait(until - loop.time())
        return True

    async def drain(self, timeout_s: float) -> tuple[TaskInfo, ...]:
        """Waits for all tasks at the end of a session, and for those they start; kills and returns the rest."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_s
        while self._live and loop.time() < until:
            await next(iter(self._live.values())).wait(until - loop.time())
        return tuple(await asyncio.gather(*(self.kill(id) for id in tuple(self._live))))

    def verbs(self) -> dict[str, Callable[[JsonObject], Coroutine[Any, Any, JsonObject]]]:
        """Returns the verbs of the live socket: `tasks` lists tasks, `kill` ends the one named by `id`."""

        async def list_tasks(_: JsonObject) -> JsonObject:
            return {"tasks": [info.to_json() for info in self.list()]}

        async def kill_task(request: JsonObject) -> JsonObject:
            return {"task": (await self.kill(str(request.get("id", "")))).to_json()}

        return {"tasks": list_tasks, "kill": kill_task}

    async def _run(self, task: Task[T], work: Work[T], serial: str | None) -> T:
        if serial is None:
            return await self._work(task, work)
        async with self._queues.setdefault(serial, asyncio.Lock()):
            return await self._work(task, work)

    async def _work(self, task: Task[T], work: Work[T]) -> T:
        self._change(task, state=TaskState.RUNNING)
        return await work(TaskHandle(task.id, lambda text: self._progress(task, text)))

    def _progress(self, task: Task[Any], text: str) -> None:
        lines = (*task.info.progress, _line(text))[-PROGRESS_LINES:]
        self._change(task, progress=lines)

    def _change(self, task: Task[Any], **changed: Any) -> None:
        if not task.info.state.is_over:
            task.info = replace(task.info, **changed)
            self._on_change(task.info)

    def _settle(self, task: Task[T], done: asyncio.Task[T]) -> None:
        del self._running[task.id]
        if done.cancelled():
            self._end(task, TaskState.KILLED)
            return
        error = done.exception()
        if error is None:
            task.result = done.result()
            self._end(task, TaskState.COMPLETED)
        elif done.cancelling():  # it failed after it was asked to stop
            self._end(task, TaskState.KILLED, **_error_fields(error))
        else:
            self._end(task, TaskState.FAILED, **_error_fields(error))

    def _end(self, task: Task[Any], state: TaskState, *, error: str | None = None, where: str | None = None) -> None:
        if task.info.state.is_over:  # abandoned earlier, and over only now
            self._log.write("task_ended_late", task=task.id, state=state.value, error=error)
            return
        now = datetime.now(UTC)
        info = task.info = replace(task.info, state=state, ended=now, error=error)
        del self._live[info.id]
        self._finished.append(info)
        self._counts[info.purpose] = _count_outcome(self.counts(info.purpose), state, now)
        about: JsonObject = {"task": info.id, "purpose": info.purpose.value, "seconds": round(info.seconds, 3)}
        if error is not None:
            about |= {"error": error, "where": where, "in_a_row": self.failures_in_a_row(info.purpose)}
        self._log.write(f"task_{state.value}", **about)
        task.over.set()
        self._on_change(info)


def _count_outcome(counts: TaskCounts, state: TaskState, now: datetime) -> TaskCounts:
    match state:
        case TaskState.COMPLETED:
            return replace(counts, completed=counts.completed + 1, failures_in_a_row=0, last_success=now)
        case TaskState.FAILED:
            in_a_row = counts.failures_in_a_row + 1
            return replace(counts, failed=counts.failed + 1, failures_in_a_row=in_a_row)
        case TaskState.KILLED:
            return replace(counts, killed=counts.killed + 1)
        case TaskState.STARTING | TaskState.RUNNING:
            return counts


def _error_fields(error: BaseException) -> dict[str, str | None]:
    """Returns what may be logged of an error. Errors of other code may quote the conversation: only kind and place."""
    if isinstance(error, ReverieError):
        return {"error": str(error), "where": None}
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in reversed(frames))
    return {"error": f"Unexpected {type(error).__name__}.", "where": where}


def _line(text: str) -> str:
    flat = " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", text).split())
    return flat if len(flat) <= _LINE_CHARACTERS else flat[: _LINE_CHARACTERS - 1] + "…"
