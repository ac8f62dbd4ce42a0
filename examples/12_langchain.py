"""The layers under an agent of LangChain: a long task in a small window, and its fact in the next conversation.

The simulator answers, so it needs no key and costs nothing; it needs the package langchain-anthropic. Run it with:
python examples/12_langchain.py
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langgraph.checkpoint.memory import InMemorySaver

from reverie import Memory
from reverie.adapters.langchain import ReverieMiddleware
from reverie.models.script import Script
from reverie.simulator import ScriptResponder, Simulator
from reverie.simulator.http import running

SCRIPT = """
when /(?s)Which harbour.*Bremerhaven|Bremerhaven.*Which harbour/
  say It is Bremerhaven, as you told me.
end
when /day 40:/
  say All logs are in order.
end
repeat forever
  call read_next_log {}
end
"""
TEXTS = ("Check the logs. Remember that our home harbour is Bremerhaven.", "Which harbour is our home harbour?")
DAYS = count(1)


def read_next_log() -> str:
    """Reads the log of the next day."""
    day = next(DAYS)
    return f"day {day}: a ship with pears came in\n" * (9_000 if day % 15 == 0 else 90)


def main(home: Path) -> None:
    simulator = Simulator(ScriptResponder(Script.parse(SCRIPT)))
    memory = Memory.open(home / "memory", home=home, cwd=home)
    with running(simulator) as url:
        layers = ReverieMiddleware(memory=memory, home=home, window=24_000)
        model = ChatAnthropic(model="claude-sonnet-5-5", base_url=url, api_key="simulated")
        agent = create_agent(model, [read_next_log], middleware=[layers], checkpointer=InMemorySaver())
        for thread, text in enumerate(TEXTS):
            where = {"configurable": {"thread_id": str(thread)}, "recursion_limit": 200}
            messages = agent.invoke({"messages": [{"role": "user", "content": text}]}, where)["messages"]
            print(f"{text}\n  {len(messages)} messages; the last: {messages[-1].text}")
            layers.close()  # waits until the lessons are in memory
    prompts = [row.usage.prompt for row in simulator.ledger.rows]
    print(f"{len(prompts)} requests; the largest prompt had {max(prompts):,} tokens")
    print(len(list(home.rglob("tool-results/*"))), "large results are on disk")


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(Path(folder))
