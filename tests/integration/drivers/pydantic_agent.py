"""A pydantic-ai agent on each wire: a tool, a long result, structured output, and a second turn with the history."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pydantic import BaseModel
from pydantic_ai import Agent


class Answer(BaseModel):
    port: int
    where: str


def model() -> object:
    url = os.environ["SIMULATOR"]
    if sys.argv[1] == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        return AnthropicModel("claude-opus-5", provider=AnthropicProvider(api_key="simulated", base_url=url))
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    kind = OpenAIChatModel if sys.argv[1] == "chat" else OpenAIResponsesModel
    return kind("gpt-5", provider=OpenAIProvider(api_key="simulated", base_url=url + "/v1"))


def main() -> None:
    agent = Agent(model(), output_type=Answer)

    @agent.tool_plain
    def read_log(name: str) -> str:
        """Reads a log."""
        return f"{name}\n" + "the server listens on port 8080\n" * 2_000

    @agent.tool_plain
    def edit_file(name: str, old: str, new: str) -> str:
        """Changes a file."""
        path = Path(name)
        path.write_text(path.read_text().replace(old, new) if path.exists() else new)
        return "done"

    first = agent.run_sync("Which port?")
    second = agent.run_sync("And where was it?", message_history=first.all_messages())
    answers = [first.output.model_dump(), second.output.model_dump()]
    print(json.dumps({"answers": answers, "messages": len(second.all_messages())}))


main()
