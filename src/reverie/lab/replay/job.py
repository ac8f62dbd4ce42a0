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
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

from reverie.errors import ReverieError
from reverie.lab.replay.costs import SessionCosts
from reverie.lab.replay.policies import BASELINE, choose_policies
from reverie.lab.replay.recorded import check_room, load_session
from reverie.lab.replay.report import replay_session, session_figures
from reverie.lab.replay.run import PolicyOutcome
from reverie.parsing import load_json
from reverie.simulator.errors import ApiError

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


def replay_file(
    path: Path, names: Sequence[str], prefix_tokens: int, window: int, on_policy: Callable[[str], None]
) -> SessionCosts | str:
    """The costs of the session in a file, or why it is left out. `on_policy` hears of each policy that is done."""
    try:
        session = load_session(path)
        if not session.rounds:
            return "it has no recorded answer"
        return replay_session(session, names, prefix_tokens, window, on_policy)
    except (ApiError, ReverieError) as error:
        return str(error)


class RunningTotals:
    """The totals of the sessions so far. Adding one costs the same, however many there are."""

    def __init__(self) -> None:
        self.sessions = 0
        self._paid = dict[str, PolicyOutcome]()
        self._cheapest = Counter[str]()
        self._bound = 0.0

    def add(self, one: SessionCosts) -> None:
        self.sessions += 1
        self._cheapest.update(one.cheapest)
        self._bound += one.bound
        for name, outcome in one.outcomes.items():
            known = self._paid.get(name)
            self._paid[name] = replace(
                PolicyOutcome.sum([*([known] if known else []), outcome]), by_round=[], breaks=[]
            )

    def to_json(self) -> dict[str, Any]:
        """The same figures per policy as in `summary`."""
        baseline = self._paid[BASELINE].cost
        return {
            "policies": {
                name: {**total.figures(baseline), "cheapest_on": self._cheapest[name]}
                for name, total in self._paid.items()
            },
            "sessions": self.sessions,
            "lower_bound_to_cached": round(self._bound / baseline, 4),
        }


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
