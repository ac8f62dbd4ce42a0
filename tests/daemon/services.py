"""Starts services and hooks as real processes, for the tests of this folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reverie.daemon import hook
from reverie.daemon.client import daemon_status
from reverie.paths import daemon_socket
from reverie.runtime.background_log import BackgroundLog
from reverie.storage.atomic import make_private_dir

HOOK = Path(__file__).resolve().parents[2] / "src" / "reverie" / "daemon" / "hook.py"
STAND_IN = Path(__file__).with_name("stand_in.py")


def start_service(home: Path, *, idle_s: float = 60.0, worker: str = "reverie.daemon.work") -> subprocess.Popen[bytes]:
    """Starts a service with stand-in handlers; `wait_until_it_answers` says when it is ready."""
    arguments = [str(home), str(daemon_socket(home)), str(idle_s), worker]
    return subprocess.Popen([sys.executable, str(STAND_IN), *arguments], stdin=subprocess.DEVNULL)


def ensure_daemon(home: Path) -> dict[str, Any]:
    """Starts the real service unless it runs, and returns its status when it answers; nothing if it did not start."""
    make_private_dir(home / "run")
    until, child = time.monotonic() + 10.0, 0
    while time.monotonic() < until:
        found = daemon_status(home)
        if found is not None and found["answers"]:
            return found
        if found is None and not child:
            child = hook.start(str(home), str(daemon_socket(home)))
        if child > 0 and os.waitpid(child, os.WNOHANG)[0]:
            child = -1  # it ended: it failed, or another one was quicker
            until = min(until, time.monotonic() + 1.0)
        time.sleep(0.02)
    return {}


def wait_until_it_answers(home: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def answers() -> bool:
        found.update(daemon_status(home) or {})
        return bool(found.get("answers"))

    wait_for(answers)
    return found


def wait_for(condition: Callable[[], object], seconds: float = 15.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"waited {seconds} s in vain"
        time.sleep(0.02)


def hook_command(event: str, home: Path, socket: Path | None = None) -> list[str]:
    where = [str(home), str(socket or daemon_socket(home))]
    return [sys.executable, "-I", "-S", str(HOOK), "claude-code", event, *where]


def run_hook(event: str, home: Path, payload: object, socket: Path | None = None) -> str:
    """Runs one hook as an agent does, and returns what it printed. It never fails."""
    given = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    done = subprocess.run(hook_command(event, home, socket), input=given, capture_output=True, timeout=20)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def log_of(home: Path, kind: str) -> list[dict[str, Any]]:
    return [dict(entry.fields) for entry in BackgroundLog(home / "logs" / "background.jsonl").read(kind=kind)]


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
