"""LangChain: one middleware that puts the layers under `create_agent`. The conversation is the thread of LangGraph.

It changes what the model is sent. The state of the agent keeps the whole history, apart from large tool results.
Errors of ours are logged, and the request is sent as it was; only `BlockingLimit` reaches the agent.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from reverie.errors import BlockingLimit, MissingExtra, PromptTooLong, ReverieError
from reverie.events import Event
from reverie.library.asking import Ask
from reverie.library.engine import READ_TOOL, Engine
from reverie.library.memory import Memory
from reverie.models.server_errors import ServerRefusal, model_error
from reverie.plugins import guarded

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
    from langchain.agents.middleware.types import ToolCallRequest
    from langchain_core.messages import AIMessage, ToolMessage
    from langchain_core.tools import StructuredTool
    from langgraph.config import get_config
    from langgraph.runtime import Runtime
    from langgraph.types import Command

    from reverie.adapters.langchain_messages import WireRequest
except ImportError as error:
    raise MissingExtra(
        "This needs LangChain 1.4 or newer; install it with: pip install 'reverie[langchain]'"
    ) from error

__all__ = ["ReverieMiddleware"]

T = TypeVar("T")
Result = ToolMessage | Command[Any]

_log = logging.getLogger("reverie.adapters")
_OURS: Final = "Reverie"
_ANY: Final = "openai:any"
_OPEN: Final = 64
"""Conversations that are kept open; the transcript has all of them."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """A request on its way. Without an engine it is sent as it was."""

    request: ModelRequest[Any]
    engine: Engine | None = None
    wired: WireRequest | None = None


class ReverieMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """The layers around the conversations of an agent: `create_agent(model, middleware=[ReverieMiddleware(…)])`.

    Give it as the last middleware, so that it sees what is sent. The conversation is the `thread_id` of the run, or
    `conversation_id` for runs without one. `model` is the name by which Reverie knows the chat model; it is found if it
    is not given. `read_tool` adds a tool that reads large results back. The other arguments are those of `Engine.open`.
    All work runs in one thread, so agents may be called with and without async. `close` waits for background work.
    """

    def __init__(
        self,
        conversation_id: str | None = None,
        *,
        model: str | None = None,
        memory: Memory | None = None,
        ask: Ask = None,
        window: int | None = None,
        home: Path | str | None = None,
        settings: Mapping[str, object] | None = None,
        on_event: Callable[[Event], None] | None = None,
        read_tool: bool = True,
    ) -> None:
        super().__init__()
        self._fallback = conversation_id
        self._model = model
        self._window = window
        self._given: dict[str, Any] = {"memory": memory, "ask": ask, "home": home, "settings": settings}
        self._given |= {"window": window, "on_event": on_event}
        self._engines = OrderedDict[str, tuple[Engine, WireRequest]]()
        self._loop: tuple[int, asyncio.AbstractEventLoop] | None = None
        self.tools = [self._read_tool()] if read_tool else []

    # -- the slots of LangChain -----------------------------------------------------------------------------------

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        sent = self._start(self._prepare(request, self._conversation())).result()
        try:
            response = handler(sent.request)
        except Exception as error:
            sent = self._start(self._recover(sent, error)).result()
            if sent.engine is None:
                raise
            response = handler(sent.request)
        self._start(self._observe(sent, response)).result()
        return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        sent = await self._wait(self._prepare(request, self._conversation()))
        try:
            response = await handler(sent.request)
        except Exception as error:
            sent = await self._wait(self._recover(sent, error))
            if sent.engine is None:
                raise
            response = await handler(sent.request)
        await self._wait(self._observe(sent, response))
        return response

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]) -> Result:
        return self._start(self._keep(handler(request), request, self._conversation())).result()

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        return await self._wait(self._keep(await handler(request), request, self._conversation()))

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        self._start(self._end_turn(self._conversation())).result()

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        await self._wait(self._end_turn(self._conversation()))

    # -- the same with and without async --------------------------------------------------------------------------

    def _start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Starts work in the thread of this middleware: background work goes on there when the caller's loop ends."""
        if self._loop is None or self._loop[0] != os.getpid():  # threads do not live on in a fork
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="reverie-langchain", daemon=True).start()
            self._loop = (os.getpid(), loop)
            self._engines.clear()
        return asyncio.run_coroutine_threadsafe(work, self._loop[1])

    def _wait(self, work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        return asyncio.wrap_future(self._start(work))

    def close(self) -> None:
        """Waits for background work and closes the transcripts. Later runs open them again."""
        self._start(self._close()).result()

    async def aclose(self) -> None:
        """The same for async programs."""
        await self._wait(self._close())

    async def _close(self) -> None:
        while self._engines:
            await self._engines.popitem()[1][0].close()

    # -- one call -------------------------------------------------------------------------------------------------

    def _conversation(self) -> str:
        """The thread of this run. A sub-agent is a conversation of its own; called as a tool, one per call."""
        try:
            place: Mapping[str, Any] = get_config().get("configurable", {})
        except RuntimeError:
            place = {}
        thread = str(place.get("thread_id") or self._fallback or "")
        inside = str(place.get("checkpoint_ns") or "").split("|")[:-1]
        names = (part if part.startswith("tools:") else part.partition(":")[0] for part in inside)
        return "/".join([thread, *names]) if thread else ""

    def _engine(self, conversation: str, request: ModelRequest[Any]) -> tuple[Engine, WireRequest]:
        """The engine of a conversation, opened again if the agent changes to a model with another name or wire."""
        engine, before = self._engines.get(conversation, (None, None))
        wired = WireRequest.of(request, before)
        if engine is None or before is None or (before.wire, before.model) != (wired.wire, wired.model):
            engine = Engine.open(conversation, model=self._model or wired.model, wire=wired.wire, **self._given)
        self._engines[conversation] = (engine, wired)
        self._engines.move_to_end(conversation)
        return engine, wired

    async def _prepare(self, request: ModelRequest[Any], conversation: str) -> _Sent:
        with _logged("A request is sent without layers"):
            if not conversation:
                raise ReverieError("the run has no thread_id, and ReverieMiddleware has no conversation_id.")
            if getattr(request.model, "use_previous_response_id", False):
                raise ReverieError("the server keeps this conversation (use_previous_response_id).")
            while len(self._engines) >= _OPEN:
                await self._engines.popitem(last=False)[1][0].close()
            return await self._fill(_Sent(request, *self._engine(conversation, request)))
        return _Sent(request)

    async def _fill(self, sent: _Sent) -> _Sent:
        assert sent.engine is not None and sent.wired is not None
        # A window of the caller's choice is smaller than the model's: the model's longest answer says nothing about it.
        room = sent.wired.max_tokens if self._window is None else None
        made = await sent.engine.prepare(**sent.wired.given(), max_tokens=room, whole=True)
        for notice in made.notices:
            _log.info("%s", notice)
        return _Sent(sent.wired.prepared(made.body), sent.engine, sent.wired)

    async def _recover(self, sent: _Sent, refusal: Exception) -> _Sent:
        """Makes the context shorter after the server refused it; without an engine if it cannot."""
        with _logged("The prompt is too long and was not made shorter"):
            if sent.engine is not None and _is_too_long(refusal) and await sent.engine.recover(refusal):
                return await self._fill(sent)
        return _Sent(sent.request)

    async def _observe(self, sent: _Sent, response: ModelResponse[Any] | AIMessage) -> None:
        messages = [response] if isinstance(response, AIMessage) else response.result
        answer = next((one for one in messages if isinstance(one, AIMessage)), None)
        if sent.engine is not None and sent.wired is not None and answer is not None:
            with _logged("An answer was not recorded"):
                await sent.engine.observe(sent.wired.response(answer))

    async def _keep(self, result: Result, request: ToolCallRequest, conversation: str) -> Result:
        """Layer 1. After a restart in the middle of a turn there is no engine yet: then `prepare` does the same."""
        known, call = self._engines.get(conversation), request.tool_call
        if known is not None and isinstance(result, ToolMessage) and call["name"] != READ_TOOL:
            with _logged("A tool result was not kept"):
                content: Any = result.content  # pyright: ignore[reportUnknownMemberType]
                kept = await known[0].keep(str(call["id"]), call["name"], content)
                return result.model_copy(update={"content": kept.content}) if kept.is_replaced else result
        return result

    async def _end_turn(self, conversation: str) -> None:
        if (known := self._engines.get(conversation)) is not None:
            with _logged("The end of a turn was not recorded"):
                await known[0].end_turn()

    def _read_tool(self) -> StructuredTool:
        """The tool that reads large results back."""

        async def read(path: str, offset: int = 0) -> str:
            return await self._wait(self._read(self._conversation(), path, offset))

        def read_now(path: str, offset: int = 0) -> str:
            return self._start(self._read(self._conversation(), path, offset)).result()

        about = Engine.open("any", model=_ANY).read_tool["function"]
        return StructuredTool.from_function(
            read_now, read, name=about["name"], description=about["description"], args_schema=about["parameters"]
        )

    async def _read(self, conversation: str, path: str, offset: int) -> str:
        known = self._engines.get(conversation)
        engine = known[0] if known else Engine.open(conversation, model=self._model or _ANY, **self._given)
        try:
            return await engine.read(path, offset)
        except ReverieError as error:
            return str(error)


def _is_too_long(error: Exception) -> bool:
    """Whether the server says that the prompt does not fit, in the words of any vendor."""
    refusal = ServerRefusal.read(getattr(error, "status_code", 400), getattr(error, "body", None), {}, str(error))
    return isinstance(model_error(refusal), PromptTooLong)


@contextmanager
def _logged(what: str) -> Generator[None]:
    """Logs any failure of ours; the agent goes on."""
    try:
        with guarded(_OURS):
            yield
    except BlockingLimit:
        raise
    except ReverieError as error:
        _log.warning("%s: %s", what, error)
