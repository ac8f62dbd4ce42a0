"""The memory tool of the API over `Memory`, as a tool of the Anthropic SDK. `Memory.tool` does the work."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from anthropic.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError

from reverie.errors import ReverieError
from reverie.library.blocking import blocking_loop
from reverie.library.engine import Engine
from reverie.library.memory import Memory
from reverie.plugins import guarded
from reverie.types import JsonObject

if TYPE_CHECKING:
    from reverie import sync

AnyMemory: TypeAlias = "Memory | sync.Memory"
AnyEngine: TypeAlias = "Engine | sync.Engine"


class ReverieMemoryTool(BetaAbstractMemoryTool):
    """The memory tool of the API over a `Memory`, for `Anthropic`: `tools=[ReverieMemoryTool(memory, engine)]`.

    Every write passes the gate as an agent's, and is a version. The words of the user in the engine's conversation are
    its evidence: what does not follow from them is marked as inferred, or waits in the inbox.
    """

    def __init__(self, memory: AnyMemory, engine: AnyEngine | None = None, *, cache_control: Any = None) -> None:
        super().__init__(cache_control=cache_control)
        self._command = partial(_run_command, memory, engine)

    def call(self, input: object) -> str:
        return blocking_loop().wait(self._command(input))

    view = create = str_replace = insert = delete = rename = call  # pyright: ignore


class AsyncReverieMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for `AsyncAnthropic`."""

    def __init__(self, memory: AnyMemory, engine: AnyEngine | None = None, *, cache_control: Any = None) -> None:
        super().__init__(cache_control=cache_control)
        self._command = partial(_run_command, memory, engine)

    async def call(self, input: object) -> str:
        return await self._command(input)

    view = create = str_replace = insert = delete = rename = call  # pyright: ignore


async def _run_command(memory: Any, engine: Any, given: Any) -> str:
    own: Memory = getattr(memory, "async_object", memory)
    talk: Engine | None = getattr(engine, "async_object", engine)
    command = cast(JsonObject, given if isinstance(given, dict) else given.to_dict())
    try:
        with guarded("Reverie"):
            return await own.tool(command, said=await talk.evidence() if talk is not None else ())
    except ReverieError as error:
        raise ToolError(str(error)) from error
