"""The layers under an agent of the OpenAI Agents SDK: the runs get three more arguments.

The simulator answers, so it needs no key and costs nothing. Run it with: python examples/13_openai_agents.py
"""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from openai import AsyncOpenAI

from agents import Agent, Runner, function_tool, set_default_openai_client, set_tracing_disabled
from reverie import Engine, Memory
from reverie.adapters.openai_agents import layers, read_tool
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


@function_tool
def read_next_log() -> str:
    """Reads the log of the next day."""
    lines = 9_000 if (day := next(DAYS)) % 15 == 0 else 90
    return f"day {day}: a ship with pears came in\n" * lines if day <= 40 else "There are no more logs."


async def main(home: Path) -> None:
    simulator = Simulator(ScriptResponder(Script.parse(SCRIPT)))
    memory = Memory.open(home / "memory", home=home, cwd=home)
    set_tracing_disabled(True)
    with running(simulator) as url:
        set_default_openai_client(AsyncOpenAI(base_url=url + "/v1", api_key="simulated"))
        for name, text in TEXTS.items():
            given = {"model": "openai:gpt-5.4", "wire": "responses", "window": 32_000, "home": home, "memory": memory}
            async with Engine.open(name, **given) as engine:
                agent = Agent(name="clerk", model="gpt-5.4", tools=[read_next_log, read_tool(engine)])
                done = await Runner.run(agent, text, max_turns=100, **layers(engine))  # the line that changes
                print(done.final_output)
    prompts, kept = [row.usage.prompt for row in simulator.ledger.rows], list(home.rglob("tool-results/*"))
    print(f"{len(prompts)} requests; the largest prompt had {max(prompts):,} tokens; {len(kept)} results are on disk")


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
