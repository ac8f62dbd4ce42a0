"""Asks and stops the service behind the hooks, for our own commands. No event loop; quick to import.

`Lease.holder` says who serves a home and where it listens, so nothing here depends on the environment.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from reverie.daemon.skipped import forget_attempt
from reverie.errors import NobodyListening, SessionRefused, StorageError
from reverie.paths import daemon_lock, daemon_socket
from reverie.runtime.live_client import ask_live
from reverie.storage.lease import Lease
from reverie.types import JsonObject

_STOP_SECONDS = 10.0
_PAUSE_SECONDS = 0.02


def daemon_status(home: Path) -> JsonObject | None:
    """Returns what the service says about itself, with `answers`: true; None if no process serves this home.

    If it has the lock and does not answer (it starts, ends or hangs), the result has only `pid` and `answers`: false.
    """
    holder = Lease.holder(daemon_lock(home))
    if holder is None:
        return None
    try:
        answer = ask_live(Path(str(holder.get("socket") or daemon_socket(home))), {"do": "status"}, timeout_s=2.0)
    except (NobodyListening, SessionRefused):
        return {"pid": holder["pid"], "answers": False}
    del answer["ok"]
    return {**answer, "answers": True}


def stop_daemon(home: Path) -> bool:
    """Ends the service and waits until it is gone; False if none ran. Raises StorageError if it cannot be ended."""
    path = daemon_lock(home)
    forget_attempt(home)
    holder = Lease.holder(path)
    if holder is None:
        return False
    pid = int(holder["pid"])
    with suppress(NobodyListening, SessionRefused):
        ask_live(Path(str(holder.get("socket") or daemon_socket(home))), {"do": "stop"}, timeout_s=1.0)
    for number in (0, signal.SIGTERM, signal.SIGKILL):
        if number and pid > 0 and holder.get("host") == os.uname().nodename:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        until = time.monotonic() + _STOP_SECONDS
        while time.monotonic() < until:
            now = Lease.holder(path)
            if now is None or now.get("started") != holder.get("started"):
                return True
            time.sleep(_PAUSE_SECONDS)
    raise StorageError(f"The service behind the hooks (PID {pid}) does not end; end that process by hand.")
