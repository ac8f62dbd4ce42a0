"""The scripted agent in pydantic-ai over chat completions; the program keeps the history in a file, node by node."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits

from bench.adapters.programs.program import READ_HELP, REVERIE, SYSTEM, Options, answer_all, open_engine, options
from reverie.adapters.pydantic_ai import ReverieLayers
from reverie.library.engine import Engine


class Conversation:
    """One conversation, with its history in a file."""

    def __init__(self, given: Options) -> None:
        self._given = given
        self._file = given.state / f"{given.conversation}.history"
        self._engine: Engine | None = open_engine(given, "messages") if given.variant == REVERIE else None
        layers = [ReverieLayers(self._engine, read_tool=False)] if self._engine is not None else []
        provider = OpenAIProvider(base_url=given.openai_url, api_key="simulated")
        tool: Tool[Any] = Tool(given.read_file, name="read_file", description=READ_HELP)
        model = OpenAIChatModel(given.model, provider=provider)
        self._agent: Agent[Any, str] = Agent(model, instructions=SYSTEM, tools=[tool], capabilities=layers)

    async def turn(self, text: str, resumed: bool) -> str:
        history = ModelMessagesTypeAdapter.validate_json(self._file.read_bytes()) if self._file.exists() else []
        begun = resumed and bool(history)
        if begun and isinstance(history[-1], ModelResponse) and not history[-1].tool_calls:
            begun = False
        said = None if begun else text
        limits = UsageLimits(request_limit=None)
        async with self._agent.iter(said, message_history=history, usage_limits=limits) as run:
            async for _ in run:
                written = self._file.with_suffix(".new")
                written.write_bytes(ModelMessagesTypeAdapter.dump_json(run.all_messages()))
                written.replace(self._file)
        assert run.result is not None
        self._file.write_bytes(run.result.all_messages_json())
        return run.result.output

    async def close(self) -> None:
        if self._engine is not None:
            await self._engine.close()


if __name__ == "__main__":
    conversation = Conversation(options())
    answer_all(options(), conversation.turn, conversation.close)
