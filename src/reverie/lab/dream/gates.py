"""What a turn costs that asks whether to dream, gate by gate: the real gates on real files, in microseconds."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from reverie.layers.l6_dreaming.gates import Circumstances, Closed, Gate, GateNumbers, Gates
from reverie.layers.l6_dreaming.lock import ConsolidationLock
from reverie.layers.l6_dreaming.state import StateFile
from reverie.types import JsonObject

TRANSCRIPTS = 200
_NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
_DAY = 86_400.0


def measure_gates(repeats: int = 400) -> JsonObject:
    """The median time in µs until each gate turns a turn away, with 200 transcripts in the project's folder."""
    with tempfile.TemporaryDirectory(prefix="reverie-lab-") as folder:
        memory, project = Path(folder) / "memory", Path(folder) / "project"
        memory.mkdir()
        project.mkdir()
        for number in range(TRANSCRIPTS):
            (project / f"{number:08x}.jsonl").write_bytes(b"")
        figures: dict[str, float] = {}
        for gate, gates in _shut(memory, project).items():
            figures[gate.value] = _median(gates, gate, repeats)
        lock = ConsolidationLock(memory)
        (memory / ".consolidate-lock").unlink(missing_ok=True)
        figures[Gate.LOCK.value] = _median_lock(lock, repeats // 4)
        return {"microseconds": {name: round(value, 1) for name, value in figures.items()}, "transcripts": TRANSCRIPTS}


def _shut(memory: Path, project: Path) -> dict[Gate, Callable[[], Gates]]:
    """For each gate, what makes a set of gates of which this is the first that is shut."""
    base = Circumstances(
        is_on=lambda: True,
        daily_log=lambda: False,
        is_remote=lambda: False,
        numbers=GateNumbers,
        folders=(project,),
        current=lambda: "",
        waiting=lambda: 0,
        may_spend=lambda: None,
    )
    old, lately = _NOW.timestamp() - 3 * _DAY, _NOW.timestamp() - 60

    failed = StateFile(memory / "failed")
    failed.change(failures_in_a_row=3, last_attempt=lately)

    def ready(
        around: Circumstances, slept: float, changed: float, *, scanned: bool = False, state: StateFile | None = None
    ) -> Callable[[], Gates]:
        lock = ConsolidationLock(memory)
        lock.path.write_bytes(b"")
        gates = Gates(lock, StateFile(memory), around)

        def make() -> Gates:
            if scanned:
                os.utime(lock.path, (slept, slept))
                return gates
            return Gates(lock, state or StateFile(memory), around)

        def prepare() -> None:
            os.utime(lock.path, (slept, slept))
            for path in project.iterdir():
                os.utime(path, (changed, changed))

        prepare_once.append(prepare)
        return make

    prepare_once: list[Callable[[], None]] = []
    found = {
        Gate.SWITCH: ready(replace(base, is_on=lambda: False), old, old),
        Gate.DAILY_LOG: ready(replace(base, daily_log=lambda: True), old, old),
        Gate.REMOTE: ready(replace(base, is_remote=lambda: True), old, old),
        Gate.TIME: ready(base, lately, lately),
        Gate.SCAN: ready(base, old, old, scanned=True),
        Gate.RETRY: ready(base, old, old, state=failed),
        Gate.REVIEW: ready(replace(base, waiting=lambda: 1), old, old),
        Gate.TRANSCRIPTS: ready(base, old, old),
        Gate.BUDGET: ready(replace(base, may_spend=lambda: "the day's budget is spent"), old, lately),
    }

    def prepared(make: Callable[[], Gates], prepare: Callable[[], None]) -> Callable[[], Gates]:
        done = False

        def first() -> Gates:
            nonlocal done
            if not done:
                prepare()
                done = True
            return make()

        return first

    return {gate: prepared(make, prepare) for (gate, make), prepare in zip(found.items(), prepare_once, strict=True)}


def _median(make: Callable[[], Gates], gate: Gate, repeats: int) -> float:
    taken: list[float] = []
    for _ in range(repeats):
        gates = make()
        if gate is Gate.SCAN:
            gates.look(_NOW)
        began = time.perf_counter()
        found = gates.look(_NOW)
        taken.append((time.perf_counter() - began) * 1e6)
        assert isinstance(found, Closed) and found.gate is gate, found
    return statistics.median(taken)


def _median_lock(lock: ConsolidationLock, repeats: int) -> float:
    """A lock that somebody else holds: taken once, then asked for in vain."""
    now = _NOW.timestamp()
    held = lock.take(now)
    assert held is not None
    taken: list[float] = []
    for _ in range(repeats):
        began = time.perf_counter()
        assert lock.take(now) is None
        taken.append((time.perf_counter() - began) * 1e6)
    held.give_back(now)
    return statistics.median(taken)
