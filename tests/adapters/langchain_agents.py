"""Agents of LangChain over the simulator: a scripted mind, a tool with small and large results, and chat models."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import openai
import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, convert_to_messages, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from reverie.adapters.langchain import ReverieMiddleware
from reverie.simulator import Reply
from tests.integration.programs import installed

SYSTEM = "You look after a shop. " + "Read every file before you answer. " * 200
LARGE = 3
"""This file is large."""


class Mind:
    """Reads files 1, 2, 3 … with one or two calls per answer, and answers after every `steps` of them."""

    def __init__(
        self, steps: int = 6, answer: str = "All files are in order, and nothing is missing in the shop."
    ) -> None:
        self.steps = steps
        self.answer = answer
        self.count = 0
        self.bodies: list[str] = []

    async def reply(self, body: Mapping[str, Any], *, purpose: str = "main") -> Reply:
        self.bodies.append(json.dumps(body["messages"]))
        self.count += 1
        if self.count % self.steps == 0:
            return Reply([{"type": "text", "text": f"{self.answer} ({self.count})"}], "end_turn")
        calls = [
            {"type": "tool_use", "id": f"toolu_{self.count}_{n}", "name": "read_file", "input": {"number": self.count}}
            for n in range(1 + (self.count % 3 == 0))
        ]
        return Reply([{"type": "text", "text": f"I read file {self.count}."}, *calls], "tool_use")


class PlainChat(BaseChatModel):
    """A chat model that cannot show its request, as those of small packages."""

    model: str = "gpt-5"
    url: str

    @property
    def _llm_type(self) -> str:
        return "plain"

    def bind_tools(self, tools: Any, *, tool_choice: Any = None, **more: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **more)

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **more: Any
    ) -> ChatResult:
        client = openai.OpenAI(base_url=self.url, api_key="simulated", max_retries=0)
        given: Any = convert_to_openai_messages(messages)
        answer = client.chat.completions.create(model=self.model, messages=given, **more)
        (message,) = convert_to_messages([answer.choices[0].message.model_dump(exclude_none=True)])
        assert isinstance(message, AIMessage) and answer.usage is not None
        used, said = answer.usage.prompt_tokens, answer.usage.completion_tokens
        message.usage_metadata = {"input_tokens": used, "output_tokens": said, "total_tokens": used + said}
        return ChatResult(generations=[ChatGeneration(message=message)])


def chat_model(vendor: str, url: str, patch: pytest.MonkeyPatch) -> BaseChatModel:
    """A chat model of a package that `make integration` installs, or the plain one."""
    if vendor == "plain":
        return PlainChat(url=f"{url}/v1")
    place = installed("langchain", "lib/python*/site-packages/langchain_anthropic").parent
    patch.setattr(sys, "path", [*sys.path, str(place)])
    common: Any = {"api_key": "simulated", "max_retries": 0}
    if vendor == "messages":
        from langchain_anthropic import ChatAnthropic  # pyright: ignore

        return ChatAnthropic(model="claude-sonnet-5-5", base_url=url, **common)
    from langchain_openai import ChatOpenAI  # pyright: ignore

    common |= {"use_responses_api": vendor == "responses", "stream_usage": True}
    return ChatOpenAI(model="gpt-5", base_url=f"{url}/v1", **common)


class Files:
    """The tool. It fails once at the file `fails_at`, as a process that is killed."""

    def __init__(self, fails_at: int = 0) -> None:
        self.fails_at = fails_at

    def read_file(self, number: int) -> str:
        """Reads a file."""
        if number == self.fails_at:
            self.fails_at = 0
            raise KeyboardInterrupt
        lines = 4_000 if number == LARGE else 120
        return "".join(f"file {number}, line {line}: apples, pears and plums\n" for line in range(lines))

    @property
    def tool(self) -> BaseTool:
        return StructuredTool.from_function(self.read_file)


def make_agent(model: BaseChatModel, middleware: ReverieMiddleware, saver: Any, files: Files | None = None) -> Any:
    tools = [(files or Files()).tool]
    return create_agent(model, tools, system_prompt=SYSTEM, middleware=[middleware], checkpointer=saver)


def thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}, "recursion_limit": 300}


def asked(text: str) -> Any:
    return {"messages": [{"role": "user", "content": text}]}


def open_layers(home: Path, **more: Any) -> ReverieMiddleware:
    return ReverieMiddleware(**{"home": home, "window": 24_000, **more})
