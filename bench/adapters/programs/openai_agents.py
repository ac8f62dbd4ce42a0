"""The scripted agent in the OpenAI Agents SDK: `Runner` over the Responses API, with a session in SQLite.

The peer is the SDK's own session that asks the server to compact.
"""

from __future__ import annotations

from typing import Any

from openai import AsyncOpenAI

from agents import (
    Agent,
    FunctionTool,
    OpenAIResponsesCompactionSession,
    Runner,
    SQLiteSession,
    function_tool,
    set_default_openai_client,
    set_tracing_disabled,
)
from bench.adapters.programs.program import READ_HELP, REVERIE, SYSTEM, Options, answer_all, open_engine, options
from reverie.adapters.openai_agents import layers
from reverie.library.engine import Engine

COMPACTION = "compaction"
MOST_TURNS = 1_000


class Conversation:
    """One conversation: a session of the SDK."""

    def __init__(self, given: Options) -> None:
        self._given = given
        self._client = AsyncOpenAI(base_url=given.openai_url, api_key="simulated", max_retries=0)
        set_tracing_disabled(True)
        set_default_openai_client(self._client)
        self._session: Any = SQLiteSession(given.conversation, given.state / "sessions.db")
        self._engine: Engine | None = None
        self._more: dict[str, Any] = {}
        if given.variant == REVERIE:
            self._engine = open_engine(given, "responses")
            self._more = {**layers(self._engine)}
            self._session = self._more.pop("session")
        if given.variant == COMPACTION:
            self._session = OpenAIResponsesCompactionSession(
                given.conversation, self._session, client=self._client, model=given.model
            )
        self._agent: Agent[Any] = Agent(name="clerk", instructions=SYSTEM, model=given.model, tools=[self._tool()])

    def _tool(self) -> FunctionTool:
        def read_file(path: str, find: str = "") -> str:
            return self._given.read_file(path, find)

        return function_tool(read_file, description_override=READ_HELP)

    async def turn(self, text: str, resumed: bool) -> str:
        said: Any = [] if resumed and await self._is_begun(text) else text
        done = await Runner.run(self._agent, said, session=self._session, max_turns=MOST_TURNS, **self._more)
        return str(done.final_output)

    async def close(self) -> None:
        if self._engine is not None:
            await self._engine.close()

    async def _is_begun(self, text: str) -> bool:
        """The session has this text; calls at its end that have no result are taken off."""
        items: list[Any] = await self._session.get_items()
        while items and items[-1].get("type") == "function_call":
            await self._session.pop_item()
            items.pop()
        return any(item.get("role") == "user" and item.get("content") == text for item in items)


if __name__ == "__main__":
    conversation = Conversation(options())
    answer_all(options(), conversation.turn, conversation.close)
