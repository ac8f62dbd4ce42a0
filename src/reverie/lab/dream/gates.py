"""What a turn costs that asks whether to dream, gate by gate: the real gates on real files, in microseconds."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter

from reverie.layers.l6_dreaming.gates import Circumstances, Closed, Gate, GateNumbers, Gates
from reverie.layers.l6_dreaming.lock import ConsolidationLock
from reverie.layers.l6_dreaming.state import StateFile
from reverie.types import JsonObject

TRANSCRIPTS = 200
_NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
_OLD, _LATELY = _NOW.timestamp() - 3 * 86_400, _NOW.timestamp() - 60


def measure_gates(repeats: int = 400) -> JsonObject:
    """The median time in µs until each gate turns a turn away, with 200 transcripts in the project's folder."""
    with tempfile.TemporaryDirectory(prefix="reverie-lab-") as folder:
        memory, project = Path(folder) / "memory", Path(folder) / "project"
        memory.mkdir()
        project.mkdir()
        for number in range(TRANSCRIPTS):
            (project / f"{number:08x}.jsonl").write_bytes(b"")
        failed = StateFile(memory / "failed")
        failed.change(failures_in_a_row=3, last_attempt=_LATELY)
        figures: dict[str, float] = {}
        for gate, (around, slept, changed) in _shut(project).items():
            lock = ConsolidationLock(memory)
            lock.path.write_bytes(b"")
            os.utime(lock.path, (slept, slept))
            for path in project.iterdir():
                os.utime(path, (changed, changed))
            state = failed if gate is Gate.RETRY else StateFile(memory)
            figures[gate.value] = _of_gate(gate, lambda: Gates(lock, state, around), repeats)  # noqa: B023
        (memory / ".consolidate-lock").unlink()
        figures[Gate.LOCK.value] = _of_lock(ConsolidationLock(memory), repeats // 4)
        return {"microseconds": {name: round(value, 1) for name, value in figures.items()}, "transcripts": TRANSCRIPTS}


def _shut(project: Path) -> dict[Gate, tuple[Circumstances, float, float]]:
    """For each gate where it is the first that is shut: around it, the last dream, and when transcripts changed."""
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
    return {
        Gate.SWITCH: (replace(base, is_on=lambda: False), _OLD, _OLD),
        Gate.DAILY_LOG: (replace(base, daily_log=lambda: True), _OLD, _OLD),
        Gate.REMOTE: (replace(base, is_remote=lambda: True), _OLD, _OLD),
        Gate.TIME: (base, _LATELY, _LATELY),
        Gate.SCAN: (base, _OLD, _OLD),
        Gate.RETRY: (base, _OLD, _OLD),
        Gate.REVIEW: (replace(base, waiting=lambda: 1), _OLD, _OLD),
        Gate.TRANSCRIPTS: (base, _OLD, _OLD),
        Gate.BUDGET: (replace(base, may_spend=lambda: "the day's budget is spent"), _OLD, _LATELY),
    }


def _of_gate(gate: Gate, make: Callable[[], Gates], repeats: int) -> float:
    taken: list[float] = []
    for _ in range(repeats):
        gates = make()
        if gate is Gate.SCAN:
            gates.look(_NOW)
        began = perf_counter()
        found = gates.look(_NOW)
        taken.append(perf_counter() - began)
        assert isinstance(found, Closed) and found.gate is gate, found
    return median(taken) * 1e6


def _of_lock(lock: ConsolidationLock, repeats: int) -> float:
    """A lock that somebody else holds: taken once, then asked for in vain."""
    now = _NOW.timestamp()
    held = lock.take(now)
    assert held is not None
    taken: list[float] = []
    for _ in range(repeats):
        began = perf_counter()
        assert lock.take(now) is None
        taken.append(perf_counter() - began)
    held.give_back(now)
    return median(taken) * 1e6
