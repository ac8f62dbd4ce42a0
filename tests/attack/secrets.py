"""Generated secrets of every kind in every carrier, and harmless lines beside them.

Never: a secret gets past the write gate, or past `reverie remember`, into memory, its versions or its index. Of the
harmless lines at least 95% are kept.
"""

from __future__ import annotations

import random
import re
import zlib
from pathlib import Path

from reverie.memory.changes import Change, WriteInfo, Writer
from reverie.memory.directory import MemoryDirectory
from reverie.memory.gate.write_gate import Refused, WriteGate
from tests.attack.arena import Arena
from tests.memory.secrets_corpus import CARRIERS, TOKENS, Draw, cases
from tests.memory.secrets_held_out import made

LEAST_KEPT = 0.95
_AROUND = ("{}", "Notes of the day.\n\n{}\n\nEnd.", "- first\n- {}\n- last", "```\n{}\n```", "> {}", "# Setup\n\n{}")


def _rows(seed: int) -> list[tuple[str, bool, str]]:
    """Texts, whether they hold a secret, and what it is."""
    chance, draw = random.Random(seed), Draw(seed)
    rows = list(cases(seed))
    for name, make in TOKENS.items():
        rows.append((chance.choice(CARRIERS).format(make(draw)), True, name))
    secret, harmless = made(seed)
    rows += [(text, True, text[:24]) for text in secret] + [(text, False, text[:40]) for text in harmless]
    return rows


def attack(arena: Arena) -> None:
    chance = arena.chance
    rows = _rows(arena.seed)
    root = arena.folder / "memory"
    directory = MemoryDirectory.open(root, gate=WriteGate(root))
    alarms = list[str]()
    harmless = 0
    for number, (text, is_secret, what) in enumerate(chance.sample(rows, arena.count(40, len(rows)))):
        if not is_secret:
            harmless += 1
        whole = chance.choice(_AROUND).format(text) if is_secret else text
        name = f"project_n{number}.md"
        head = f"---\nname: n{number}\ndescription: a note\ntype: project\n---\n"
        try:
            directory.transaction([Change(name, f"{head}{whole}\n")], WriteInfo(Writer.USER, "attack"))
            kept = True
        except Refused as refused:
            kept = False
            if not is_secret and refused.refusal.kind == "secret":
                alarms.append(what)
        if is_secret:
            arena.judge(f"stored: {what}: {whole!r}" if kept else None)
    share = 1 - len(alarms) / max(1, harmless)
    low = share < LEAST_KEPT and harmless >= 40
    arena.judge(f"only {share:.1%} of {harmless} harmless lines pass: {alarms}" if low else None)
    _by_command(arena, [row for row in rows if row[1]])


def _by_command(arena: Arena, rows: list[tuple[str, bool, str]]) -> None:
    """`remember` stores nothing: no word of the secret text that looks drawn is anywhere in the memory's files."""
    world = arena.world()
    for text, _, what in arena.chance.sample(rows, arena.count(2, 25)):
        done = world.reverie("remember", "--", text)
        held = _held(world.home)
        drawn = [word for word in re.findall(r"\S{8,}", text) if any(c.isdigit() for c in word)]
        wrong = done.crash
        if wrong is None and done.code == 0 and text in held:
            wrong = "the text was stored"
        elif wrong is None and done.code and any(word in held for word in drawn):
            wrong = "refused, and yet a part of it is in the memory"
        arena.judge(None if wrong is None else f"remember {text!r} ({what}): {wrong}")


def _held(home: Path) -> str:
    """Everything that memory keeps, its versions unpacked."""
    parts = list[str]()
    for folder in home.glob("projects/*"):
        for path in folder.rglob("*"):
            if path.is_file():
                data = path.read_bytes()
                if re.search(r"/objects/../[0-9a-f]{38}$", str(path)):
                    data = zlib.decompress(data)
                parts.append(data.decode("utf-8", "replace"))
    return "\n".join(parts)
