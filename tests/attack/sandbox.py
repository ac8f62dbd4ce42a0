"""Commands in the sandbox: several attacks at once, in a random profile, with random layers, in a machine with traps.

Never: a change outside, the mark of a secret in the output, a contact with a server, a process that is left or hurt.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from reverie.permissions.sandbox.probe import SandboxLayers, close_helpers, find_layers
from reverie.permissions.sandbox.profiles import Profile, Sandbox
from tests.attack.arena import Arena
from tests.permissions.sandbox.attacks import ATTACKS, command_of
from tests.permissions.sandbox.world import LIMITS, World, make_base, run_sandboxed

_JOINERS = ("\n", "\nwait\n", " &\n")
_CASES = 4


def attack(arena: Arena) -> None:
    found = find_layers()
    if not found.can_read:
        arena.judge(None)  # nothing runs in a sandbox on this machine
        return
    for _ in range(arena.count(1, 12)):
        _attack_world(arena, found, make_base())


def _attack_world(arena: Arena, found: SandboxLayers, base: Path) -> None:
    before_home = os.environ.get("HOME")
    os.environ["HOME"] = str(base / "home")
    world = World(base)
    try:
        for _ in range(_CASES):
            namespaces = found.namespaces and arena.chance.random() < 0.6
            # A small round takes what this machine has; older kernels are for the long ones.
            layers = SandboxLayers(namespaces, arena.chance.randint(1, found.landlock)) if arena.full else found
            profile = arena.chance.choice(list(Profile)[:3]) if namespaces else Profile.READ_ONLY
            sandbox = Sandbox(world.project, layers, LIMITS)
            names = arena.chance.sample(list(ATTACKS), 3)
            joined = [f"{{ {command_of(name, world)}\n}}{arena.chance.choice(_JOINERS)}" for name in names]
            outside, protected = world.states(), world.protected(profile)
            report, output = run_sandboxed(sandbox, "".join(joined), profile)
            wrong = world.wrong(output)
            if world.states() != outside or world.protected(profile) != protected:
                wrong.append("files changed")
            if report.status is None or (base / "survivor").exists():
                wrong.append(f"its end is not known ({report.error}), or a process was left")
            arena.judge(f"{profile.value}, {layers}: {names}: {wrong}" if wrong else None)
            world.make_project()
    finally:
        close_helpers()
        world.close()
        shutil.rmtree(base, ignore_errors=True)
        if before_home is not None:
            os.environ["HOME"] = before_home
