"""A replay as a process of its own, for a program that wants to show progress and to stop it.

Reads an order (one JSON line) from standard input and prints one JSON line per session. It ends with its parent: when
standard input closes, the whole process group is killed.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import nullcontext
from pathlib import Path
from threading import Thread
from typing import Any

from reverie.errors import ReverieError
from reverie.lab.replay.costs import SessionCosts
from reverie.lab.replay.policies import choose_policies
from reverie.lab.replay.recorded import check_room
from reverie.lab.replay.report import RunningTotals, replay_file, session_figures
from reverie.parsing import load_json

_MOST_ORDER = 16_000_000
_MOST_SECONDS = 1_800
"""For one session under all policies."""


def main() -> int:
    """Runs one order: `files`, `policies`, `prefix_tokens`, `window`."""
    order: Any = load_json(_first_line())
    Thread(target=_end_with_parent, daemon=True).start()
    os.nice(10)
    try:
        names = [policy.name for policy in choose_policies([str(name) for name in order["policies"]])]
        prefix, window = int(order["prefix_tokens"]), int(order["window"])
        check_room(prefix, window)
        _replay_all([Path(str(one)) for one in order["files"]], names, prefix, window)
    except ReverieError as error:
        _say({"error": str(error)})
        return 1
    return 0


_CLASHES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
)
"""One strange file must not end the job."""


class _Voice:
    """Lines of several processes on one pipe: one writes at a time."""

    lock: Any = None


def _begin(lock: Any) -> None:
    _Voice.lock = lock


def _replay_one(path: Path, names: list[str], prefix: int, window: int) -> SessionCosts | str:
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(_MOST_SECONDS)
    try:
        return replay_file(path, names, prefix, window, lambda name: _say({"file": str(path), "policy": name}))
    except TimeoutError:
        return f"it takes more than {_MOST_SECONDS // 60} minutes"
    except _CLASHES as error:
        return f"it cannot be replayed ({type(error).__name__}: {str(error)[:200]})"
    finally:
        signal.alarm(0)


def _stop(*_signal: object) -> None:
    raise TimeoutError


def _replay_all(files: list[Path], names: list[str], prefix: int, window: int) -> None:
    totals, workers = RunningTotals(), max(1, min(os.cpu_count() or 1, len(files)))
    _begin(multiprocessing.Lock())
    with ProcessPoolExecutor(workers, initializer=_begin, initargs=(_Voice.lock,)) as pool:
        running = dict[Future[SessionCosts | str], Path]()
        for path in files:
            running[pool.submit(_replay_one, path, names, prefix, window)] = path
            if len(running) > workers:
                _take(running, totals)
        while running:
            _take(running, totals)
    _say({"finished": True})


def _take(running: dict[Future[SessionCosts | str], Path], totals: RunningTotals) -> None:
    done, _ = wait(running, return_when=FIRST_COMPLETED)
    for future in done:
        path, found = running.pop(future), future.result()
        if isinstance(found, str):
            _say({"file": str(path), "left_out": found})
        else:
            totals.add(found)
            _say({"file": str(path), "session": session_figures(found), "totals": totals.to_json()})


def _first_line() -> bytes:
    raw = b""
    while not raw.endswith(b"\n") and len(raw) < _MOST_ORDER:
        part = os.read(0, 65_536)
        if not part:
            break
        raw += part
    return raw


def _end_with_parent() -> None:
    while os.read(0, 4_096):
        pass
    os.killpg(0, signal.SIGKILL)


def _say(message: dict[str, Any]) -> None:
    with _Voice.lock or nullcontext():
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
