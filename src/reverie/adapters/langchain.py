"""LangChain: one middleware that puts the layers under `create_agent`. The conversation is the thread of LangGraph.

It changes what the model is sent. The state of the agent keeps the whole history, apart from large tool results.
Errors of ours are logged, and the request is sent as it was; only `BlockingLimit` reaches the agent.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from reverie.adapters.faults import logged
from reverie.errors import MissingExtra, PromptTooLong, ReverieError
from reverie.events import Event
from reverie.library.asking import Ask
from reverie.library.engine import READ_TOOL
from reverie.library.memory import Memory
from reverie.models.server_errors import ServerRefusal, model_error
from reverie.paths.installed import pip_install
from reverie.quick import dataclass
from reverie.sync import Engine

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
    from langchain.agents.middleware.types import ToolCallRequest
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, ToolMessage
    from langchain_core.tools import StructuredTool
    from langgraph.config import get_config
    from langgraph.runtime import Runtime
    from langgraph.types import Command

    from reverie.adapters.langchain_messages import WireRequest, ask_chat_model
except ImportError as error:
    raise MissingExtra(f"This needs LangChain 1.4 or newer; install it with: {pip_install('langchain')}") from error

__all__ = ["ReverieMiddleware"]

Result = ToolMessage | Command[Any]

_log = logging.getLogger("reverie.adapters")
_ANY: Final = "openai:any"
_OPEN: Final = 64
"""Conversations that are kept open; the transcript has all of them."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """A request on its way. Without an engine it is sent as it was."""

    request: ModelRequest[Any]
    engine: Any = None
    wired: WireRequest | None = None


class ReverieMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """The layers around the conversations of an agent: `create_agent(model, middleware=[ReverieMiddleware(…)])`.

    Give it as the last middleware, so that it sees what is sent. The conversation is the `thread_id` of the run, or
    `conversation_id` for runs without one. `model` is the name by which Reverie knows the chat model; it is found if it
    is not given. `read_tool` adds a tool that reads large results back. `ask` may be a chat model. The other arguments
    are those of `Engine.open`. Agents may be called with and without async. `close` waits for background work.
    """

    def __init__(
        self,
        conversation_id: str | None = None,
        *,
        model: str | None = None,
        memory: Memory | None = None,
        ask: Ask | BaseChatModel = None,
        window: int | None = None,
        home: Path | str | None = None,
        settings: Mapping[str, object] | None = None,
        on_event: Callable[[Event], None] | None = None,
        read_tool: bool = True,
    ) -> None:
        super().__init__()
        self._fallback = conversation_id
        self._model = model
        if isinstance(ask, BaseChatModel):
            ask = partial(ask_chat_model, ask)
        self._given: dict[str, Any] = {"memory": memory, "ask": ask, "home": home, "settings": settings}
        self._given |= {"window": window, "on_event": on_event}
        self._engines = OrderedDict[str, tuple[Any, WireRequest]]()
        self._opening = threading.Lock()
        checked = Engine.open("any", model=model or _ANY, wire="chat", **self._given)  # raises if one of them is wrong
        self.tools = [self._read_tool(checked.read_tool["function"])] if read_tool else []

    # -- the slots of LangChain -----------------------------------------------------------------------------------

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        sent = self._prepare(request)
        try:
            response = handler(sent.request)
        except Exception as error:
            sent = self._recover(sent, error)
            if sent.engine is None:
                raise
            response = handler(sent.request)
        self._observe(sent, response)
        return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        sent = await asyncio.to_thread(self._prepare, request)
        try:
            response = await handler(sent.request)
        except Exception as error:
            sent = await asyncio.to_thread(self._recover, sent, error)
            if sent.engine is None:
                raise
            response = await handler(sent.request)
        await asyncio.to_thread(self._observe, sent, response)
        return response

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]) -> Result:
        return self._keep(handler(request), request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        return await asyncio.to_thread(self._keep, await handler(request), request)

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        if (engine := self._opened()) is not None:
            with logged("The end of a turn was not recorded"):
                engine.end_turn()

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        await asyncio.to_thread(self.after_agent, state, runtime)

    def close(self) -> None:
        """Waits for background work and closes the transcripts. Later runs open them again."""
        with self._opening:
            engines = [engine for engine, _ in self._engines.values()]
            self._engines.clear()
        for engine in engines:
            engine.close()

    async def aclose(self) -> None:
        """The same for async programs."""
        await asyncio.to_thread(self.close)

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

    def _opened(self) -> Any:
        """The engine of this run, if it has one yet."""
        return self._engines.get(self._conversation(), (None,))[0]

    def _engine(self, conversation: str, request: ModelRequest[Any]) -> tuple[Any, WireRequest]:
        """The engine of a conversation, opened again if the agent changes to a model with another name or wire."""
        engine, before = self._engines.get(conversation, (None, None))
        wired = WireRequest.of(request, before)
        if before is None or (before.wire, before.model) != (wired.wire, wired.model):
            engine = Engine.open(conversation, model=self._model or wired.model, wire=wired.wire, **self._given)
        with self._opening:
            self._engines[conversation] = (engine, wired)
            self._engines.move_to_end(conversation)
            oldest = self._engines.popitem(last=False)[1][0] if len(self._engines) > _OPEN else None
        if oldest is not None:
            oldest.close()
        return engine, wired

    def _prepare(self, request: ModelRequest[Any]) -> _Sent:
        with logged("A request is sent without layers"):
            conversation = self._conversation()
            if not conversation:
                raise ReverieError("the run has no thread_id, and ReverieMiddleware has no conversation_id.")
            if getattr(request.model, "use_previous_response_id", False):
                raise ReverieError("the server keeps this conversation (use_previous_response_id).")
            return self._fill(*self._engine(conversation, request))
        return _Sent(request)

    def _fill(self, engine: Any, wired: WireRequest) -> _Sent:
        # The longest answer of the model belongs to the window of the model, not to one of the caller's choice.
        room = wired.max_tokens if self._given["window"] is None else None
        made = engine.prepare(**wired.given(), max_tokens=room, whole=True)
        for notice in made.notices:
            _log.info("%s", notice)
        return _Sent(wired.prepared(made.body), engine, wired)

    def _recover(self, sent: _Sent, refusal: Exception) -> _Sent:
        """Makes the context shorter after the server refused it; without an engine if it cannot."""
        with logged("The prompt is too long and was not made shorter"):
            if sent.wired is not None and _is_too_long(refusal) and sent.engine.recover(refusal):
                return self._fill(sent.engine, sent.wired)
        return _Sent(sent.request)

    def _observe(self, sent: _Sent, response: ModelResponse[Any] | AIMessage) -> None:
        messages = [response] if isinstance(response, AIMessage) else response.result
        answer = next((one for one in messages if isinstance(one, AIMessage)), None)
        if sent.wired is not None and answer is not None:
            with logged("An answer was not recorded"):
                sent.engine.observe(sent.wired.response(answer))

    def _keep(self, result: Result, request: ToolCallRequest) -> Result:
        """Layer 1. After a restart in the middle of a turn there is no engine yet: then `prepare` does the same."""
        engine, call = self._opened(), request.tool_call
        if engine is not None and isinstance(result, ToolMessage) and call["name"] != READ_TOOL:
            with logged("A tool result was not kept"):
                content: Any = result.content  # pyright: ignore[reportUnknownMemberType]
                kept = engine.keep(str(call["id"]), call["name"], content)
                return result.model_copy(update={"content": kept.content}) if kept.is_replaced else result
        return result

    def _read(self, path: str, offset: int = 0) -> str:
        engine = self._opened() or Engine.open(self._conversation(), model=self._model or _ANY, **self._given)
        try:
            return engine.read(path, offset)
        except ReverieError as error:
            return str(error)

    def _read_tool(self, about: Mapping[str, Any]) -> StructuredTool:
        """The tool that reads large results back."""
        return StructuredTool.from_function(
            self._read, name=about["name"], description=about["description"], args_schema=about["parameters"]
        )


def _is_too_long(error: Exception) -> bool:
    """Whether the server says that the prompt does not fit, in the words of any vendor."""
    refusal = ServerRefusal.read(getattr(error, "status_code", 400), getattr(error, "body", None), {}, str(error))
    return isinstance(model_error(refusal), PromptTooLong)
