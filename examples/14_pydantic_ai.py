"""The layers under an agent of pydantic-ai: the agent gets one capability.

The simulator answers, so it needs no key and costs nothing. Run it with: python examples/14_pydantic_ai.py
"""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits

from reverie import Engine, Memory
from reverie.adapters.pydantic_ai import ReverieLayers
from reverie.models.script import Script
from reverie.simulator import ScriptResponder, Simulator
from reverie.simulator.http import running

SCRIPT = """
when /> .*full euros/
  say As you told me: in full euros.
end
when /no more logs/
  say All logs are read.
end
repeat forever
  call read_next_log {}
end
"""
TEXTS = {
    "first": "Read the logs. Remember: I want the prices of pears in full euros.",
    "second": "What are the prices of pears?",
}
DAYS = count(1)


def read_next_log() -> str:
    """Reads the log of the next day."""
    lines = 9_000 if (day := next(DAYS)) % 15 == 0 else 90
    return f"day {day}: a ship with pears came in\n" * lines if day <= 40 else "There are no more logs."


async def main(home: Path) -> None:
    simulator = Simulator(ScriptResponder(Script.parse(SCRIPT)))
    memory = Memory.open(home / "memory", home=home, cwd=home)
    given = {"model": "openai:gpt-5.4", "wire": "messages", "window": 32_000, "home": home, "memory": memory}
    layers = ReverieLayers(lambda name: Engine.open(name, **given))
    with running(simulator) as url:
        model = OpenAIChatModel("gpt-5.4", provider=OpenAIProvider(base_url=url + "/v1", api_key="simulated"))
        agent = Agent(model, tools=[read_next_log], capabilities=[layers])  # the line that changes
        for name, text in TEXTS.items():
            limits = UsageLimits(request_limit=None)
            print((await agent.run(text, conversation_id=name, usage_limits=limits)).output)
            await layers.close()
    prompts, kept = [row.usage.prompt for row in simulator.ledger.rows], list(home.rglob("tool-results/*"))
    print(f"{len(prompts)} requests; the largest prompt had {max(prompts):,} tokens; {len(kept)} results are on disk")


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
