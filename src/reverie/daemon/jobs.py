"""The queue of background work: one waiting job per session, one worker process at a time, at low priority.

A job is a small file until it has run, so the next service takes up what a killed one left. A lock that the worker
itself holds makes sure that no two run at once, and a worker ends when its service dies (`leash.py`).
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, field, fields
from pathlib import Path
from subprocess import Popen
from tempfile import TemporaryFile
from typing import IO, Any, cast

from reverie.daemon.hook_call import environment_for
from reverie.daemon.leash import GRACE_SECONDS
from reverie.errors import StorageError, UserError
from reverie.parsing import load_json
from reverie.quick import dataclass
from reverie.regular_files import read_regular
from reverie.runtime.background_log import BackgroundLog
from reverie.runtime.process_family import end_marked
from reverie.storage.atomic import make_private_dir, remove, storage_error, write_atomic
from reverie.storage.locks import try_lock
from reverie.types import Json, JsonObject

WORKER = "reverie.daemon.work"
LIMIT_SECONDS = 900.0
"""The most seconds of one job. At the limit, its whole process group is killed."""
SETTLE_SECONDS = 0.5
"""The pause before a job: the agent is still writing the end of its transcript."""
MOST_WAITING = 500
OLDEST_SECONDS = 7 * 86_400.0

_LARGEST_FILE = 65_536
_LARGEST_OUTPUT = 262_144
_PAUSE_SECONDS = 0.2
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Job:
    """Work on one session: `transcript` is the file that the agent writes, `ended` whether the session is over.

    `variables` say where the agent keeps its files."""

    agent: str
    session: str
    transcript: str
    cwd: str
    ended: bool
    variables: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def key(self) -> str:
        return hashlib.sha256(f"{self.agent}/{self.session}".encode("utf-8", "replace")).hexdigest()[:32]


class Jobs:
    """The queue of one service. `ask` may be called from any thread; `run` is the task that works; then `close`."""

    def __init__(self, home: Path, log: BackgroundLog, *, worker: str = WORKER, limit_s: float = LIMIT_SECONDS) -> None:
        self._home = home
        self._folder = home / "run" / "jobs"
        self._lock_file = home / "run" / "worker.lock"
        self._log = log
        self._worker = worker
        self._limit_s = limit_s
        self._guard = threading.Lock()
        self._waiting: dict[str, Job] = {}
        self._running: Job | None = None
        self._done = 0
        self._failed = 0
        self._last: JsonObject = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()

    def ask(self, job: Job) -> None:
        """Queues a job and returns at once. A waiting job of the same session is replaced."""
        with self._guard:
            self._waiting.pop(job.key, None)
            self._waiting[job.key] = job
            dropped = [next(iter(self._waiting))] if len(self._waiting) > MOST_WAITING else []
            for key in dropped:
                self._forget(key, "too many jobs wait")
            try:
                make_private_dir(self._folder)
                write_atomic(self._file(job.key), json.dumps(asdict(job)).encode(), fsync=False)
            except StorageError as error:
                self._log_of(job).write("hook_job", error=f"A job is kept only in memory: {error}")
        if self._loop is not None:
            with suppress(RuntimeError):  # the service is ending: the file stays for the next one
                self._loop.call_soon_threadsafe(self._news.set)

    @property
    def is_busy(self) -> bool:
        return bool(self._waiting) or self._running is not None

    def status(self) -> JsonObject:
        running = self._running
        return {
            "waiting": len(self._waiting),
            "running": None if running is None else {"agent": running.agent, "session": running.session},
            "done": self._done,
            "failed": self._failed,
            "last": self._last,
        }

    async def run(self) -> None:
        """Takes up what an earlier service left, then works until it is cancelled, which ends the worker too."""
        self._loop = asyncio.get_running_loop()
        self._load()
        while True:
            await asyncio.sleep(SETTLE_SECONDS if self._waiting else 0)
            with self._guard:
                job = next(iter(self._waiting.values()), None)
                self._news.clear()
            if job is None:
                await self._news.wait()
                continue
            lock = await self._lock()
            try:
                with self._guard:
                    job = self._waiting.pop(job.key, job)  # a newer one may have come
                    self._running = job
                was_begun = await self._work(job, lock)
            finally:
                os.close(lock)
                self._running = None
            with self._guard:
                if was_begun and job.key not in self._waiting:  # else the next service tries again
                    remove(self._file(job.key))

    def _file(self, key: str) -> Path:
        return self._folder / f"{key}.json"

    def _forget(self, key: str, why: str) -> None:
        job = self._waiting.pop(key, None)
        remove(self._file(key))
        self._log_of(job).write("hook_job", error=f"A job was dropped: {why}.")

    def _log_of(self, job: Job | None) -> BackgroundLog:
        return BackgroundLog(self._log.path, job.session if job is not None else None)

    def _load(self) -> None:
        try:
            for torn in self._folder.glob(".*.tmp"):  # its writer was killed
                remove(torn)
            found = sorted((path.stat().st_mtime, path) for path in self._folder.glob("*.json"))
        except OSError:
            return
        for changed, path in found[-MOST_WAITING:]:
            job = _read(path)
            if job is None or path.stem != job.key:
                remove(path)
            elif time.time() - changed > OLDEST_SECONDS:
                self._forget(job.key, "it is older than a week")
            else:
                with self._guard:
                    self._waiting.setdefault(job.key, job)
        for _, path in found[:-MOST_WAITING]:
            remove(path)

    async def _lock(self) -> int:
        """Returns a locked descriptor. The worker inherits it, so that the lock lives as long as the worker."""
        while True:
            try:
                make_private_dir(self._lock_file.parent)
                fd = os.open(self._lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            except OSError as error:
                raise storage_error(error, self._lock_file, "open the lock") from error
            try:
                if try_lock(fd, self._lock_file, fcntl.LOCK_EX, "set REVERIE_HOME to a folder on a local disk"):
                    return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)
            await asyncio.sleep(_PAUSE_SECONDS)  # the worker of a killed service is ending

    async def _work(self, job: Job, lock: int) -> bool:
        """Runs one worker to its end; False if it cannot start.

        Its streams are files: a process that it leaves behind could hold a pipe open.
        """
        started = time.monotonic()
        reading, writing = os.pipe()
        try:
            here = self._lock_file.parent  # not TMPDIR: that may be of a session that is over
            with (
                TemporaryFile(dir=here) as given,
                TemporaryFile(dir=here) as said,
                TemporaryFile(dir=here) as complained,
            ):
                given.write(json.dumps(asdict(job)).encode())
                given.seek(0)
                try:
                    process = self._start(job, (given, said, complained), reading, lock)
                finally:
                    os.close(reading)
                try:
                    is_late = not await _has_ended(process, self._limit_s)
                finally:
                    os.close(writing)
                    writing = -1
                    await _end(process)
                    end_marked(_mark())  # it may have been killed, and programs that it ran have their own groups
                error = self._error(is_late, process.returncode or 0, _tail(complained))
                self._report(job, error, _tail(said), time.monotonic() - started)
                return True
        except OSError as error:
            self._report(job, f"The worker did not start: {error.strerror or error}.", b"", 0.0)
            return False
        finally:
            if writing >= 0:
                os.close(writing)

    def _start(
        self, job: Job, streams: tuple[IO[bytes], IO[bytes], IO[bytes]], reading: int, lock: int
    ) -> Popen[bytes]:
        limit = str(self._limit_s + 10 * GRACE_SECONDS)  # if the service cannot end it any more
        given, said, complained = streams
        return Popen(
            [
                sys.executable,
                "-E",
                "-P",
                "-m",
                "reverie.daemon.leash",
                str(reading),
                limit,
                _mark(),
                self._worker,
                str(self._home),
            ],
            stdin=given,
            stdout=said,
            stderr=complained,
            pass_fds=(reading, lock),
            start_new_session=True,
            cwd="/",
            env=_environment(self._home, job),
        )

    def _error(self, is_late: bool, code: int, complained: bytes) -> str:
        if is_late:
            return f"The job took longer than {self._limit_s:g} s and was ended."
        lines = complained.decode("utf-8", "replace").strip().splitlines() if code else []
        return lines[-1] if lines else f"The worker ended with exit code {code}." if code else ""

    def _report(self, job: Job, error: str, said: bytes, seconds: float) -> None:
        who: dict[str, Json] = {"agent": job.agent, "seconds": round(seconds, 2)}
        if error:
            self._failed += 1
            self._log_of(job).write("hook_job", **who, error=error)
        else:
            self._done += 1
            self._log_of(job).write("hook_job", **who, **_figures(said, who))
        self._last = {**who, "session": job.session, "error": error, "time": time.time()}


def read_job(raw: bytes) -> Job:
    """Reads a job. Raises `UserError` for anything else."""
    try:
        given: Any = load_json(raw)
        known = {one.name: cast(JsonObject, given)[one.name] for one in fields(Job)}
    except (ValueError, KeyError, TypeError):
        raise UserError("the job is not a JSON object with all its fields") from None
    ended, variables = known.pop("ended"), known.pop("variables")
    texts = [*known.values(), *cast(JsonObject, variables).values()] if isinstance(variables, dict) else [None]
    if not isinstance(ended, bool) or not all(isinstance(value, str) for value in texts):
        raise UserError("a field of the job has a wrong type")
    return Job(**cast("dict[str, str]", known), ended=ended, variables=cast("dict[str, str]", variables))


def _read(path: Path) -> Job | None:
    try:
        return read_job(read_regular(path, _LARGEST_FILE))
    except (OSError, UserError):
        return None


def _figures(said: bytes, taken: JsonObject) -> dict[str, Json]:
    """The figures of the report for the log: numbers, switches and short texts."""
    try:
        report: Any = load_json(said)
    except ValueError:
        return {}
    given = cast(JsonObject, report) if isinstance(report, dict) else {}
    return {key: value for key, value in given.items() if isinstance(value, str | int | float) and key not in taken}


def _environment(home: Path, job: Job) -> dict[str, str]:
    """The environment of a worker, without settings of whoever started the service.

    Not REVERIE_INSIDE: the model of a worker may be a program, and only that program runs inside.
    """
    kept = {name: value for name, value in environment_for(job.variables).items() if not name.startswith("REVERIE_")}
    name, _, value = _mark().decode().partition("=")
    return {**kept, "REVERIE_HOME": str(home), name: value}


def _mark() -> bytes:
    """The variable by which the processes of our worker are known; only one runs at a time."""
    return f"WORKS_FOR_REVERIE_SERVICE={os.getpid()}".encode()


def _tail(file: IO[bytes]) -> bytes:
    file.seek(max(0, file.seek(0, os.SEEK_END) - _LARGEST_OUTPUT))
    return file.read(_LARGEST_OUTPUT)


async def _end(process: Popen[bytes]) -> None:
    """Ends a worker and its whole group: first with Ctrl-C, so that it can end its own children, then for good."""
    try:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            await _has_ended(process, GRACE_SECONDS)
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    await _has_ended(process, GRACE_SECONDS)


async def _has_ended(process: Popen[bytes], seconds: float) -> bool:
    """Waits for the end of a process; False if it takes longer."""
    until = time.monotonic() + seconds
    while process.poll() is None:
        if time.monotonic() > until:
            return False
        await asyncio.sleep(_POLL_SECONDS)
    return True
