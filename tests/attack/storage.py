"""Disks that are read-only, full, limited or away, and commands that are killed while they save.

Never: success is claimed and nothing stored, an acknowledged write is lost, a traceback, or not exactly one sentence.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from tests.attack.arena import Arena
from tests.cli.fault_cases import cases
from tests.cli.fault_driver import FAULTS, mountable
from tests.cli.test_storage_faults import NEEDS_MOUNT, SECRET, findings, results


def attack(arena: Arena) -> None:
    _faults(arena)
    _kills(arena)


def _faults(arena: Arena) -> None:
    folder = arena.folder / "faults"
    folder.mkdir()
    able = arena.full and mountable() is None
    faults = [fault for fault in FAULTS if able or fault not in NEEDS_MOUNT]
    quick = [" ".join(path) for path, listed in cases(folder, SECRET).items() if not any(one.slow for one in listed)]
    plan: dict[str, list[str] | None] = {
        fault: arena.chance.sample(quick, arena.count(1, 8)) for fault in arena.chance.sample(faults, arena.count(1, 4))
    }
    for fault, found in results(folder, plan).items():
        for done in found:
            arena.judge(next(iter(findings(fault, [done], folder / "w")), None))


def _kills(arena: Arena) -> None:
    world = arena.world()
    kept = list[str]()
    for _ in range(arena.count(1, 8)):
        fact, *about = ("".join(arena.chance.choices("bdgklmnprst", k=7)) for _ in range(4))
        process = subprocess.Popen(
            [sys.executable, "-m", "reverie", "remember", f"{' '.join(about).title()} has a {fact}"],
            cwd=world.work, env=world.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        time.sleep(arena.chance.uniform(0.2, 2.0))
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        if fact.encode() in out or process.returncode == 0:
            kept.append(fact)
        there = "\n".join(path.read_text() for path in world.memory.glob("*.md"))
        lost = [fact for fact in kept if fact not in there]
        wrong = f"acknowledged and lost: {lost}" if lost else None
        if b"Traceback" in err:
            wrong = f"a traceback: {err[-500:]!r}"
        arena.judge(wrong)
    done = world.reverie("memory", "list")
    arena.judge(done.crash or (f"memory list ends with {done.code}: {done.err}" if done.code else None))
