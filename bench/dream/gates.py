"""The cost of dreaming: how long each gate takes, in microseconds, and a dream of the offline mind over many files."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter

from bench.scratch import scratch_home
from reverie.layers.l6_dreaming.gates import Circumstances, Closed, DreamGate, GateNumbers, Gates
from reverie.layers.l6_dreaming.lock import ConsolidationLock
from reverie.layers.l6_dreaming.state import StateFile
from reverie.memory.opening import open_memory
from reverie.models.registry import EMBEDDED
from reverie.paths import Places
from reverie.session.session import Session
from reverie.settings import Settings
from reverie.text.folding import word_set
from reverie.types import JsonObject

TRANSCRIPTS = 200
_NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
_OLD, _LATELY = _NOW.timestamp() - 3 * 86_400, _NOW.timestamp() - 60


def measure_gates(repeats: int = 400) -> JsonObject:
    """The median time in µs until each gate says no, with 200 transcripts in the project's folder."""
    with tempfile.TemporaryDirectory(prefix="reverie-lab-") as folder:
        memory, project = Path(folder) / "memory", Path(folder) / "project"
        memory.mkdir()
        project.mkdir()
        for number in range(TRANSCRIPTS):
            (project / f"{number:08x}.jsonl").write_bytes(b"")
        failed = StateFile(memory / "failed")
        failed.change(failures_in_a_row=3, last_attempt=_LATELY)
        figures: dict[str, float] = {}
        for gate, (around, slept, changed) in _close_gates(project).items():
            lock = ConsolidationLock(memory)
            lock.path.write_bytes(b"")
            os.utime(lock.path, (slept, slept))
            for path in project.iterdir():
                os.utime(path, (changed, changed))
            state = failed if gate is DreamGate.RETRY else StateFile(memory)
            figures[gate.value] = _time_gate(gate, lambda: Gates(lock, state, around), repeats)  # noqa: B023
        (memory / ".consolidate-lock").unlink()
        figures[DreamGate.LOCK.value] = _time_lock(ConsolidationLock(memory), repeats // 4)
        return {"microseconds": figures, "transcripts": TRANSCRIPTS}


def _close_gates(project: Path) -> dict[DreamGate, tuple[Circumstances, float, float]]:
    """For each gate a case in which it closes first: circumstances, last dream, and last change of transcripts."""
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
        DreamGate.SWITCH: (replace(base, is_on=lambda: False), _OLD, _OLD),
        DreamGate.DAILY_LOG: (replace(base, daily_log=lambda: True), _OLD, _OLD),
        DreamGate.REMOTE: (replace(base, is_remote=lambda: True), _OLD, _OLD),
        DreamGate.TIME: (base, _LATELY, _LATELY),
        DreamGate.SCAN: (base, _OLD, _OLD),
        DreamGate.RETRY: (base, _OLD, _OLD),
        DreamGate.REVIEW: (replace(base, waiting=lambda: 1), _OLD, _OLD),
        DreamGate.TRANSCRIPTS: (base, _OLD, _OLD),
        DreamGate.BUDGET: (replace(base, may_spend=lambda: "the day's budget is spent"), _OLD, _LATELY),
    }


def _time_gate(gate: DreamGate, make: Callable[[], Gates], repeats: int) -> float:
    taken: list[float] = []
    for _ in range(repeats):
        gates = make()
        if gate is DreamGate.SCAN:
            gates.look(_NOW)
        began = perf_counter()
        found = gates.look(_NOW)
        taken.append(perf_counter() - began)
        assert isinstance(found, Closed) and found.gate is gate, found
    return median(taken) * 1e6


def _time_lock(lock: ConsolidationLock, repeats: int) -> float:
    """The time to find that another process has the lock."""
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


_THINGS = ("pump", "valve", "tank", "belt", "fan", "lamp", "gate", "door", "panel", "meter", "motor", "sensor")
_WORDS = sorted(
    word_set(
        """anchor basket candle drawer engine feather garden hammer island jacket kettle ladder magnet needle orchard
        pillow quarry ribbon saddle tunnel umbrella vessel wagon yard zinc amber bridge copper donkey ember forest
        glacier harbour ivory jungle kernel lantern meadow nectar otter pepper quartz river silver timber urchin
        velvet willow xenon yeast"""
    )
)
_LINES = 12


def measure_speed(files: int) -> JsonObject:
    """Seconds of a first dream over `files` files (one in ten is a copy), and of a second one with nothing to do."""
    with scratch_home() as (cwd, settings):
        return asyncio.run(_measure(cwd, settings, files))


async def _measure(cwd: Path, settings: Settings, files: int) -> JsonObject:
    memory = open_memory(settings, Places.of(cwd, settings)).directory.root
    memory.mkdir(parents=True, mode=0o700)
    size = _write_memories(memory, files)
    found: JsonObject = {"files": files, "bytes": size}
    for which in ("first_s", "second_s"):
        async with await Session.open(cwd=cwd, settings=settings, model=EMBEDDED, interactive=False) as session:
            assert session.dreaming is not None, "there is a memory"
            began, worked = time.perf_counter(), time.process_time()
            task = session.dreaming.start()
            await task.wait()
            found[which] = time.perf_counter() - began
            found[which.replace("_s", "_cpu_s")] = time.process_time() - worked
            found[which.replace("_s", "")] = task.result.outcome if task.result is not None else "failed"
    found["left"] = len(list(memory.glob("*.md"))) - 1
    return found


def _sentence(thing: str, number: int, line: int) -> str:
    some = [_WORDS[(number * 31 + line * 17 + step * 7 * (number % 5 + 1)) % len(_WORDS)] for step in range(4)]
    return f"The {some[0]} of the {thing} is {some[1]} by {some[2]} {line + number % 50} and the {some[3]}."


def _write_memories(memory: Path, files: int) -> int:
    """Writes invented memories and returns their size in bytes."""
    size = 0
    index: list[str] = []
    for number in range(files):
        of = number - 1 if number % 10 == 9 else number  # a copy of the one before it, with one more sentence
        thing = f"{_THINGS[of % len(_THINGS)]} {of}"
        body = "".join(f"{_sentence(thing, of, line)}\n" for line in range(_LINES))
        body += "" if of == number else "Its spare parts are in the cellar.\n"
        name = f"project_{thing.replace(' ', '_')}{'' if of == number else '_copy'}.md"
        head = f"---\nname: {thing.title()}\ndescription: All about the {thing}\ntype: project\n---\n\n"
        (memory / name).write_text(head + body)
        index.append(f"- [{thing.title()}]({name}) — all about it\n")
        size += len(head + body)
    (memory / "MEMORY.md").write_text("".join(index))
    return size
