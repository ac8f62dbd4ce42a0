"""The layers under an agent of LangChain: a long task in a small window, and its fact in the next conversation.

The simulator answers: no key, no cost. With langchain-anthropic installed: python examples/12_langchain.py
"""

from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langgraph.checkpoint.memory import InMemorySaver

from reverie import Memory
from reverie.adapters.langchain import ReverieMiddleware
from reverie.models.script import Script
from reverie.simulator import Reply, ScriptResponder, Simulator
from reverie.simulator.http import running

FIRST = "Check the logs. Remember that our home harbour is Bremerhaven."
SECOND = "Which harbour is our home harbour?"
SCRIPT = "when /day 40:|Which harbour/\nsay Done.\nend\nrepeat forever\ncall read_next_log {}\nend"
DAYS = count(1)


def read_next_log() -> str:
    """Reads the log of the next day."""
    day = next(DAYS)
    return f"day {day}: a ship with pears came in\n" * (9_000 if day % 15 == 0 else 90)


class Mind(ScriptResponder):
    """Plays the script and keeps the last request."""

    async def reply(self, body: Any, *, purpose: str = "main") -> Reply:
        self.last = str(body)
        return await super().reply(body, purpose=purpose)


def main(home: Path) -> None:
    mind = Mind(Script.parse(SCRIPT))
    simulator = Simulator(mind)
    with running(simulator) as url:
        layers = ReverieMiddleware(memory=Memory.open(home / "memory", home=home, cwd=home), home=home, window=24_000)
        model = ChatAnthropic(model="claude-sonnet-5-5", base_url=url, api_key="simulated")
        agent = create_agent(model, [read_next_log], middleware=[layers], checkpointer=InMemorySaver())
        for text in (FIRST, SECOND):
            agent.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": text}, "recursion_limit": 200})
            layers.close()  # waits until the lessons are in memory
    prompts = [row.usage.prompt for row in simulator.ledger.rows]
    print(f"{len(prompts)} requests; the largest prompt had {max(prompts):,} tokens")
    print(f"{len(list(home.rglob('tool-results/*')))} results are on disk")
    print(f"the last prompt had the memory: {'> Our home harbour is Bremerhaven.' in mind.last}")


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(Path(folder))
