"""An agent of the OpenAI Agents SDK with the layers: answers the texts of a plan and prints what happened."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI

from agents import Agent, Runner, function_tool, set_default_openai_client, set_tracing_disabled
from reverie import Engine, Memory
from reverie.adapters.openai_agents import layers
from tests.adapters.logs import ABOUT, read_log

FOLDER = Path(os.environ["STATE"])


async def main(plan: dict[str, Any]) -> None:
    set_tracing_disabled(True)
    url = os.environ["SIMULATOR"] + "/v1"
    set_default_openai_client(AsyncOpenAI(base_url=url, api_key="simulated", max_retries=0))
    memory = Memory.open(FOLDER / "memory", home=FOLDER / "home", cwd=FOLDER)
    engine = Engine.open(
        plan["conversation"], model="openai:gpt-5.4", wire="responses", window=plan["window"], memory=memory
    )
    agent = Agent(name="clerk", instructions=ABOUT, model="gpt-5.4", tools=[function_tool(read_log)])
    arguments, answers = layers(engine), list[str]()
    for text in plan["texts"]:
        said: Any = text
        if plan.get("resumed"):
            while (await arguments["session"].get_items())[-1].get("type") == "function_call":
                await arguments["session"].pop_item()
            said = []
        if plan.get("stream"):
            streamed = Runner.run_streamed(agent, said, max_turns=500, **arguments)
            events = [event.type async for event in streamed.stream_events()]
            assert "raw_response_event" in events
            answers.append(streamed.final_output)
        else:
            answers.append((await Runner.run(agent, said, max_turns=500, **arguments)).final_output)
    cost = dataclasses.asdict(await engine.cost())
    await engine.close()
    await memory.close()
    print(json.dumps({"answers": answers, "cost": cost}))


asyncio.run(main(json.loads(sys.argv[1])))
