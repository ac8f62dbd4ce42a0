"""The OpenAI Agents SDK: `Runner.run(agent, text, **layers(engine))` puts the layers under a conversation.

The engine has the wire "responses", whatever model is called: the SDK itself converts its items for others. The session
keeps the items as they were; what the model is sent comes from the engine. Failures of ours are logged, and the request
is sent as it was; only `BlockingLimit` reaches the program.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, cast

from reverie.adapters.faults import check_wire, logged
from reverie.errors import MissingExtra, ReverieError
from reverie.library.engine import Engine
from reverie.parsing import RECORD_DEPTH, Unparsable, load_json
from reverie.paths.installed import pip_install
from reverie.plugins import guarded
from reverie.regular_files import open_regular, read_regular
from reverie.storage.atomic import storage_error
from reverie.types import JsonObject

try:
    from agents.items import ModelResponse
    from agents.memory import Session, SessionSettings
    from agents.run import CallModelData, ModelInputData

    from agents import FunctionTool, RunConfig, RunHooks
except ImportError as error:
    raise MissingExtra(
        f"This needs the OpenAI Agents SDK 0.24 or newer; install it with: {pip_install('openai-agents')}"
    ) from error

__all__ = ["ReverieHooks", "ReverieSession", "RunArguments", "layers", "read_tool"]

_LARGEST = 1 << 30
"""The most bytes of a session."""


class RunArguments(TypedDict):
    """Arguments of `Runner.run`, `Runner.run_sync` and `Runner.run_streamed`."""

    session: Session
    run_config: RunConfig
    hooks: RunHooks[Any]


def layers(engine: Engine, *, session: Session | None = None, run_config: RunConfig | None = None) -> RunArguments:
    """Returns the arguments that put the layers under a run: `Runner.run(agent, text, **layers(engine))`.

    Give the runs of one conversation one engine, and close it at the end. `session` is any session of the SDK; without
    one, a `ReverieSession`. `run_config` is your own; its input filter runs before the layers.
    """
    hooks = ReverieHooks(engine)
    config = hooks.configure(run_config or RunConfig())
    return {"session": session or ReverieSession(engine), "run_config": config, "hooks": hooks}


def read_tool(engine: Engine) -> FunctionTool:
    """Returns a tool that reads large results back, for agents without a file tool."""

    async def read(_context: object, given: str) -> str:
        try:
            with guarded("Reverie"):
                return await engine.read(**load_json(given))
        except ReverieError as error:
            return str(error)

    about = engine.read_tool
    return FunctionTool(
        about["name"], about["description"], about["parameters"], on_invoke_tool=read, strict_json_schema=False
    )


class ReverieHooks(RunHooks[Any]):
    """The layers around the model calls of one conversation. For hooks of your own, inherit and call `super()`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = check_wire(engine, "responses")
        self._agent: object = None
        """The agent of the run; an agent that is called as a tool has a conversation of its own."""
        self._is_sent = False

    def configure(self, config: RunConfig) -> RunConfig:
        """Returns the configuration with the layers as its input filter, after the filter that it has."""
        before = config.call_model_input_filter

        async def prepare(data: CallModelData[Any]) -> ModelInputData:
            if before is not None:
                made = before(data)
                data = replace(data, model_data=await made if inspect.isawaitable(made) else made)
            return await self._prepare(data)

        return replace(config, call_model_input_filter=prepare)

    async def _prepare(self, data: CallModelData[Any]) -> ModelInputData:
        given, agent = data.model_data, data.agent
        if self._agent is not None and agent is not self._agent:
            return given
        self._is_sent = False
        with logged("This request is sent without layers"):
            request = await self._engine.prepare(
                system=given.instructions or "",
                messages=cast("list[JsonObject]", given.input),
                tools=[_describe(tool) for tool in agent.tools if isinstance(tool, FunctionTool)],
                whole=True,
                store=agent.model_settings.store,
            )
            self._is_sent = True
            return ModelInputData(input=request.body["input"], instructions=given.instructions)
        return given

    async def on_agent_start(self, context: Any, agent: Any) -> None:
        self._agent = agent

    async def on_llm_end(self, context: Any, agent: Any, response: ModelResponse) -> None:
        if not self._is_sent:
            return
        with logged("A response was not recorded"):
            used = response.usage
            usage = {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens}
            details = {"cached_tokens": used.input_tokens_details.cached_tokens}
            await self._engine.observe(
                {
                    "id": response.response_id,
                    "output": response.to_input_items(),
                    "usage": {**usage, "input_tokens_details": details},
                }
            )

    async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
        if agent is self._agent:
            with logged("The end of a turn was not recorded"):
                await self._engine.end_turn()


class ReverieSession:
    """A session of the SDK in the folder of the conversation, beside its transcript: a list of what was added and taken
    back, one line per call. A line that a crash cut off is left out."""

    session_settings: SessionSettings | None = None

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.session_id = engine.conversation_id

    async def get_items(self, limit: int | None = None) -> list[Any]:
        items = list[Any]()
        for line in await self._lines():
            items = items[:-1] if line == "pop" else [] if line == "clear" else [*items, *line]
        return items if limit is None else items[max(0, len(items) - limit) :]

    async def add_items(self, items: Iterable[Any]) -> None:
        if added := list(items):
            await self._append(added)

    async def pop_item(self) -> Any | None:
        items = await self.get_items()
        if not items:
            return None
        await self._append("pop")
        return items[-1]

    async def clear_session(self) -> None:
        await self._append("clear")

    async def _path(self) -> Path:
        return await self._engine.folder() / "items.jsonl"

    async def _lines(self) -> list[Any]:
        path, lines = await self._path(), list[Any]()
        for line in read_regular(path, _LARGEST).splitlines() if path.exists() else ():
            with suppress(Unparsable):
                lines.append(load_json(line, depth=RECORD_DEPTH))
        return lines

    async def _append(self, line: object) -> None:
        path = await self._path()
        try:
            with os.fdopen(open_regular(path, append=True), "ab") as file:
                file.write(b"\n" * bool(file.tell()) + json.dumps(line).encode())
        except OSError as error:
            raise storage_error(error, path, "add to the session") from error


def _describe(tool: FunctionTool) -> JsonObject:
    """A tool as the SDK sends it."""
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.params_json_schema,
        "strict": tool.strict_json_schema,
    }
