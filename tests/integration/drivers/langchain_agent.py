"""A LangChain agent on each wire: a tool, a long result, structured output by a forced call, and a second turn."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel


class Answer(BaseModel):
    """The answer to the question."""

    port: int
    where: str


@tool
def read_log(name: str) -> str:
    """Reads a log."""
    return f"{name}\n" + "the server listens on port 8080\n" * 2_000


@tool
def edit_file(name: str, old: str, new: str) -> str:
    """Changes a file."""
    path = Path(name)
    path.write_text(path.read_text().replace(old, new) if path.exists() else new)
    return "done"


def model() -> object:
    if sys.argv[1] == "anthropic":
        from langchain_anthropic import ChatAnthropic

        return ChatAnthropic(model="claude-opus-5", base_url=os.environ["SIMULATOR"], api_key="simulated")
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model="gpt-5", base_url=os.environ["SIMULATOR"] + "/v1", api_key="simulated")


def main() -> None:
    agent = create_agent(
        model(), tools=[read_log, edit_file], response_format=ToolStrategy(Answer), checkpointer=InMemorySaver()
    )
    where = {"configurable": {"thread_id": "one"}}
    first = agent.invoke({"messages": [{"role": "user", "content": "Which port?"}]}, where)
    second = agent.invoke({"messages": [{"role": "user", "content": "And where was it?"}]}, where)
    plain = model().with_structured_output(Answer).invoke("And where was it?")
    kinds = [message.type for message in second["messages"]]
    answers = [first["structured_response"], second["structured_response"], plain]
    print(json.dumps({"answers": [answer.model_dump() for answer in answers], "kinds": kinds}))


main()
