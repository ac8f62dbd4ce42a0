"""The layers under an agent of the OpenAI Agents SDK: the runs get three more arguments.

The simulator answers, so it needs no key and costs nothing. Run it with: python examples/13_openai_agents.py
"""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from openai import AsyncOpenAI

from agents import Agent, Runner, function_tool, set_default_openai_client, set_tracing_disabled
from reverie import Engine, Memory
from reverie.adapters.openai_agents import layers, read_tool
from reverie.models.script import Script
from reverie.simulator import Reply, ScriptResponder, Simulator
from reverie.simulator.http import running

FIRST, SECOND = "Read the logs. Remember that our home harbour is Bremerhaven.", "Which harbour is our home harbour?"
SCRIPT = "when /day 40:|Which harbour/\nsay Done.\nend\nrepeat forever\ncall read_next_log {}\nend"
DAYS = count(1)


@function_tool
def read_next_log() -> str:
    """Reads the log of the next day."""
    return f"day {(day := next(DAYS))}: a ship with pears came in\n" * (9_000 if day % 15 == 0 else 90)


class Mind(ScriptResponder):
    """Plays the script and keeps the last request."""

    async def reply(self, body: Any, *, purpose: str = "main") -> Reply:
        self.last = str(body)
        return await super().reply(body, purpose=purpose)


async def main(home: Path) -> None:
    simulator = Simulator(mind := Mind(Script.parse(SCRIPT)))
    memory = Memory.open(home / "memory", home=home, cwd=home)
    set_tracing_disabled(True)
    with running(simulator) as url:
        set_default_openai_client(AsyncOpenAI(base_url=url + "/v1", api_key="simulated"))
        for name, text in (("first", FIRST), ("second", SECOND)):
            given = {"model": "openai:gpt-5.4", "wire": "responses", "window": 32_000, "home": home, "memory": memory}
            async with Engine.open(name, **given) as engine:
                agent = Agent(name="clerk", model="gpt-5.4", tools=[read_next_log, read_tool(engine)])
                await Runner.run(agent, text, max_turns=100, **layers(engine))  # the line that changes
    prompts, kept = [row.usage.prompt for row in simulator.ledger.rows], list(home.rglob("tool-results/*"))
    print(f"{len(prompts)} requests, largest prompt {max(prompts):,} tokens, {len(kept)} results on disk")
    print("the second conversation knows the harbour:", "Bremerhaven" in mind.last)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
