"""The scripted agent in LangChain: `create_agent`, with a checkpoint per step in SQLite.

The peers are LangChain's own middlewares, with thresholds for the window that they get.
"""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware, SummarizationMiddleware
from langchain_anthropic import ChatAnthropic
from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from pydantic import SecretStr

from bench.adapters.programs.program import READ_HELP, REVERIE, SYSTEM, Options, answer_all, options
from reverie.adapters.langchain import ReverieMiddleware
from reverie.library.memory import Memory

SHARE = 0.75
"""The part of the window at which the peers act."""
SUMMARIZATION, EDITING, BOTH = "summarization", "editing", "both"


def middleware(given: Options, model: ChatAnthropic) -> list[Any]:
    """What keeps the context small, and LangChain's cache markers behind it."""
    trigger = int(given.window * SHARE)
    found: list[Any] = []
    if given.variant in (EDITING, BOTH):
        found.append(ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=trigger)]))
    if given.variant in (SUMMARIZATION, BOTH):
        found.append(SummarizationMiddleware(model, trigger=("tokens", trigger)))
    return [*found, AnthropicPromptCachingMiddleware()]


class Agent:
    """One conversation: a thread of a checkpointer."""

    def __init__(self, given: Options) -> None:
        self._given = given
        self._layers: ReverieMiddleware | None = None
        if given.variant == REVERIE:  # it sets the markers itself
            memory = Memory.open(given.home / "memory", home=given.home)
            self._layers = ReverieMiddleware(memory=memory, window=given.window, home=given.home, read_tool=False)
        told: dict[str, Any] = {"model": given.model, "max_tokens": 4_096, "max_retries": 0}
        self._model = ChatAnthropic(base_url=given.url, api_key=SecretStr("simulated"), **told)

    async def turn(self, text: str, resumed: bool) -> str:
        given = self._given
        tool = StructuredTool.from_function(given.read_file, name="read_file", description=READ_HELP)
        async with AsyncSqliteSaver.from_conn_string(str(given.state / "checkpoints.db")) as saver:
            agent: Any = create_agent(
                self._model,
                tools=[tool],
                system_prompt=SYSTEM,
                middleware=[self._layers] if self._layers is not None else middleware(given, self._model),
                checkpointer=saver,
            )
            where: Any = {"configurable": {"thread_id": given.conversation}}
            # `next` is empty if the last task has its result but the step after it was not begun; `tasks` is not.
            waiting = bool((await agent.aget_state(where)).tasks)
            said: Any = None if resumed and waiting else {"messages": [{"role": "user", "content": text}]}
            state = await agent.ainvoke(said, where, durability="sync")
            return str(state["messages"][-1].text)

    async def close(self) -> None:
        if self._layers is not None:
            await self._layers.aclose()


if __name__ == "__main__":
    agent = Agent(options())
    answer_all(options(), agent.turn, agent.close)
