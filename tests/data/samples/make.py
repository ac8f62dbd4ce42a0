"""Makes the recorded sessions in `transcripts/` and `pi-sessions/`: our own agent at work on an invented project.

Run it from the root of the repository: `.venv/bin/python tests/data/samples/make.py`. What the model says is drawn here
with a fixed seed; tools, usage figures and compactions are real (the simulator answers over HTTP). It works in
/tmp/reverie-samples, which it removes first and last.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import shutil
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reverie.models.script import Script
from reverie.models.script_syntax import Reply
from reverie.session import Session
from reverie.simulator import Simulator
from reverie.simulator.http import running

HERE = Path(__file__).resolve().parent
ROOT = Path("/tmp/reverie-samples")
HOME, WORK = ROOT / "home", ROOT / "tidewatch"
MODEL = "anthropic:claude-sonnet-5-5"

PARTS = (
    "gauge_reader", "buoy_link", "tide_table", "harbour_map", "alarm_bell", "keeper_roster", "storm_model",
    "chart_export", "radio_feed", "salt_filter", "pump_control", "lamp_timer", "fog_signal", "archive_store",
)  # fmt: skip
VERBS = ("load", "check", "merge", "smooth", "publish", "rank", "trim", "replay", "repair", "count")
THINGS = ("readings", "stations", "levels", "warnings", "shifts", "charts", "signals", "harbours", "pumps", "nights")
ASKED = (
    "The {part} module drops the last reading of the night. Find out why.",
    "Please rename the constant in {part}.py so that it says what it limits, and run the checks.",
    "Why does {part}.py round twice? I want one rounding, at the end, and never in the loop.",
    "Look at {part}.py and {other}.py: do they read the same file twice?",
    "Add a line to CHANGES.md about what you did in {part}.py. Keep it short; the harbour office reads it.",
    "What breaks if {part} gets an empty list? Do not change the public names while you are there.",
    "The storm drill is on Thursday. Until then leave {other}.py alone, work on {part}.py only.",
    "Show me how long {part}.py is, and which function in it is the longest.",
)

SESSIONS = (
    *((turns, 200_000) for turns in (2, 3, 4, 5, 6, 8, 10, 12)),
    (24, 200_000),
    *((30, 32_000),) * 2,
    (40, 40_000),
)
"""Turns and window of each session; the last three are compacted on the way."""


def module(name: str, draw: random.Random) -> str:
    """A module of the invented project."""
    lines = [
        f'"""{name.replace("_", " ").capitalize()}: part of the tide watch."""',
        "",
        f"{name.upper()}_LIMIT = {draw.randint(3, 99)}",
        "",
    ]
    for number in range(draw.randint(5, 9)):
        verb, thing, unit = draw.choice(VERBS), draw.choice(THINGS), draw.choice(("metres", "feet", "knots", "hours"))
        giver = draw.choice(PARTS).replace("_", " ")
        lines += [
            f"def {verb}_{thing}_{number}({thing}: list[float], floor: float = {draw.random():.3f}) -> list[float]:",
            f'    """{verb.capitalize()} the {thing} that the {giver} left, above a floor."""',
            "    kept = []",
            f"    for one in {thing}[:{name.upper()}_LIMIT]:",
            f"        if one * {draw.randint(2, 19)} > floor:  # {draw.choice(THINGS)} come in {unit}",
            f"            kept.append(round(one, {draw.randint(1, 4)}))",
            f"    return sorted(kept, key=lambda level: level - {draw.random():.4f})",
            "",
        ]  # fmt: skip
    return "\n".join(lines)


class Player:
    """Answers the main thread with what is queued; a summary when one is asked for."""

    def __init__(self) -> None:
        self.queue: deque[str] = deque()
        self.summary = ""

    async def reply(self, body: Mapping[str, Any], *, purpose: str = "main") -> Reply:
        del body
        if purpose == "compaction":
            text = f"say <analysis>draft</analysis><summary>{self.summary}</summary>"
        else:
            text = self.queue.popleft() if purpose == "main" and self.queue else "say Done."
        return Script.parse(text).reply([], purpose="main")


def call(tool: str, **given: object) -> str:
    return f"call {tool} {json.dumps(given)}"


def rounds(draw: random.Random, part: str, other: str, number: int) -> list[str]:
    """What the model does about one request."""
    path = f"{part}.py"
    said = [f"say I look at {path} first.\n{call('Read', file_path=path)}"]
    for _ in range(draw.randint(0, 2)):
        said.append(call("Grep", pattern=draw.choice(VERBS), output_mode="content", path=f"{draw.choice(PARTS)}.py"))
    match draw.randrange(5):
        case 0:
            limit = f"{part.upper()}_LIMIT = "
            old = next(line for line in (WORK / path).read_text().splitlines() if line.startswith(limit))
            said.append(call("Edit", file_path=path, old_string=old, new_string=f"{limit}{draw.randint(100, 999)}"))
        case 1:
            said.append(call("Bash", command=f"python3 -m py_compile {path} && wc -l {path} {other}.py"))
        case 2:
            said.append(call("Bash", command=f"cat logs/{other}_{number}.log"))  # there is none: a failed command
        case 3:
            both = f"{call('Read', file_path=f'{other}.py')}\n{call('Glob', pattern='*.md')}"
            said.append(f"think Both files matter here.\n{both}")
        case _:
            said.append(
                call("Write", file_path=f"notes/{part}_{number}.md", content=f"# {part}\n\nSeen in round {number}.\n")
            )
    said.append(
        f"say In {path} the limit cuts the list before it is sorted; {other}.py is not touched. Round {number} is done."
    )
    return said


async def work(player: Player, simulator: Simulator, seed: int, turns: int, window: int) -> Path:
    draw = random.Random(seed)

    def now() -> datetime:
        simulator.clock.advance(draw.uniform(1, 20))
        return datetime.fromtimestamp(simulator.clock.now(), UTC)

    overrides = {"window.autocompact_window": window, "permissions.mode": "accept_all"}
    async with await Session.open(cwd=WORK, model=MODEL, overrides=overrides, clock=now) as session:
        for number in range(turns):
            if number % 4 == 3:
                simulator.clock.advance(400)  # a pause in which the cache lapses
            part, other = draw.sample(PARTS, 2)
            player.queue.extend(rounds(draw, part, other, number))
            player.summary = f"The tide watch is looked after; {part}.py was the last, {other}.py is left alone."
            async for _ in session.send(draw.choice(ASKED).format(part=part, other=other)):
                pass
        return session.places.transcript(session.id)


def with_own_ids(text: str) -> str:
    """Each call gets an id of its own: one reply at a time, a script begins to count again."""
    ids: dict[str, str] = {}
    lines = list[str]()
    for line in text.splitlines():
        if '"type":"tool_use"' in line:
            made = re.findall(r'"type":"tool_use","id":"(toolu_[\w-]+)"', line)
            ids.update({old: f"toolu_{len(lines):05}_{number}" for number, old in enumerate(made)})
        lines.append(re.sub(r"toolu_main[\w-]+", lambda found: ids.get(found[0], found[0]), line))
    return "\n".join(lines) + "\n"


def pi_session(seed: int, turns: int, *, compacted: bool) -> list[dict[str, Any]]:
    """A session in the form that the pi agent writes."""
    draw = random.Random(seed)
    lines: list[dict[str, Any]] = [{"type": "session", "id": f"71de-{seed}", "cwd": "/srv/tidewatch"}]

    def add(message: dict[str, Any]) -> None:
        lines.append(
            {"type": "message", "timestamp": f"2026-02-03T08:{len(lines) % 60:02}:00.000Z", "message": message}
        )

    for number in range(turns):
        part, other = draw.sample(PARTS, 2)
        add({"role": "user", "content": [{"type": "text", "text": draw.choice(ASKED).format(part=part, other=other)}]})
        for name, given in (("read", {"path": f"{part}.py"}), ("bash", {"command": f"wc -l {other}.py"})):
            key = f"call_{seed}_{number}_{name}"
            usage = {"input": 900 * len(lines), "output": 40, "cacheRead": 0, "cacheWrite": 0}
            told = [
                {"type": "text", "text": f"I look at {part}.py."},
                {"type": "toolCall", "id": key, "name": name, "arguments": given},
            ]
            add({"role": "assistant", "content": told, "usage": usage, "stopReason": "toolUse"})
            shown = module(part, draw) if name == "read" else f"{draw.randint(20, 90)} {other}.py"
            add(
                {
                    "role": "toolResult",
                    "toolCallId": key,
                    "toolName": name,
                    "content": [{"type": "text", "text": shown}],
                }
            )
        add(
            {
                "role": "assistant",
                "content": [{"type": "text", "text": f"{part}.py is in order."}],
                "stopReason": "stop",
            }
        )
        if compacted and number == turns // 2:
            kept = len(lines) - 6
            lines.append(
                {"type": "compaction", "summary": "The first half is looked through.", "firstKeptEntryIndex": kept}
            )
    return lines


def main() -> None:
    shutil.rmtree(ROOT, ignore_errors=True)
    os.environ |= {"HOME": str(ROOT), "REVERIE_HOME": str(HOME), "ANTHROPIC_API_KEY": "simulated"}
    os.environ |= {
        f"REVERIE_FLAG_{name}": "0"
        for name in ("SESSION_NOTES", "EXTRACTION", "DREAM", "RECALL", "MICROCOMPACT_ECONOMIC")
    }
    for old in (HERE / "transcripts").glob("*.jsonl"):
        old.unlink()
    for number, (turns, window) in enumerate(SESSIONS):
        shutil.rmtree(WORK, ignore_errors=True)
        WORK.mkdir(parents=True)
        draw = random.Random(number)
        for name in PARTS:
            (WORK / f"{name}.py").write_text(module(name, draw))
        (WORK / "CHANGES.md").write_text("# Changes\n")
        player = Player()
        simulator = Simulator(player)
        simulator.clock.advance(86_400 * (number + 1))
        with running(simulator) as url:
            os.environ["ANTHROPIC_BASE_URL"] = url
            path = asyncio.run(work(player, simulator, number, turns, window))
        name = f"{number:02}a1de00-0000-4000-8000-{number:012}"
        text = with_own_ids(path.read_text().replace(path.stem, name))
        (HERE / "transcripts" / f"{name}.jsonl").write_text(text)
        print(f"{name} {turns} turns, {len(text)} characters, {text.count('compact_boundary')} compactions")
    for name, lines in {
        "before-compaction": pi_session(1, 12, compacted=False),
        "long": pi_session(2, 20, compacted=True),
    }.items():
        (HERE / "pi-sessions" / f"{name}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    shutil.rmtree(ROOT, ignore_errors=True)


if __name__ == "__main__":
    main()
