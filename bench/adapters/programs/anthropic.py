"""The scripted agent as a plain loop over the Anthropic SDK; the program itself keeps the messages in a file."""

from __future__ import annotations

import json
from typing import Any

from anthropic import AsyncAnthropic

from bench.adapters.programs.program import (
    READ_HELP,
    READ_SCHEMA,
    REVERIE,
    SYSTEM,
    Options,
    answer_all,
    open_engine,
    options,
)
from reverie.adapters.anthropic import layers
from reverie.library.engine import Engine
from reverie.parsing import load_json

MOST_TOKENS = 4_096
TOOL: Any = {"name": "read_file", "description": READ_HELP, "input_schema": READ_SCHEMA}


class Loop:
    """One conversation. Reverie's middleware goes into the client, and changes nothing else."""

    def __init__(self, given: Options) -> None:
        self._given = given
        self._file = given.state / f"{given.conversation}.messages"
        self._messages: list[Any] = load_json(self._file.read_text("utf-8")) if self._file.exists() else []
        self._engine: Engine | None = open_engine(given, "messages") if given.variant == REVERIE else None
        added = [layers(self._engine)] if self._engine is not None else []
        self._client = AsyncAnthropic(base_url=given.url, api_key="simulated", max_retries=0, middleware=added)

    async def turn(self, text: str, resumed: bool) -> str:
        if not (resumed and self._messages):
            self._add({"role": "user", "content": text})
        while True:
            if self._messages[-1]["role"] == "assistant":
                calls = [block for block in self._messages[-1]["content"] if block["type"] == "tool_use"]
                if not calls:
                    if self._engine is not None:
                        await self._engine.settle()
                    return "".join(block.get("text", "") for block in self._messages[-1]["content"])
                self._add({"role": "user", "content": [self._run(call) for call in calls]})
            answer = await self._client.messages.create(
                model=self._given.model,
                max_tokens=MOST_TOKENS,
                system=SYSTEM,
                tools=[TOOL],
                messages=self._messages,
                cache_control={"type": "ephemeral"},
            )
            content = [block.model_dump(mode="json", exclude_none=True) for block in answer.content]
            self._add({"role": "assistant", "content": content})

    def _run(self, call: dict[str, Any]) -> dict[str, Any]:
        return {"type": "tool_result", "tool_use_id": call["id"], "content": self._given.read_file(**call["input"])}

    def _add(self, message: dict[str, Any]) -> None:
        self._messages.append(message)
        written = self._file.with_suffix(".new")
        written.write_text(json.dumps(self._messages), "utf-8")
        written.replace(self._file)

    async def close(self) -> None:
        if self._engine is not None:
            await self._engine.close()


if __name__ == "__main__":
    loop = Loop(options())
    answer_all(options(), loop.turn, loop.close)
