"""The layers under an agent of pydantic-ai: the agent gets one capability.

The simulator answers, so it needs no key and costs nothing. Run it with: python examples/14_pydantic_ai.py
"""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits

from reverie import Engine, Memory
from reverie.adapters.pydantic_ai import ReverieLayers
from reverie.models.script import Script
from reverie.simulator import Reply, ScriptResponder, Simulator
from reverie.simulator.http import running

FIRST, SECOND = "Read the logs. Remember that our home harbour is Bremerhaven.", "Which harbour is our home harbour?"
SCRIPT = "when /day 40:|Which harbour/\nsay Done.\nend\nrepeat forever\ncall read_next_log {}\nend"
DAYS = count(1)


def read_next_log() -> str:
    """Reads the log of the next day."""
    return f"day {(day := next(DAYS))}: a ship with pears came in\n" * (9_000 if day % 15 == 0 else 90)


class Mind(ScriptResponder):  # it keeps the last request
    async def reply(self, body: Any, *, purpose: str = "main") -> Reply:
        self.last = str(body)
        return await super().reply(body, purpose=purpose)


async def main(home: Path) -> None:
    simulator = Simulator(mind := Mind(Script.parse(SCRIPT)))
    memory = Memory.open(home / "memory", home=home, cwd=home)
    given = {"model": "openai:gpt-5.4", "wire": "messages", "window": 32_000, "home": home, "memory": memory}
    layers = ReverieLayers(lambda name: Engine.open(name, **given))
    with running(simulator) as url:
        model = OpenAIChatModel("gpt-5.4", provider=OpenAIProvider(base_url=url + "/v1", api_key="simulated"))
        agent = Agent(model, tools=[read_next_log], capabilities=[layers])  # the line that changes
        for name, text in (("first", FIRST), ("second", SECOND)):
            await agent.run(text, conversation_id=name, usage_limits=UsageLimits(request_limit=None))
            await layers.close()
    prompts, kept = [row.usage.prompt for row in simulator.ledger.rows], list(home.rglob("tool-results/*"))
    print(f"{len(prompts)} requests, largest prompt {max(prompts):,} tokens, {len(kept)} results on disk")
    print("the second conversation knows the harbour:", "Bremerhaven" in mind.last)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
