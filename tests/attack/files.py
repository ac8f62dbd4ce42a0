"""Pipes, sockets, devices, loops, huge files, strange times and torn transcripts, anywhere in the home and the project.

Never: a command that reads hangs, crashes or shows a traceback.
"""

from __future__ import annotations

import os
import random
import socket
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.attack.arena import Arena, World
from tests.cli.sessions.test_bad_transcripts import BAD, GOOD, ODD
from tests.test_strange_times import FUTURE, STRANGE

COMMANDS = (
    ("run", "-q", "When do we deploy?"),
    ("run", "-q", "-c", "thanks"),
    ("recall", "deploy"),
    ("sessions", "list"),
    ("sessions", "show", "last"),
    ("memory", "list"),
    ("memory", "check"),
    ("memory", "log"),
    ("memory", "search", "deploy"),
    ("memory", "inbox"),
    ("memory", "path"),
    ("doctor",),
    ("agents",),
    ("context",),
    ("cost",),
    ("settings",),
    ("trust", "--status"),
    ("log",),
    ("tasks",),
    ("dream", "status"),
    ("notes",),
    ("team", "status"),
    ("compact", "--preview"),
    ("memory", "import", "x.md"),
    ("sessions", "import", "x.jsonl"),
    ("extract", "x.jsonl"),
)


def _socket(path: Path, _: random.Random) -> None:
    listening = socket.socket(socket.AF_UNIX)
    before = Path.cwd()
    os.chdir(path.parent)  # the name of a socket may be 108 bytes long
    try:
        listening.bind(path.name)
    finally:
        os.chdir(before)
        listening.close()


def _device(path: Path, chance: random.Random) -> None:
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, chance.choice((3, 5, 8, 9))))
    except OSError:
        path.symlink_to(chance.choice(("/dev/zero", "/dev/random", "/dev/tty", "/dev/full")))


def _sparse(path: Path, chance: random.Random) -> None:
    with path.open("wb") as file:
        file.write(b"---\nname: a\n")
        file.truncate(chance.choice((1 << 26, 1 << 33, 1 << 40)))


def _torn(path: Path, chance: random.Random) -> None:
    text = chance.choice([*BAD.values(), *(GOOD + str(odd) for odd in ODD), GOOD[: chance.randrange(len(GOOD))]])
    path.write_text(text, errors="surrogateescape")


def _timed(path: Path, chance: random.Random) -> None:
    path.write_text(GOOD)
    when = chance.choice([*STRANGE, FUTURE])
    with suppress(OSError, OverflowError):
        os.utime(path, (when, when))


def _bytes(path: Path, chance: random.Random) -> None:
    path.write_bytes(chance.randbytes(chance.choice((0, 1, 100, 100_000))))


KINDS: dict[str, Callable[[Path, random.Random], None]] = {
    "pipe": lambda path, _: os.mkfifo(path),
    "socket": _socket,
    "device": _device,
    "link to itself": lambda path, _: path.symlink_to(path.name),
    "link to nowhere": lambda path, _: path.symlink_to("nowhere"),
    "link to its folder": lambda path, _: path.symlink_to(path.parent),
    "folder": lambda path, _: path.mkdir(),
    "huge": _sparse,
    "torn": _torn,
    "strange time": _timed,
    "random bytes": _bytes,
    "no rights": lambda path, _: (path.write_text("x"), path.chmod(0))[1],
}


def _places(world: World) -> list[Path]:
    project, work, home = world.memory.parent, world.work, world.home
    session = "00000000-0000-4000-8000-000000000000"
    return [
        *(project / name for name in (f"{session}.jsonl", "odd.jsonl", f"{session}.jsonl.torn", ".x.tmp")),
        *(project / session / name for name in ("session-memory/summary.md", "tool-results/t.txt", "letters.json")),
        *(world.memory / name for name in ("feedback_a.md", "MEMORY.md", "team/feedback_b.md", ".inbox/w.json")),
        *(world.memory / name for name in (".dreams/d.json", "logs/2026/01/2026-01-01.md", ".consolidate-lock")),
        *(home / name for name in ("settings.toml", "trust.json", "flags.json", "background.log", "requests.jsonl")),
        *(home / name for name in ("days/2026-01-01.jsonl", "heartbeats/dream.json", "teams/red/inboxes/ann.json")),
        *(home / name for name in ("indexes/x.sqlite", "agents/a.md", "AGENTS.md", "rules/a.md", "chat_history")),
        *(work / name for name in ("AGENTS.md", "CLAUDE.md", "x.md", "x.jsonl", ".claude/agents/a.md", "notes.txt")),
        *(work / name for name in (".claude/rules/a.md", ".reverie/settings.toml", ".reverie/settings.local.toml")),
        *(work / name for name in (".git", ".mcp.json", ".claude/settings.json", "sub/AGENTS.md")),
    ]


def attack(arena: Arena) -> None:
    for _ in range(arena.count(1, 5)):
        chance, world = arena.chance, arena.world()
        world.reverie("remember", "We deploy on Fridays")
        world.reverie("run", "-q", "hello")
        put = list[str]()
        places = _places(world)
        if chance.random() < 0.7:  # most often every command stops at broken settings, and shows little else
            places = [path for path in places if not path.name.startswith("settings.")]
        for path in chance.sample(places, chance.randint(3, 14)):
            with suppress(FileExistsError, NotADirectoryError):
                path.parent.mkdir(parents=True, exist_ok=True)
                if path.is_file() and not path.is_symlink():
                    path.unlink()
                kind = chance.choice(list(KINDS))
                KINDS[kind](path, chance)
                put.append(f"{path.relative_to(world.home.parent.parent)}: {kind}")
        for words in chance.sample(COMMANDS, arena.count(2, 12)):
            done = world.reverie(*words)
            if not arena.judge_ended(done, f"{' '.join(words)} with {put}") and done.late:
                break
