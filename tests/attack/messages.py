"""Writers of memory, mailboxes and conversations that are killed at random moments.

Never: something acknowledged is lost, something comes twice, a file is torn.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

from tests.agents.messages.test_inbox_file import write_read_and_kill
from tests.attack.arena import Arena, in_child
from tests.memory.test_soak_saves import save_and_die
from tests.sessions import script
from tests.test_crash import PLAY, check, run_and_kill


def attack(arena: Arena) -> None:
    chance, world = arena.chance, arena.world()
    seeds = [random.Random(chance.random()) for _ in range(3)]
    boxes, saves = arena.folder / "boxes", arena.folder / "saves"
    boxes.mkdir()
    saves.mkdir()
    writers, workers = chance.randint(2, 4), chance.randint(2, 3)
    kinds: dict[str, Callable[[], int]] = {
        "mailbox": lambda: write_read_and_kill(
            boxes, arena.count(1, writers), arena.count(5, 40), arena.count(1, 3), seeds[0]
        ),
        "memory": lambda: save_and_die(saves, arena.count(1, workers), arena.count(3, 12), arena.count(0, 3), seeds[1]),
        "conversation": lambda: _conversation(world.work, arena.count(1, 8), seeds[2]),
    }
    for name, work in kinds.items():

        def told(work: Callable[[], int] = work) -> None:
            os.environ.update(world.env)
            print("judged", work())

        done = in_child(told, limit_s=400)
        if arena.judge_ended(done, f"{name} with kills"):
            arena.cases += int(done.out.split("judged ")[1]) - 1


def _conversation(folder: Path, kills: int, seed: random.Random) -> int:
    from reverie.paths import Places
    from reverie.settings import load_settings

    for number in range(1, 6):
        (folder / f"f{number}.txt").write_text("a line\n" * 50 * number)
    model, acknowledged = script(folder, PLAY), set[str]()
    project = Places.of(folder, load_settings(folder)).project
    for number in range(kills):
        for line in run_and_kill(folder, model, 0, number, seed):
            kind, _, name = line.partition(" ")
            if kind in ("person", "result"):
                acknowledged.add(name)
        check(project, acknowledged)
    return kills
