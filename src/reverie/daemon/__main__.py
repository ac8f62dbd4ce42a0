"""Runs the service: `python -m reverie.daemon HOME SOCKET`. Hooks start it so (`hook.py`).

Its errors go to the background log, because nobody reads its output.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import os
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from reverie.errors import ReverieError, UserError
from reverie.runtime.background_log import BackgroundLog
from reverie.settings.loading import is_inside


def run(home: Path, socket: Path) -> bool:
    """Serves until there is a reason to end. False: another process serves this home. Raises ReverieError.

    It does not start inside of a program that a model has started: its work could start that model again.
    """
    from reverie.daemon.events import HookEvents
    from reverie.daemon.jobs import Jobs
    from reverie.daemon.server import Service

    log = background_log(home)
    _raise_limits()
    if is_inside():
        raise UserError("The service does not start inside of a program that a model has started.")
    idle_s = _idle_minutes(home) * 60

    async def serve() -> bool:
        jobs = Jobs(home, log)
        service = Service(home, socket, log, jobs, lambda jobs: HookEvents(home, jobs), idle_s=idle_s)
        gc.freeze()  # what is loaded now stays
        return await service.serve()

    try:
        return asyncio.run(serve())
    finally:
        faulthandler.cancel_dump_traceback_later()


def background_log(home: Path) -> BackgroundLog:
    return BackgroundLog(home / "logs" / "background.jsonl")


def main() -> None:
    home, socket = Path(sys.argv[1]), Path(sys.argv[2])
    log = background_log(home)

    def report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        at = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace is not None else ""
        log.write("hook_service", event="failed", error=f"{kind.__name__}: {error}", at=at)

    sys.excepthook = report
    code = 0
    try:
        run(home, socket)
    except ReverieError as error:
        log.write("hook_service", event="failed", error=str(error))
        code = error.exit_code
    os._exit(code)  # a handler may still compute in its thread


def _idle_minutes(home: Path) -> float:
    """The setting of the user. A mistake in a file must not end all hooks: then it is the default."""
    from reverie.settings import load_settings
    from reverie.settings.background_sections import ConnectSettings

    try:
        return load_settings(Path("/"), env={"HOME": str(Path.home())}, home=home).connect.idle_minutes
    except ReverieError:
        return ConnectSettings().idle_minutes


def _raise_limits() -> None:
    """Undoes what the process that ran the hook may have set: blocked or ignored signals, few open files."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with suppress(OSError, ValueError):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 4_096 if hard == resource.RLIM_INFINITY else min(4_096, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))


if __name__ == "__main__":
    main()
