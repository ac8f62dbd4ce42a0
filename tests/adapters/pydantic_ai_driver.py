"""An agent of pydantic-ai with the layers: answers the texts of a plan and prints what happened."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits

from reverie import Engine, Memory
from reverie.adapters.pydantic_ai import ReverieLayers
from tests.adapters.logs import ABOUT, read_log

FOLDER = Path(os.environ["STATE"])


async def main(plan: dict[str, Any]) -> None:
    name, url = plan.get("model", "openai:gpt-5.4"), os.environ["SIMULATOR"]
    model: Any
    if name.startswith("openai:"):
        model = OpenAIChatModel(name[7:], provider=OpenAIProvider(base_url=url + "/v1", api_key="simulated"))
    else:
        model = AnthropicModel(name[10:], provider=AnthropicProvider(base_url=url, api_key="simulated"))
    memory = Memory.open(FOLDER / "memory", home=FOLDER / "home", cwd=FOLDER)
    engines = list[Engine]()

    def open_engine(conversation: str) -> Engine:
        engines.append(Engine.open(conversation, model=name, wire="messages", window=plan["window"], memory=memory))
        return engines[-1]

    capability = ReverieLayers(open_engine)
    agent = Agent(model, system_prompt=ABOUT, tools=[read_log], capabilities=[capability])
    file, answers = FOLDER / f"{plan['conversation']}.history", list[str]()
    for text in plan["texts"]:
        history = ModelMessagesTypeAdapter.validate_json(file.read_bytes()) if file.exists() else []
        given: dict[str, Any] = {"message_history": history, "usage_limits": UsageLimits(request_limit=None)}
        given["conversation_id"] = plan["conversation"]
        if plan.get("stream"):
            async with agent.run_stream(text, **given) as streamed:
                answers.append([part async for part in streamed.stream_text()][-1])
            file.write_bytes(streamed.all_messages_json())
            continue
        async with agent.iter(None if plan.get("resumed") else text, **given) as run:
            async for _ in run:
                file.write_bytes(ModelMessagesTypeAdapter.dump_json(run.all_messages()))
        assert run.result is not None
        answers.append(run.result.output)
        file.write_bytes(run.result.all_messages_json())
    cost = dataclasses.asdict(await engines[0].cost())
    await capability.close()
    await memory.close()
    print(json.dumps({"answers": answers, "cost": cost, "history": len(file.read_bytes())}))


asyncio.run(main(json.loads(sys.argv[1])))
