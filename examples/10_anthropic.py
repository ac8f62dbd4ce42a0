"""The layers under an agent of the Anthropic SDK: one line of the program changes.

The simulator answers, so it needs no key and costs nothing. Run it with: python examples/10_anthropic.py
"""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from anthropic import Anthropic, beta_tool

from reverie import Engine, Memory
from reverie.adapters.anthropic import ReverieMemoryTool, layers
from reverie.models.script import Script
from reverie.simulator import ScriptResponder, Simulator
from reverie.simulator.http import running

REQUEST: Any = {"model": "claude-sonnet-5-5", "max_tokens": 1_000, "max_iterations": 50}
QUESTION: Any = {"role": "user", "content": "Check the logs. I want prices in euros, without cents."}
SCRIPT = """
call memory {"command": "create", "path": "/memories/prices.md", "file_text": "Prices are in euros, without cents."}
---
repeat forever
  call read_next_log {}
end
"""
DAYS = count(1)


@beta_tool
def read_next_log() -> str:
    """Reads the log of the next day."""
    day = next(DAYS)
    return f"day {day}: a ship with pears came in\n" * (9_000 if day % 15 == 0 else 90)


def main(home: Path) -> None:
    simulator = Simulator(ScriptResponder(Script.parse(SCRIPT)))
    memory = Memory.open(home / "memory", home=home, cwd=home)
    engine = Engine.open("harbour", model="anthropic:claude-sonnet-5-5", window=32_000, home=home, memory=memory)
    with running(simulator) as url:
        middleware = layers(engine)
        client = Anthropic(base_url=url, api_key="simulated", middleware=[middleware])  # the line that changes
        tools = [read_next_log, ReverieMemoryTool(memory, engine)]
        client.beta.messages.tool_runner(tools=tools, messages=[QUESTION], **REQUEST).until_done()
        middleware.close()
    prompts = [row.usage.prompt for row in simulator.ledger.rows]
    print(f"{len(prompts)} requests; the largest prompt had {max(prompts):,} tokens")
    print(len(list(home.rglob("tool-results/*"))), "results are on disk: large ones, and old ones that were cleared")
    print("memory:", [(one.name, one.trust) for one in asyncio.run(memory.list())])


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(Path(folder))
