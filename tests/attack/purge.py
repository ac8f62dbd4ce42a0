"""A random value in every place of a home, in contents and names, plain and encoded; then a purge, maybe killed.

Never: a byte of it is left anywhere in the home, versions of memory unpacked, once a purge has said that it is done.
"""

from __future__ import annotations

import os
import random
import signal
import string
import subprocess
import sys
import time

from tests.attack.arena import Arena, World, in_child
from tests.memory.upkeep.test_purge_everywhere import Planted

_SAYS_WHEN = "import os; os.write(1, b'.'); from reverie.cli.app import app; app()"


def _value(chance: random.Random) -> str:
    letters = string.ascii_letters + string.digits
    middle = chance.choice("-_.+@=")
    return (
        "".join(chance.choices(letters, k=chance.randint(6, 14)))
        + middle
        + "".join(chance.choices(letters, k=chance.randint(6, 20)))
    )


def _killed_purge(world: World, value: str, after_s: float) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _SAYS_WHEN, "memory", "purge", "--yes", value],
        env=world.env, cwd=world.work, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    with process.stdout:
        process.stdout.read(1)
        time.sleep(after_s)
        process.send_signal(signal.SIGKILL)
        process.wait()


def attack(arena: Arena) -> None:
    for _ in range(arena.count(1, 6)):
        chance, world = arena.chance, arena.world()
        value = _value(chance)
        others = chance.random()

        def plant(world: World = world, value: str = value, others: float = others) -> None:
            os.environ.update(world.env)
            planted = Planted(world.work, value)
            for path in planted.files:
                if random.Random(f"{path.name}{others}").random() < others * 0.7:
                    path.unlink()
            assert planted.found()

        def left(world: World = world, value: str = value) -> None:
            os.environ.update(world.env)
            seen = Planted.__new__(Planted)
            seen.home, seen.secret, seen.slug = world.home, value, Planted.slug_of(value)
            print("\n".join(seen.found()))

        made = in_child(plant)
        if made.crash:
            arena.judge(f"the home could not be made: {made.crash}")
            continue
        kills = chance.choice((0, 1, 1, 2)) if arena.full else 0
        for _ in range(kills):
            _killed_purge(world, value, chance.uniform(0.2, 1.5))
        done = world.reverie("memory", "purge", "--yes", stdin=value)
        found = in_child(left)
        wrong = done.crash or found.crash
        if wrong is None and done.code:
            wrong = f"it ends with {done.code}: {done.err[-300:]}{done.out[-300:]}"
        if wrong is None and found.out.strip():
            wrong = f"it is left in {found.out.split()}"
        arena.judge(None if wrong is None else f"purge of {value!r} after {kills} killed ones: {wrong}")
