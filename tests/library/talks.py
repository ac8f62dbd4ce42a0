"""A scripted agent without an SDK: its messages, its answers, and the calls of an engine that a loop makes."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from reverie.library.engine import Engine

MODEL = "anthropic:claude-sonnet-4-5"
TOOLS = [
    {
        "name": "read_file",
        "description": "Reads a file.",
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
    }
]
SYSTEM = "You look after a shop."
START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@dataclass
class Round:
    """One request and what follows: the answer's blocks, and the results of its calls."""

    answer: list[dict[str, Any]]
    follow: dict[str, Any] | None
    tokens: int


@dataclass
class Talk:
    """A conversation that is known beforehand, so that it can be played in many ways."""

    first: dict[str, Any]
    rounds: list[Round] = field(default_factory=list)


def make_talk(seed: int, rounds: int, *, large: int = 2) -> Talk:
    """A talk with tool calls, some large results, and a new message of the user now and then."""
    dice = random.Random(seed)
    talk = Talk({"role": "user", "content": f"Look at the files of order {seed}."})
    large_at = set(dice.sample(range(rounds), min(large, rounds)))
    for number in range(rounds):
        if dice.random() < 0.2:
            answer = [{"type": "text", "text": f"Done with part {number}."}]
            said: Any = f"Go on with part {number + 1}, please."
            if dice.random() < 0.5:
                said = [{"type": "text", "text": said}]
            follow: dict[str, Any] | None = {"role": "user", "content": said}
        else:
            calls = [f"call_{seed}_{number}_{n}" for n in range(dice.choice((1, 1, 2)))]
            answer = [{"type": "text", "text": f"I read file {number}."}] + [
                {"type": "tool_use", "id": call, "name": "read_file", "input": {"path": f"{number}.txt"}}
                for call in calls
            ]
            size = 60_000 if number in large_at else dice.randrange(1_000, 6_000)
            results = [
                {"type": "tool_result", "tool_use_id": call, "content": _text(dice, size)} for call in reversed(calls)
            ]
            follow = {"role": "user", "content": results}
        talk.rounds.append(Round(answer, follow, 0))
    talk.rounds[-1].follow = None
    return talk


def _text(dice: random.Random, size: int) -> str:
    words = ("apple", "pear", "stock", "price", "ship", "order", "blue", "red")
    lines = (f"{dice.choice(words)} {dice.choice(words)} {dice.randrange(10_000)}" for _ in range(size // 14))
    return "\n".join(lines)


@dataclass
class Player:
    """Plays a talk through engines on one home, and records every body."""

    home: Path
    window: int
    name: str = "talk"
    wire: Any = None
    now: datetime = START
    bodies: list[str] = field(default_factory=list)
    breaks: list[list[str]] = field(default_factory=list)

    def open(self, **more: Any) -> Engine:
        given: dict[str, Any] = {"model": MODEL, "home": self.home, "window": self.window, **more}
        return Engine.open(self.name, clock=lambda: self.now, **given)

    async def play(self, talk: Talk, dice: random.Random | None = None) -> None:
        """Plays it in one process with whole histories, or with restarts and parts as the dice fall."""
        engine = self.open()
        history, sent = [talk.first], 0
        for number, one in enumerate(talk.rounds):
            self.now = START + timedelta(seconds=20 * number)
            if dice is not None and dice.random() < 0.4:
                if dice.random() < 0.5:
                    await engine.close()
                engine = self.open()
            whole = dice is None or dice.random() < 0.5
            given = history if whole else history[sent:]
            prefix: dict[str, Any] = {"system": SYSTEM, "tools": TOOLS} if whole or number == 0 else {}
            request = await engine.prepare(messages=given, max_tokens=1000, **prefix)
            if dice is not None and dice.random() < 0.2:  # the client failed; the same again
                request = await engine.prepare(messages=given, max_tokens=1000, **prefix)
            self.bodies.append(json.dumps(request.body))
            self.breaks.append([each.cause for each in request.breaks])
            if dice is not None and dice.random() < 0.2:
                engine = self.open()
            sent = len(history)
            tokens = len(self.bodies[-1]) // 4
            history.append({"role": "assistant", "content": one.answer})
            await engine.observe(
                {
                    "id": f"msg_{number}",
                    "type": "message",
                    "role": "assistant",
                    "model": "claude-sonnet-4-5",
                    "content": one.answer,
                    "stop_reason": "end_turn",
                    "usage": {"input_tokens": tokens, "output_tokens": 50},
                }
            )
            if one.follow is not None:
                history.append(one.follow)
            if dice is None or dice.random() < 0.5:
                sent += 1  # the answer was observed, so only what follows is new
        await engine.close()
