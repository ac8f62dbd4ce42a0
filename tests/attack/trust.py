"""Folders with parts that act, in every file and place that settings are read from.

Never: anything of them acts before `reverie trust`, or after trust once one of them has changed. That they do act while
the folder is trusted is the control: an attack that cannot act shows nothing.
"""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

from tests.attack.arena import Arena, World

HOOKS = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PreCompact", "Stop", "SessionEnd")
FILES = (".reverie/settings.toml", ".reverie/settings.local.toml")
COMMANDS = (
    ("run", "-q", "List the files here"),
    ("run", "-q", "-c", "thanks"),
    ("run", "-q", "--model", "scripted:play.script", "go"),
    ("recall", "server"),
    ("remember", "The gate opens at nine."),
    ("agents",),
    ("doctor",),
    ("sessions", "list"),
    ("compact",),
    ("btw", "What is this?"),
    ("settings",),
    ("trust", "--status"),
    ("memory", "list"),
    ("notes", "--update"),
)


def _parts(chance: random.Random, marks: Path) -> list[str]:
    """Lines of settings, each of which leaves a file in `marks` if it acts."""

    def mark() -> str:
        return str(marks / f"m{chance.randrange(10**9)}")

    hooks = [f'hooks.{name} = [{{command = "touch {mark()}"}}]' for name in HOOKS]
    others = [
        'permissions.mode = "accept_all"',
        'permissions.allow = ["Bash"]',
        'permissions.allow = ["Bash(touch:*)"]',
        f'memory.directory = "{mark()}"',
        f'debug.request_log = "{mark()}"',
        'flags.provider = "evil:provider"',
        'model.name = "scripted:play.script"\npermissions.mode = "accept_all"',
    ]
    chosen = chance.sample(hooks, chance.randint(0, 3)) + chance.sample(others, chance.randint(0, 2))
    chosen = chosen or [chance.choice(hooks)]
    lines = {line.split(" = ")[0]: line for one in chosen for line in one.split("\n")}
    return list(lines.values())


def _build(world: World, chance: random.Random, marks: Path) -> Path:
    """The folder; returns the folder that commands are run in."""
    lines = _parts(chance, marks)
    chance.shuffle(lines)
    cut = chance.randint(0, len(lines))
    for name, some in zip(chance.sample(FILES, 2), (lines[:cut], lines[cut:]), strict=True):
        if some:
            (world.work / name).parent.mkdir(exist_ok=True)
            (world.work / name).write_text("\n".join(some) + "\n")
    (world.work / "play.script").write_text(f'call Bash {{"command": "touch {marks}/by-script"}}\n---\nsay done\n')
    (world.work / "evil.py").write_text(f"open({str(marks / 'imported')!r}, 'w')\ndef provider(): pass\n")
    if chance.random() < 0.3 and (world.work / ".reverie").exists():
        (world.work / ".reverie").rename(world.work.parent / "elsewhere")
        (world.work / ".reverie").symlink_to(world.work.parent / "elsewhere")
    below = world.work
    if chance.random() < 0.6:
        env = {"PATH": world.env["PATH"], "HOME": world.env["HOME"]}
        subprocess.run(["git", "init", "-q"], cwd=world.work, env=env, check=True)
        if chance.random() < 0.5:
            subprocess.run(["git", "add", "-fA", "."], cwd=world.work, env=env, check=True)
        if chance.random() < 0.5:
            below = world.work / "src" / "deep"
            below.mkdir(parents=True)
            (below / "play.script").write_text((world.work / "play.script").read_text())
    return below


def _change(world: World, chance: random.Random, marks: Path) -> str:
    """Changes an acting part; says how."""
    files = [world.work / name for name in FILES if (world.work / name).exists()]
    path = chance.choice(files)
    text = path.read_text()
    free = [name for name in HOOKS if not any(f"hooks.{name} " in one.read_text() for one in files)]
    if "touch " in text and chance.random() < 0.5:
        path.write_text(text.replace("touch ", f"touch {marks}/changed ", 1))
        return "a hook's command"
    path.write_text(f'{text}hooks.{chance.choice(free)} = [{{command = "touch {marks}/added"}}]\n')
    return "a new hook"


def _acted(marks: Path) -> list[str]:
    return sorted(path.name for path in marks.rglob("*"))


def attack(arena: Arena) -> None:
    chance, controls = arena.chance, 0
    for _ in range(arena.count(1, 10)):
        world = arena.world()
        marks = world.work.parent / "marks"
        marks.mkdir()
        below = _build(world, chance, marks)
        commands = chance.sample(COMMANDS, arena.count(2, 5))
        written = " | ".join((world.work / name).read_text() for name in FILES if (world.work / name).exists())
        for words in (COMMANDS[0], *commands):
            done = world.reverie(*words, cwd=below)
            acted = _acted(marks)
            wrong = done.crash or (f"{acted} before trust" if acted else None)
            arena.judge(None if wrong is None else f"{' '.join(words)}: {wrong}: {written}")
            if acted:
                return
        if world.reverie("trust", "--yes", cwd=below).code:
            arena.judge(f"`reverie trust --yes` fails: {written}")
            continue
        world.reverie(*COMMANDS[0], cwd=below)
        world.reverie(*COMMANDS[2], cwd=below)
        controls += bool(_acted(marks))
        what = _change(world, chance, marks)
        for path in marks.iterdir():
            if path.is_file():
                path.unlink()
        was = _acted(marks)
        for words in (COMMANDS[0], *commands[:2]):
            done = world.reverie(*words, cwd=below)
            acted = [name for name in _acted(marks) if name not in was]
            wrong = done.crash or (f"{acted} after a change of {what}" if acted else None)
            arena.judge(None if wrong is None else f"{' '.join(words)}: {wrong}: {written}")
    if not controls and arena.full:
        arena.judge("control: nothing acted even in a trusted folder, so this attack shows nothing")
