"""The OpenAI Agents SDK over the Responses API: a tool, a long result, structured output, and a session."""

from __future__ import annotations

import json
import os
from pathlib import Path

from openai import AsyncOpenAI
from pydantic import BaseModel

from agents import Agent, Runner, SQLiteSession, function_tool, set_default_openai_client, set_tracing_disabled


class Answer(BaseModel):
    port: int
    where: str


@function_tool
def read_log(name: str) -> str:
    """Reads a log."""
    return f"{name}\n" + "the server listens on port 8080\n" * 2_000


@function_tool
def edit_file(name: str, old: str, new: str) -> str:
    """Changes a file."""
    path = Path(name)
    path.write_text(path.read_text().replace(old, new) if path.exists() else new)
    return "done"


def main() -> None:
    set_tracing_disabled(True)
    set_default_openai_client(AsyncOpenAI(base_url=os.environ["SIMULATOR"] + "/v1", api_key="simulated", max_retries=0))
    agent = Agent(
        name="reader", instructions="Be short.", model="gpt-5", tools=[read_log, edit_file], output_type=Answer
    )
    session = SQLiteSession("one", "sessions.db")
    first = Runner.run_sync(agent, "Which port?", session=session)
    second = Runner.run_sync(agent, "And where was it?", session=session)
    answers = [first.final_output.model_dump(), second.final_output.model_dump()]
    print(json.dumps({"answers": answers, "cached": second.context_wrapper.usage.input_tokens_details.cached_tokens}))


main()
