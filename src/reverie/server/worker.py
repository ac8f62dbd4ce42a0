"""The worker: takes jobs from the queue (procrastinate) and dreams. Any number of workers can run, and be killed. If
the database goes away, it waits and starts again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from traceback import format_tb
from typing import TYPE_CHECKING, Any, Final

from reverie.layers.l6_dreaming.copy import sweep as sweep_folders
from reverie.quick import dataclass
from reverie.server.database import Database, NoDatabase
from reverie.server.dreams import leases
from reverie.server.dreams.running import run_dream
from reverie.server.job_schema import JOBS
from reverie.storage.atomic import make_private_dir

if TYPE_CHECKING:
    from procrastinate import App

_DREAMS: Final = "dreams"
_UPKEEP: Final = "upkeep"
_RECONNECT_S: Final = 1.0
_STOP_S: Final = 5.0
_log = logging.getLogger("reverie.worker")


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How a worker works. `lease_s`: how long a dream waits for a worker that does not answer."""

    dsn: str
    folders: Path
    jobs: int = 1
    lease_s: float = 60.0
    sweep_s: int = 30


def run_worker(options: WorkerOptions, ready: Callable[[], None]) -> None:
    """Works until it is interrupted; a running dream is given back then. `ready` is called when it is connected."""
    make_private_dir(options.folders)
    sweep_folders(options.folders)
    logging.basicConfig(format="%(asctime)s %(message)s")  # ids and codes, never contents
    _log.setLevel(logging.INFO)
    for noisy in ("procrastinate", "psycopg.pool"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    asyncio.run(_run(options, ready))


async def _run(options: WorkerOptions, ready: Callable[[], None]) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    connected = asyncio.Event()
    while not stopping.is_set():
        working = asyncio.create_task(_work(options, connected, ready))
        waiting = asyncio.create_task(stopping.wait())
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if not working.done():
            working.cancel()
        try:
            await working
        except asyncio.CancelledError:
            pass
        except Exception as error:
            if not connected.is_set() or not _is_database(error):
                raise
            _log.warning("the database does not answer (%s); the worker tries again", type(error).__name__)
        if not stopping.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), _RECONNECT_S)


def _is_database(error: Exception) -> bool:
    from procrastinate.exceptions import ConnectorException

    return isinstance(error, NoDatabase | ConnectorException)


async def _work(options: WorkerOptions, connected: asyncio.Event, ready: Callable[[], None]) -> None:
    """Two workers of the queue: the second one is for upkeep, which never waits for a dream. Raises if one ends."""
    size = options.jobs * 2 + 2
    async with Database.open(options.dsn, size=size, migrates=not connected.is_set()) as database:
        app = make_app(database, options)
        async with app.open_async():
            if not connected.is_set():
                connected.set()
                ready()
            working = {
                asyncio.create_task(
                    app.run_worker_async(
                        queues=[queue],
                        name=_name(),
                        concurrency=at_once,
                        fetch_job_polling_interval=min(5.0, options.lease_s),
                        update_heartbeat_interval=max(1.0, options.lease_s / 4),
                        stalled_worker_timeout=max(5.0, options.lease_s),
                        shutdown_graceful_timeout=_STOP_S,
                        install_signal_handlers=False,
                        delete_jobs="always",
                    )
                )
                for queue, at_once in ((_DREAMS, options.jobs), (_UPKEEP, 1))
            }
            try:
                ended, _ = await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in working:
                    one.cancel()
                await asyncio.gather(*working, return_exceptions=True)
            for one in ended:
                one.result()
            raise NoDatabase("The queue has stopped.")


def make_app(database: Database, options: WorkerOptions) -> App:
    """The queue with its tasks. A task never fails for the queue: the row of the dream says how it ended, and a new job
    tries again."""
    from procrastinate import App, PsycopgConnector

    connector = PsycopgConnector(
        conninfo=options.dsn,
        kwargs={"options": f"-c search_path={JOBS} -c timezone=UTC"},
        min_size=1,
        max_size=options.jobs + 5,
    )
    app = App(connector=connector, periodic_defaults={"max_delay": 60})

    async def dream(dream: str) -> None:
        await _guarded(run_dream(database, dream, _name(), options.lease_s, options.folders), dream)

    async def sweep(timestamp: int) -> None:
        del timestamp
        await _guarded(_sweep(database, options), "sweep")

    app.task(name=leases.TASK, queue=_DREAMS)(dream)
    task: Any = app.task(name=leases.SWEEP, queue=_UPKEEP, queueing_lock="sweep")(sweep)
    app.periodic(cron=f"* * * * * */{options.sweep_s}")(task)
    return app


async def _guarded(work: Any, what: str) -> None:
    try:
        await work
    except NoDatabase:
        _log.warning("%s: the database does not answer; it is tried again", what)
    except Exception as error:  # noqa: BLE001  the edge of a job: the row of the dream says how it goes on
        where = "".join(format_tb(error.__traceback__))  # never the message of the error, which may quote a memory
        _log.error("%s: %s\n%s", what, type(error).__name__, where)


async def _sweep(database: Database, options: WorkerOptions) -> None:
    lost = await leases.sweep(database, options.lease_s)
    added = await leases.add_automatic(database)
    if lost or added:
        _log.info("sweep: %d dreams queued again, %d automatic dreams", lost, added)


def _name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"
