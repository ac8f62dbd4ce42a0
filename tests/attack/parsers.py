"""Random hostile texts into every parser of foreign text, and through every kind of file that is parsed.

Never: a crash, an error that is not one of ours, more CPU time than a linear parser takes by far.
"""

from __future__ import annotations

import json
import random
import time
from contextlib import suppress

from reverie.errors import ReverieError
from tests.attack.arena import Arena, World, in_child
from tests.test_parse_time import PARSERS, TEXTS, UNITS
from tests.test_parsing import DEEP_YAML

SLOW_S = 6.0
"""CPU seconds for one text of at most 128 KB in one parser; the slowest take under one."""
_STRANGE = ["\0", "\x1b", "\u2028", "\u202e", "\ufeff", "\U0010ffff", "\ud800", "é", "\u0301", "\x85", "\x0b"]


def hostile_text(chance: random.Random, longest: int) -> str:
    """Units repeated, nested, mixed or cut, alone or inside other text."""
    size = int(longest ** chance.uniform(0.6, 1.0))
    units = [chance.choice([*UNITS, *_STRANGE]) for _ in range(chance.randint(1, 5))]
    match chance.randrange(6):
        case 0:
            text = "".join(units) * (size // len("".join(units)) + 1)
        case 1:
            opening, closing = chance.choice(["[]", "{}", "()", "<>", "«»", "''"])
            text = opening * (size // 2) + units[0] + closing * (size // 2)
        case 2:
            text = "".join(unit * chance.randint(1, size // len(unit) + 1) for unit in units)
        case 3:
            text = "".join(chance.choices([*UNITS, *_STRANGE, "word ", "A sentence. "], k=size))
        case 4:
            text = chance.choice(list(TEXTS.values()))(size)
        case _:
            text = units[0].join(made(size // 2) for made in chance.sample(list(TEXTS.values()), 2))
    return text[:size]


def attack(arena: Arena) -> None:
    names = list(PARSERS)
    for _ in range(arena.count(1, 12)):
        text = hostile_text(arena.chance, arena.count(8_192, 131_072))
        asked = names if arena.full else arena.chance.sample(names, 20)

        def parse_all(text: str = text, asked: list[str] = asked) -> None:
            for name in asked:
                print(f"> {name}", flush=True)
                began = time.process_time()
                with suppress(ValueError, ReverieError):
                    PARSERS[name](text)
                took = time.process_time() - began
                if took > SLOW_S:
                    print(f"SLOW {name}: {took:.1f} s of CPU time", flush=True)

        done = in_child(parse_all, limit_s=600)
        begun = [line[2:] for line in done.out.splitlines() if line.startswith("> ")]
        shown = f"for {len(text):,} characters that begin {text[:40]!r}"
        slow = [line[5:] for line in done.out.splitlines() if line.startswith("SLOW ")]
        for name in begun[:-1]:
            arena.judge(next((f"{one} {shown}" for one in slow if one.startswith(f"{name}:")), None))
        last = begun[-1] if begun else "nothing"
        wrong = done.crash or ("late" if done.late else next((one for one in slow if one.startswith(last)), None))
        arena.judge(None if wrong is None else f"parser {last}: {wrong} {shown}")
    for _ in range(arena.count(1, 4)):
        _through_files(arena)


def _deep(chance: random.Random) -> str:
    kind = chance.choice(["yaml", "json", "toml", "text"])
    size = chance.choice([500, 5_000, 60_000])
    match kind:
        case "yaml":
            return chance.choice(list(DEEP_YAML.values()))[: size * 2]
        case "json":
            return chance.choice(['{"a":', "[", '[{"b":', '{"type":"user","message":[']) * size
        case "toml":
            return chance.choice(
                ["a = " + "[" * size, "[" + "a." * size + "b]", "a" + ".a" * size + " = 1", "x = {" * size]
            )
        case _:
            return hostile_text(chance, 100_000)


def _write(world: World, place: str, text: str) -> None:
    path = (world.work if not place.startswith("~") else world.home) / place.removeprefix("~/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8", errors="surrogatepass")


def _through_files(arena: Arena) -> None:
    chance, world = arena.chance, arena.world()
    world.reverie("remember", "We deploy on Fridays")
    memory = "~/" + str(world.memory.relative_to(world.home))
    project = memory.removesuffix("/memory")
    places = {
        ".claude/rules/a.md": lambda text: f"---\npaths: {text}\n---\nrule\n",
        ".claude/rules/b.md": lambda text: f"---\n{text}\n---\nrule\n",
        ".claude/agents/a.md": lambda text: f"---\nname: a\ndescription: d\nx: {text}\n---\nbody\n",
        ".reverie/settings.toml": lambda text: f"{text}\n",
        "AGENTS.md": lambda text: f"{text}\n",
        f"{memory}/feedback_deep.md": lambda text: f"---\nname: a\ndescription: d\nx: {text}\n---\nbody\n",
        f"{memory}/team/feedback_team.md": lambda text: f"---\n{text}\n---\nbody\n",
        f"{memory}/MEMORY.md": lambda text: f"{text}\n",
        f"{project}/11111111-1111-4111-8111-111111111111.jsonl": lambda text: f"{text}\n",
        "foreign.jsonl": lambda text: (
            json.dumps({"type": "user", "message": {"role": "user", "content": text}}) + "\n" + text
        ),
        "notes.md": lambda text: f"# {text}\n\n{text}",
    }
    for place in chance.sample(list(places), chance.randint(3, len(places))):
        _write(world, place, places[place](_deep(chance)))
    commands = [
        ("run", "-q", "When do we deploy?"),
        ("agents",),
        ("memory", "list"),
        ("memory", "check"),
        ("recall", "deploy"),
        ("sessions", "list"),
        ("sessions", "show", "1111"),
        ("doctor",),
        ("context",),
        ("cost",),
        ("settings",),
        ("trust", "--status"),
        ("memory", "import", "notes.md"),
        ("sessions", "import", "foreign.jsonl"),
    ]
    for words in chance.sample(commands, arena.count(2, len(commands))):
        done = world.reverie(*words)
        arena.judge_ended(done, f"{' '.join(words)} in a folder of deep files")
