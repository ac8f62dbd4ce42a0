"""Starts services and hooks as real processes, for the tests of this folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from reverie.daemon import hook
from reverie.daemon.client import daemon_status
from reverie.paths import daemon_socket
from reverie.runtime.background_log import BackgroundLog
from reverie.storage.atomic import make_private_dir
from tests.waiting import LIMIT_S, wait_until

HOOK = Path(__file__).resolve().parents[2] / "src" / "reverie" / "daemon" / "hook.py"
PATIENT_HOOK = Path(__file__).with_name("patient_hook.py")
STAND_IN = Path(__file__).with_name("stand_in.py")


def start_service(
    home: Path, *, idle_s: float = 60.0, worker: str = "reverie.daemon.work", job_limit_s: float = 600.0
) -> subprocess.Popen[bytes]:
    """Starts a service with stand-in handlers; `wait_until_it_answers` says when it is ready."""
    arguments = [str(home), str(daemon_socket(home)), str(idle_s), worker, str(job_limit_s)]
    return subprocess.Popen([sys.executable, str(STAND_IN), *arguments], stdin=subprocess.DEVNULL)


def ensure_daemon(home: Path) -> dict[str, Any]:
    """Starts the real service unless it runs, and returns its status when it answers; nothing if it did not start."""
    make_private_dir(home / "run")
    child = 0

    def is_over() -> bool:
        """It answers, or the one that was started here has ended and nobody else serves."""
        nonlocal child
        found.update(daemon_status(home) or {"answers": False})
        if found["answers"]:
            return True
        if not child and len(found) == 1:
            child = hook.start(str(home), str(daemon_socket(home)))
        if child > 0 and os.waitpid(child, os.WNOHANG)[0]:
            child = -1
        return child == -1 and len(found) == 1

    found: dict[str, Any] = {}
    wait_until(is_over)
    return found if found["answers"] else {}


def wait_until_it_answers(home: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def answers() -> bool:
        found.update(daemon_status(home) or {})
        return bool(found.get("answers"))

    wait_until(answers)
    return found


def hook_command(event: str, home: Path, socket: Path | None = None, *, patient: bool = True) -> list[str]:
    """The command of a hook; one that is not `patient` has the deadline of its event."""
    where = [str(home), str(socket or daemon_socket(home))]
    program = [str(PATIENT_HOOK), str(HOOK)] if patient else [str(HOOK)]
    return [sys.executable, "-I", "-S", *program, "claude-code", event, *where]


def run_hook(event: str, home: Path, payload: object, socket: Path | None = None) -> str:
    """Runs one hook as an agent does, and returns what it printed. It never fails."""
    given = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    done = subprocess.run(hook_command(event, home, socket), input=given, capture_output=True, timeout=LIMIT_S)
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
