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


def chat_items(message: dict[str, Any]) -> list[dict[str, Any]]:
    """One message of a talk as items of chat completions."""
    text, calls, results = _parts(message)
    if message["role"] == "user" and not results:
        return [{"role": "user", "content": message["content"]}]
    if results:
        return [{"role": "tool", "tool_call_id": one["tool_use_id"], "content": one["content"]} for one in results]
    made: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if calls:
        made["tool_calls"] = [
            {"id": one["id"], "type": "function", "function": {"name": one["name"], "arguments": _json(one["input"])}}
            for one in calls
        ]
    return [made]


def responses_items(message: dict[str, Any]) -> list[dict[str, Any]]:
    """One message of a talk as items of responses."""
    text, calls, results = _parts(message)
    if message["role"] == "user" and not results:
        return [{"role": "user", "content": text}]
    if results:
        return [
            {"type": "function_call_output", "call_id": one["tool_use_id"], "output": one["content"]} for one in results
        ]
    thought = {"type": "reasoning", "id": f"rs_{len(text)}", "summary": [], "encrypted_content": "gAAA"}
    said = {"type": "message", "id": f"msg_{len(text)}", "role": "assistant", "status": "completed"}
    said["content"] = [{"type": "output_text", "text": text, "annotations": []}]
    return [
        thought,
        said,
        *(
            {"type": "function_call", "id": f"fc_{one['id']}", "call_id": one["id"], "name": one["name"]}
            | {"arguments": _json(one["input"]), "status": "completed"}
            for one in calls
        ),
    ]


def _parts(message: dict[str, Any]) -> tuple[str, list[dict[str, Any]], list[dict[str, Any]]]:
    content = message["content"]
    blocks: list[dict[str, Any]] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    text = "".join(one["text"] for one in blocks if one["type"] == "text")
    kinds = ("tool_use", "tool_result")
    calls, results = ([one for one in blocks if one["type"] == kind] for kind in kinds)
    return text, calls, results


def _json(given: Any) -> str:
    return json.dumps(given)


def _messages_answer(items: list[dict[str, Any]], number: int, tokens: int) -> dict[str, Any]:
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": items[0]["content"],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": tokens, "output_tokens": 50},
    }


def _chat_answer(items: list[dict[str, Any]], number: int, tokens: int) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": items[0]}
    usage = {"prompt_tokens": tokens, "completion_tokens": 50, "total_tokens": tokens + 50}
    return {"id": f"chatcmpl-{number}", "object": "chat.completion", "model": "gpt-5.5"} | {
        "choices": [choice],
        "usage": usage,
    }


def _responses_answer(items: list[dict[str, Any]], number: int, tokens: int) -> dict[str, Any]:
    usage = {"input_tokens": tokens, "output_tokens": 50, "total_tokens": tokens + 50}
    return {"id": f"resp_{number}", "object": "response", "model": "gpt-5.5", "status": "completed"} | {
        "output": items,
        "usage": usage,
    }


WIRES: dict[str, tuple[str, Any, Any]] = {
    "messages": (MODEL, lambda message: [message], _messages_answer),
    "chat": ("openai:gpt-5.5", chat_items, _chat_answer),
    "responses": ("openai:gpt-5.5", responses_items, _responses_answer),
}


def tools_for(wire: str) -> list[dict[str, Any]]:
    if wire == "messages":
        return TOOLS
    told = {"name": "read_file", "description": "Reads a file.", "parameters": TOOLS[0]["input_schema"]}
    return [{"type": "function", "function": told} if wire == "chat" else {"type": "function", **told}]


@dataclass
class Player:
    """Plays a talk through engines on one home, and records every body."""

    home: Path
    window: int
    name: str = "talk"
    wire: str = "messages"
    now: datetime = START
    bodies: list[str] = field(default_factory=list)
    breaks: list[list[str]] = field(default_factory=list)

    def open(self, **more: Any) -> Engine:
        model = WIRES[self.wire][0]
        given: dict[str, Any] = {"model": model, "home": self.home, "window": self.window, "wire": self.wire, **more}
        return Engine.open(self.name, clock=lambda: self.now, **given)

    async def play(self, talk: Talk, dice: random.Random | None = None) -> None:
        """Plays it in one process with whole histories, or with restarts and parts as the dice fall."""
        _, items, respond = WIRES[self.wire]
        engine = self.open()
        history, sent = items(talk.first), 0
        for number, one in enumerate(talk.rounds):
            self.now = START + timedelta(seconds=20 * number)
            if dice is not None and dice.random() < 0.4:
                if dice.random() < 0.5:
                    await engine.close()
                engine = self.open()
            whole = dice is None or dice.random() < 0.5
            given = history if whole else history[sent:]
            prefix: dict[str, Any] = self._prefix(given) if whole or number == 0 else {"messages": given}
            request = await engine.prepare(max_tokens=1000, **prefix)
            if dice is not None and dice.random() < 0.2:  # the client failed; the same again
                request = await engine.prepare(max_tokens=1000, **prefix)
            self.bodies.append(json.dumps(request.body))
            self.breaks.append([each.cause for each in request.breaks])
            if dice is not None and dice.random() < 0.2:
                engine = self.open()
            sent = len(history)
            answered = items({"role": "assistant", "content": one.answer})
            await engine.observe(respond(answered, number, len(self.bodies[-1]) // 4))
            history = history + answered
            if dice is None or dice.random() < 0.5:
                sent = len(history)  # the answer was observed, so only what follows is new
            history = history + (items(one.follow) if one.follow is not None else [])
        await engine.close()

    def _prefix(self, given: list[dict[str, Any]]) -> dict[str, Any]:
        tools = tools_for(self.wire)
        if self.wire == "chat":
            return {"tools": tools, "messages": [{"role": "system", "content": SYSTEM}, *given]}
        return {"system": SYSTEM, "tools": tools, "messages": given}
