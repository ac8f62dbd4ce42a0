"""A client without a file tool, on all three APIs, and a model that follows a list of moves and reads copies back."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from reverie.proxy.answers import Listener
from reverie.simulator import Clock, Simulator
from reverie.simulator.http import running as simulated
from reverie.simulator.responder import Reply
from tests.proxy.proxied import Tee, post

PATHS = {"messages": "/v1/messages", "chat": "/v1/chat/completions", "responses": "/v1/responses"}
OURS = "read_kept_result"
NEEDLE = "the port is 4711"
LONG = "".join(f"{number} a line of the log\n" for number in range(2_500)) + NEEDLE
SYSTEM = "You are an agent that looks things up. " * 50
LONG_SYSTEM = SYSTEM * 22
"""Our tool is less than 1% of it."""


def say(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def call(name: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "name": name, "input": given}


READ = call(OURS)
"""Reads the end of the newest copy."""


class Mind:
    """The model: its n-th answer in a conversation is the n-th move. It reads the newest id that it was shown."""

    def __init__(self, *moves: Sequence[dict[str, Any]], otherwise: dict[str, Any] | None = None) -> None:
        self.moves = moves
        self.otherwise = [otherwise or {"type": "text", "text": "That is all."}]
        """What it answers after its last move."""
        self.results: list[str] = []
        """What our tool returned."""

    async def reply(self, body: Mapping[str, Any], *, purpose: str = "main") -> Reply:
        messages = body["messages"]
        number = sum(one["role"] == "assistant" for one in messages)
        moves = self.moves[number] if number < len(self.moves) else self.otherwise
        blocks = [self._block(block, number, at, body) for at, block in enumerate(moves)]
        said = [[] if isinstance(one["content"], str) else one["content"] for one in messages]
        names = {one["id"]: one["name"] for content in said for one in content if one["type"] == "tool_use"}
        for one in said[-1]:
            if one["type"] == "tool_result" and names[one["tool_use_id"]].startswith(OURS):
                self.results.append(one["content"])
        return Reply(blocks, "tool_use" if any(one["type"] == "tool_use" for one in blocks) else "end_turn")

    def _block(self, block: dict[str, Any], number: int, at: int, body: Mapping[str, Any]) -> dict[str, Any]:
        if block["type"] != "tool_use":
            return block
        made = {**block, "id": f"toolu_long_{number:04}_{at}"}
        if block["name"] == OURS:
            ids = re.findall(r"\btoolu_\w+\.(?:txt|json)\b", json.dumps(body["messages"]))
            tool = next(one["name"] for one in reversed(body["tools"]) if one["name"].startswith(OURS))
            made |= {"name": tool, "input": {"id": ids[-1] if ids else "/etc/passwd", "offset": 45_000}}
            made["input"] |= block["input"]
        return made


@contextmanager
def thinking_upstream(mind: Mind) -> Generator[tuple[Simulator, Tee]]:
    """The simulator with this model, and every body that reached it."""
    simulator = Simulator(mind, clock=Clock.running())
    with simulated(simulator) as url, Tee(url).running() as tee:
        yield simulator, tee


@dataclass
class Client:
    """Keeps its whole history, and has tools of its own. `ask` returns the answer as the client sees it."""

    api: str
    url: str = ""
    streams: bool = False
    tools: tuple[str, ...] = ("look_up", "open_ticket")
    system: str = SYSTEM
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    history: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    status: int = 0
    raw: bytes = b""

    def body(self) -> dict[str, Any]:
        items = json.loads(json.dumps(self.history))
        about = {"description": "Looks something up.", "parameters": {"type": "object"}}
        made: dict[str, Any] = {"stream": self.streams, **self.extra}
        if self.api == "messages":
            content = items[-1]["content"]
            content[-1]["cache_control"] = {"type": "ephemeral"}
            system = [{"type": "text", "text": self.system, "cache_control": {"type": "ephemeral"}}]
            tools = [{"name": name, "description": "x", "input_schema": {"type": "object"}} for name in self.tools]
            sonnet = {"model": "claude-sonnet-4-5", "max_tokens": 4_000}
            return {**sonnet, "system": system, "tools": tools, "messages": items, **made}
        if self.api == "chat":
            tools = [{"type": "function", "function": {"name": name, **about}} for name in self.tools]
            options = {"stream_options": {"include_usage": True}} if self.streams else {}
            items = [{"role": "system", "content": self.system}, *items]
            return {"model": "gpt-5", "tools": tools, "messages": items, **options, **made}
        tools = [{"type": "function", "name": name, **about} for name in self.tools]
        return {"model": "gpt-5", "instructions": self.system, "tools": tools, "input": items, "store": False, **made}

    def says(self, text: str) -> dict[str, Any]:
        """A message of the user, and its answer."""
        content: Any = [{"type": "text", "text": text}] if self.api == "messages" else text
        self.history.append({"role": "user", "content": content})
        return self.ask()

    def ask(self) -> dict[str, Any]:
        self.status, self.raw = post(self.url, PATHS[self.api], self.body(), authorization="Bearer x", **self.headers)
        assert self.status == 200, self.raw[:500]
        listener = Listener(self.api, streams=self.streams)  # type: ignore[arg-type]
        listener.take(self.raw)
        answer = listener.message()
        assert answer is not None, self.raw[:2_000]
        if self.api == "messages":
            self.history.append({"role": "assistant", "content": answer["content"]})
        elif self.api == "chat":
            self.history.append(answer["choices"][0]["message"])
        else:
            self.history += [{k: v for k, v in one.items() if k not in ("id", "status")} for one in answer["output"]]
        return answer

    def calls(self, answer: dict[str, Any]) -> list[tuple[str, str]]:
        """The id and name of each call that the client sees."""
        if self.api == "messages":
            return [(one["id"], one["name"]) for one in answer["content"] if one["type"] == "tool_use"]
        if self.api == "chat":
            calls = answer["choices"][0]["message"].get("tool_calls") or []
            return [(one["id"], one["function"]["name"]) for one in calls]
        return [(one["call_id"], one["name"]) for one in answer["output"] if one["type"] == "function_call"]

    def text(self, answer: dict[str, Any]) -> str:
        if self.api == "messages":
            return "".join(one["text"] for one in answer["content"] if one["type"] == "text")
        if self.api == "chat":
            return answer["choices"][0]["message"]["content"] or ""
        return "".join(part["text"] for one in answer["output"] if one["type"] == "message" for part in one["content"])

    def tell(self, answer: dict[str, Any], *results: str) -> dict[str, Any]:
        """Gives the results of the calls, and gets the next answer."""
        calls = self.calls(answer)
        assert len(calls) == len(results), calls
        told = [(name, text) for (name, _), text in zip(calls, results, strict=True)]
        if self.api == "messages":
            blocks = [{"type": "tool_result", "tool_use_id": name, "content": text} for name, text in told]
            self.history.append({"role": "user", "content": blocks})
        elif self.api == "chat":
            self.history += [{"role": "tool", "tool_call_id": name, "content": text} for name, text in told]
        else:
            self.history += [{"type": "function_call_output", "call_id": name, "output": text} for name, text in told]
        return self.ask()


def sent(tee: Tee, prompt: str = "") -> list[dict[str, Any]]:
    """The bodies with this prompt that reached the server, without cache markers."""
    return [_plain(json.loads(body)) for _, body in tee.bodies if f'"{prompt}' in body.decode()]


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items() if key != "cache_control"}
    return value


def assert_one_prefix(bodies: Sequence[dict[str, Any]], key: str, *, adds: bool = True) -> None:
    """Each request has the same tools and system prompt as the one before, and goes on where that ended. `adds`: all
    but the first have our tool."""
    for number, (before, after) in enumerate(itertools.pairwise(bodies)):
        assert before["tools"] == (after["tools"][:-1] if adds and number == 0 else after["tools"])
        assert before.get("system") == after.get("system") and before.get("instructions") == after.get("instructions")
        for one, two in zip(before[key], after[key], strict=False):
            assert one == two
        assert len(before[key]) < len(after[key])
