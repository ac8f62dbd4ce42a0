"""pydantic-ai: `Agent(model, capabilities=[ReverieLayers(engine)])` puts the layers under the runs of a conversation.

It changes what the model is sent. The history of the agent stays whole, apart from large tool results. Failures of ours
are logged, and the request is sent as it was; only `BlockingLimit` reaches the agent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from reverie.adapters.faults import check_wire, logged
from reverie.errors import MissingExtra, ReverieError
from reverie.library.engine import Engine
from reverie.library.read_tool import READ_ABOUT, READ_TOOL
from reverie.paths.installed import pip_install
from reverie.quick import dataclass

try:
    from pydantic_ai import FunctionToolset, RunContext, Tool
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.exceptions import ModelContextWindowExceededError, RetryModelRequest
    from pydantic_ai.messages import ModelResponse, ToolCallPart
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.settings import ModelSettings

    from reverie.adapters.pydantic_ai_messages import History, read_response
except ImportError as error:
    raise MissingExtra(
        f"This needs pydantic-ai 2.66 or newer; install it with: {pip_install('pydantic-ai')}"
    ) from error

__all__ = ["ReverieLayers"]

_MOST_ATTEMPTS = 3
_OPEN = 64
"""Conversations that are kept open; the transcripts have all of them."""


@dataclass
class ReverieLayers(AbstractCapability[Any]):
    """The layers around the conversations of an agent.

    `engine` is the engine of one conversation, opened with `wire="messages"` for every model; or a function that gets
    the `conversation_id` of a run and returns an engine; `close` closes what it opened. Give this capability as the
    last one, so that it sees what is sent. `read_tool` adds a tool that reads large results back. With `cache`,
    pydantic-ai's own setting puts cache markers at the end of the instructions, the tools and the conversation, for
    models that need them, unless you have set a cache yourself.
    """

    engine: Engine | Callable[[str], Engine]
    cache: bool = True
    read_tool: bool = True
    _engines: dict[str, Engine] = field(default_factory=dict[str, Engine], init=False, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.engine, Engine):
            check_wire(self.engine, "messages")

    def _of(self, ctx: RunContext[Any]) -> Engine:
        if isinstance(self.engine, Engine):
            return self.engine
        name = str(ctx.conversation_id)
        if name not in self._engines:
            self._engines[name] = check_wire(self.engine(name), "messages")
        return self._engines[name]

    def get_model_settings(self) -> Callable[[RunContext[Any]], ModelSettings]:
        return lambda ctx: ModelSettings(cache=True) if self.cache and not _caches(ctx) else ModelSettings()

    def get_toolset(self) -> FunctionToolset[Any] | None:
        async def read(ctx: RunContext[Any], path: str, offset: int = 0) -> str:
            try:
                return await self._of(ctx).read(path, offset)
            except ReverieError as error:
                return str(error)

        tool = Tool[Any](read, takes_ctx=True, name=READ_TOOL, description=READ_ABOUT)
        return FunctionToolset([tool]) if self.read_tool else None

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        with logged("This request is sent without layers"):
            while len(self._engines) > _OPEN:
                await self._engines.pop(next(iter(self._engines))).close()
            given = History.of(request_context.messages)
            parameters = request_context.model_request_parameters
            system = [part.content for part in parameters.instruction_parts or ()] + [
                one.content for one in given.system
            ]
            tools = [*parameters.function_tools, *parameters.output_tools]
            request = await self._of(ctx).prepare(
                system=[{"type": "text", "text": text} for text in system],
                messages=given.messages,
                tools=[
                    {
                        "name": tool.name,
                        "description": tool.description or "",
                        "input_schema": tool.parameters_json_schema,
                    }
                    for tool in tools
                ],
                whole=True,
            )
            request_context.messages = given.rebuild(request.body["messages"])
        return request_context

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        with logged("A response was not recorded"):
            await self._of(ctx).observe(read_response(response))
        return response

    async def on_model_request_error(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        """Makes the context shorter if the server refuses it, and sends it again."""
        if isinstance(error, ModelContextWindowExceededError) and request_context.attempt < _MOST_ATTEMPTS:
            is_shorter = False
            with logged("The prompt is too long and was not made shorter"):
                is_shorter = await self._of(ctx).recover(error)
            if is_shorter:
                raise RetryModelRequest() from error
        raise error

    async def after_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: Any, args: Any, result: Any
    ) -> Any:
        """Layer 1 for texts, so that the history of the agent stays small. Other results are kept with the request."""
        if isinstance(result, str):
            with logged("A tool result was not kept"):
                return (await self._of(ctx).keep(call.tool_call_id, call.tool_name, result)).content
        return result

    async def after_run(self, ctx: RunContext[Any], *, result: Any) -> Any:
        with logged("The end of a turn was not recorded"):
            await self._of(ctx).end_turn()
        return result

    async def close(self) -> None:
        """Waits for background work and closes the engines that the function has opened. Later runs open them again."""
        while self._engines:
            await self._engines.popitem()[1].close()


def _caches(ctx: RunContext[Any]) -> bool:
    return any("cache" in name for name in ctx.model_settings or {})
