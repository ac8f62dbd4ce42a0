"""Hostile bytes in every name and content, shown on a real terminal.

Never: a byte of them reaches the terminal raw. What is left after our own styles and line ends are taken away has no
control character, no direction mark and no tag character in it.
"""

from __future__ import annotations

import random
import re

from tests.attack.arena import Arena
from tests.cli.conftest import Command
from tests.cli.terminal import Terminal
from tests.cli.test_foreign_input import hostile_home

WORD = "zqxred"
_PIECES = (
    "\x1b]52;c;aGVsbG8=\x07",
    "\x1b]0;title\x1b\\",
    "\x1b]8;;http://evil\x07link\x1b]8;;\x07",
    "\x1b[2J",
    "\x1b[1;1H",
    f"\x1b[31m{WORD}",
    f"\x1b[8m{WORD}",
    "\x1bP+q544e\x1b\\",
    "\x1b[6n",
    "\x1b[?1049h",
    "\x9b31m",
    "\x9d52;c;eA==\x9c",
    "\x90x\x9c",
    "\x08\x08",
    "\rfake",
    "\x0c",
    "\x0b",
    "\x85",
    "\x7f",
    "\u202etxt",
    "\u2066a",
    "\u200b",
    "\u2028",
    "\U000e0041",
    "\x1b",
    "\x1bc",
    "\x0e",
    "größe",
    "plain",
    " ",
)
_OURS = re.compile(r"\x1b\[[0-9;]*m|\r\x1b\[K|\r+\n")
_STEERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")


def hostile(chance: random.Random) -> str:
    """Up to 90 bytes: it is also a file's name."""
    text = "evil"
    while len((text + (piece := chance.choice(_PIECES))).encode()) < 60:
        text += piece.replace("/", "_")
    return text


def commands(text: str) -> list[tuple[str, ...]]:
    return [
        ("agents",),
        ("memory", "list"),
        ("memory", "show", f"feedback_{text}.md"),
        ("memory", "show", "feedback_plain.md"),
        ("memory", "check"),
        ("memory", "log"),
        ("sessions", "list"),
        ("sessions", "show", "1111"),
        ("recall", text),
        ("doctor",),
        (text,),
        ("run", f"--{text}"),
        ("run", "-q", f"What about {text}?"),
        ("run", f"show {text}"),
        ("sessions", "show", text),
        ("memory", "import", f"/{text}"),
        ("run", "--model", f"scripted:{text}", "hi"),
        ("run", "--model", text, "hi"),
        ("remember", text),
        ("forget", text),
        ("pin", text),
        ("context",),
        ("settings", text),
        ("trust", text),
        ("team", "status"),
        ("log", "--kind", text),
    ]


def steering(raw: str) -> str | None:
    """What of this would steer a terminal; None if nothing."""
    if re.search(rf"\x1b\[[0-9;]*m{WORD}", raw):
        return f"a foreign style before {WORD}"
    found = _STEERS.search(_OURS.sub("", raw))
    return f"{found[0]!r} in {raw[max(0, raw.find(found[0]) - 60) :][:160]!r}" if found else None


def _ended(screen: Terminal) -> None:
    """Waits for the end; says no to what is asked, then leaves."""
    for turn in range(20):
        try:
            screen.ended(3)
            return
        except AssertionError:
            screen.press("\x03" if turn else "n\r")
    screen.ended(1)


def attack(arena: Arena) -> None:
    for _ in range(arena.count(1, 2)):
        world, text = arena.world(), hostile(arena.chance)
        hostile_home(Command(world.home, world.work), text)
        for words in arena.chance.sample(commands(text), arena.count(1, 7)):
            with Terminal(*words, cwd=world.work, env=world.env, columns=200) as screen:
                try:
                    _ended(screen)
                    wrong = steering(screen.raw) or ("a traceback" if "Traceback (most" in screen.raw else None)
                except AssertionError:
                    wrong = "it does not end"
            arena.judge(None if wrong is None else f"{words!r} after {text!r}: {wrong}")
