"""What the adapter for the OpenAI Agents SDK does beside the requests of one agent: its session, agents as tools, and
filters of the program. Fails with an assertion."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path
from typing import Any

from agents.run import CallModelData, ModelInputData
from openai import AsyncOpenAI

from agents import Agent, RunConfig, Runner, set_default_openai_client, set_tracing_disabled
from reverie import Engine, UserError
from reverie.adapters.openai_agents import ReverieSession, layers, read_tool

HOME = Path(os.environ["STATE"], "home")
MODEL = "openai:gpt-5.4"


async def check_session() -> None:
    async with Engine.open("items", model=MODEL, wire="responses", home=HOME) as engine:
        session = ReverieSession(engine)
        assert await session.get_items() == [] and await session.pop_item() is None
        items = [{"role": "user", "content": f"text {number}\u2028"} for number in range(5)]
        await session.add_items(items[:3])
        await session.add_items(items[3:])
        assert await session.get_items() == items and await session.get_items(2) == items[3:]
        assert await session.get_items(0) == [] and await session.get_items(9) == items
        with (await engine.folder() / "items.jsonl").open("ab") as file:
            file.write(b'\n[{"role": "user", "con')  # a crash cut it off
        assert await session.pop_item() == items[4]
        again = ReverieSession(Engine.open("items", model=MODEL, wire="responses", home=HOME))
        assert await again.get_items() == items[:4]
        await session.clear_session()
        await again.add_items(items[:1])
        assert await session.get_items() == items[:1]


async def check_runs() -> None:
    """The simulator answers: call of a helper; its answer; call of the read tool; a text."""
    set_tracing_disabled(True)
    set_default_openai_client(AsyncOpenAI(base_url=os.environ["SIMULATOR"] + "/v1", api_key="simulated"))
    seen = list[Any]()

    def own_filter(data: CallModelData[Any]) -> ModelInputData:
        seen.append(data.agent.name)
        return data.model_data

    async with Engine.open("helpers", model=MODEL, wire="responses", home=HOME) as engine:
        helper = Agent(name="helper", instructions="You help.", model="gpt-5.4")
        tools = [helper.as_tool("ask_helper", "Asks the helper."), read_tool(engine)]
        agent = Agent(name="clerk", instructions="You are a clerk.", model="gpt-5.4", tools=tools)
        arguments = layers(engine, run_config=RunConfig(call_model_input_filter=own_filter))
        done = await Runner.run(agent, "Ask somebody.", **arguments)
        assert done.final_output == "Done." and seen == ["clerk", "helper", "clerk", "clerk"]
        assert (await engine.cost()).requests == 3, "the helper has a conversation of its own"
        assert "is not a kept result" in str(done.to_input_list())


def check_wrong_wire() -> None:
    try:
        layers(Engine.open("chat", model=MODEL, home=HOME))
    except UserError as error:
        assert str(error) == 'This adapter needs an engine that was opened with wire="responses", not "chat".'
    else:
        raise AssertionError


async def check_failures() -> None:
    """What fails is logged, and the run goes on: here a function of the program that hears of an edited history."""
    said = list[str]()
    log = logging.getLogger("reverie.adapters")
    log.propagate = False
    log.addHandler(handler := logging.Handler())
    handler.emit = lambda record: said.append(record.getMessage())

    def fail(event: object) -> None:
        raise RuntimeError(f"no {type(event).__name__}")

    async with Engine.open("failing", model=MODEL, wire="responses", home=HOME, on_event=fail) as engine:
        agent, arguments = Agent(name="clerk", model="gpt-5.4"), layers(engine)
        for text in ("Hello", "Something else"):
            await arguments["session"].clear_session()
            assert (await Runner.run(agent, text, **arguments)).final_output == "Done."
    assert said == ["This request is sent without layers: Reverie failed: RuntimeError: no Notice."]


async def main() -> None:
    check_wrong_wire()
    await check_session()
    await check_runs()
    await check_failures()


asyncio.run(main())
