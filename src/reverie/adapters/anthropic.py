"""The Anthropic SDK: `Anthropic(middleware=[layers(engine)])`, and the memory tool of the API over `Memory`.

The middleware changes the requests of one conversation and leaves all others alone. Errors of ours are logged, and the
request is sent as the program wrote it; only `BlockingLimit` reaches the program.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from reverie.errors import BlockingLimit, MissingExtra, PromptTooLong, ReverieError
from reverie.library.blocking import blocking_loop
from reverie.library.engine import Engine
from reverie.models.anthropic import AnthropicAnswer
from reverie.models.server_errors import ServerRefusal, model_error
from reverie.models.wire import as_object
from reverie.parsing import load_json
from reverie.paths.installed import pip_install
from reverie.plugins import guarded
from reverie.types import JsonObject

try:
    from anthropic import APIRequest, APIResponse, AsyncAPIResponse, Middleware

    from reverie.adapters.anthropic_memory import AsyncReverieMemoryTool, ReverieMemoryTool
except ImportError as error:
    raise MissingExtra(
        f"This needs the Anthropic SDK 2.8 or newer; install it with: {pip_install('anthropic')}"
    ) from error

if TYPE_CHECKING:
    from reverie import sync

__all__ = ["AsyncReverieMemoryTool", "Layers", "ReverieMemoryTool", "layers"]

AnyEngine: TypeAlias = "Engine | sync.Engine"
Choice: TypeAlias = "Callable[[Mapping[str, Any]], AnyEngine | None]"

_log = logging.getLogger("reverie.adapters")
_OURS: Final = "Reverie"
_GOES_ON: Final = ("tool_use", "pause_turn")
"""Stop reasons after which the turn continues."""
_SET_BY_LAYERS: Final = ("system", "tools", "messages", "max_tokens", "cache_control", "thread")


def layers(engine: AnyEngine | Choice) -> Layers:
    """Returns a middleware for `Anthropic` and `AsyncAnthropic` that puts the layers under the engine's conversation.

    A request belongs to the conversation if its model is the engine's and `engine.knows` its messages. All other
    requests pass unchanged. Instead of an engine, give a function that gets the body of each Messages request and
    returns its engine, or None for a request to leave alone. Engines of `reverie.sync` are fine too. Close the engine
    at the end, or with a synchronous client the middleware.
    """
    return Layers(engine)


class Layers(Middleware):
    """The middleware. Make it with `layers`."""

    def __init__(self, engine: AnyEngine | Choice) -> None:
        self._engine = cast("Engine | Choice", getattr(engine, "async_object", engine))
        self._used = dict[int, Engine]()
        self._last = dict[int, str]()
        """The id of the last response of each engine in use: threads are continued from there."""
        self._observing = set[asyncio.Task[None]]()

    # -- the two kinds of clients ----------------------------------------------------------------------------------

    def handle(self, request: APIRequest, call_next: Callable[[APIRequest], APIResponse[Any]]) -> APIResponse[Any]:
        steps, given = self._exchange(request), None
        try:
            while True:
                step: Any = steps.send(given)
                if isinstance(step, APIRequest):
                    given = call_next(step)
                else:
                    given = step.read() if isinstance(step, APIResponse) else blocking_loop().wait(step)
        except StopIteration as end:
            return end.value

    async def handle_async(self, request: APIRequest, call_next: Any) -> AsyncAPIResponse[Any]:
        steps, given = self._exchange(request), None
        try:
            while True:
                step: Any = steps.send(given)
                if isinstance(step, APIRequest):
                    given = await call_next(step)
                else:
                    given = await (step.read() if isinstance(step, AsyncAPIResponse) else step)
        except StopIteration as end:
            return end.value

    def close(self) -> None:
        """Waits for the background work of a synchronous client. Programs with `AsyncAnthropic` close the engine."""
        for engine in self._used.values():
            blocking_loop().wait(engine.close())

    # -- one exchange ----------------------------------------------------------------------------------------------

    def _exchange(self, request: APIRequest) -> Generator[Any, Any, Any]:
        """Yields requests to send, responses to read and work to wait for; returns the response for the program."""
        body = cast(JsonObject, request.json) if _is_messages(request) else None
        prepared = (yield self._prepare(body)) if body is not None else None
        if body is None or prepared is None:
            return (yield request)
        engine, made = prepared
        response = yield request.copy(body=made)
        if not response.http_response.is_success:
            refusal = _too_long(response.status_code, (yield response))
            again = (yield self._recover(engine, body, refusal)) if refusal is not None else None
            if again is None:
                return response
            response = yield request.copy(body=again)
        if response.http_response.is_success:
            if "event-stream" in response.headers.get("content-type", ""):
                self._follow(response, engine)
            else:
                yield self._observe(engine, (yield response))
        return response

    async def _prepare(self, body: JsonObject) -> tuple[Engine, JsonObject] | None:
        """Returns the engine of a request and the body to send; None if the request passes unchanged."""
        if self._observing:
            await asyncio.wait(self._observing)
        try:
            with guarded(_OURS):
                engine = await self._choose(body)
                return None if engine is None else (engine, await _prepare_body(engine, body))
        except BlockingLimit:
            raise
        except ReverieError as error:
            _log.warning("This request is sent without layers: %s", error)
            return None

    async def _choose(self, body: JsonObject) -> Engine | None:
        if isinstance(self._engine, Engine):
            engine = self._engine
            if _continues(body):
                is_next = as_object(body.get("thread")).get("previous_message_id") == self._last.get(id(engine))
            else:
                is_next = await engine.knows(body.get("messages") or [], model=str(body.get("model")))
            if not is_next:
                _log.info("A request that is not part of the conversation passes unchanged.")
        else:
            chosen = self._engine(body)
            engine = cast("Engine | None", getattr(chosen, "async_object", chosen))
            is_next = engine is not None
        if engine is None or not is_next:
            return None
        self._used[id(engine)] = engine
        return engine

    async def _recover(self, engine: Engine, body: JsonObject, refusal: PromptTooLong) -> JsonObject | None:
        try:
            with guarded(_OURS):
                return await _prepare_body(engine, body) if await engine.recover(refusal) else None
        except ReverieError as error:
            _log.warning("The prompt is too long and was not made shorter: %s", error)
            return None

    async def _observe(self, engine: Engine, response: bytes | JsonObject) -> None:
        try:
            with guarded(_OURS):
                message = as_object(load_json(response) if isinstance(response, bytes) else response)
                await engine.observe(message)
                self._last[id(engine)] = str(message.get("id"))
                if message.get("stop_reason") not in _GOES_ON:
                    await engine.end_turn(answered=message.get("stop_reason") != "refusal")
        except ReverieError as error:
            _log.warning("A response was not recorded: %s", error)

    # -- streams ---------------------------------------------------------------------------------------------------

    def _follow(self, response: APIResponse[Any] | AsyncAPIResponse[Any], engine: Engine) -> None:
        """Reads along while the program reads the stream. The last event is recorded before the stream ends."""
        raw: Any = response.http_response
        events = _Events()
        if isinstance(response, APIResponse):
            read = raw.iter_bytes

            def iter_bytes(chunk_size: int | None = None) -> Generator[bytes]:
                done = None
                for chunk in read(chunk_size):
                    if (message := events.take(chunk)) is not None:
                        done = blocking_loop().start(self._observe(engine, message))
                    yield chunk
                if done is not None:
                    done.result()

            raw.iter_bytes = iter_bytes
            return
        read = raw.aiter_bytes

        async def aiter_bytes(chunk_size: int | None = None) -> AsyncGenerator[bytes]:
            async for chunk in read(chunk_size):
                if (message := events.take(chunk)) is not None:
                    task = asyncio.create_task(self._observe(engine, message))
                    self._observing.add(task)
                    task.add_done_callback(self._observing.discard)
                yield chunk
            if self._observing:
                await asyncio.wait(self._observing)

        raw.aiter_bytes = aiter_bytes


class _Events:
    """Collects the message from the bytes of an event stream."""

    def __init__(self) -> None:
        self._answer = AnthropicAnswer()
        self._rest = b""

    def take(self, chunk: bytes) -> JsonObject | None:
        """Returns the message when its last event has come."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        was_ended = self._answer.ended
        for line in lines:
            if line.startswith(b"data:"):
                with suppress(ValueError):
                    list(self._answer.take(as_object(load_json(line[5:]))))
        return self._answer.message() if self._answer.ended and not was_ended else None


def _is_messages(request: APIRequest) -> bool:
    path = request.url.partition("?")[0].rstrip("/")
    return request.method.lower() == "post" and path.endswith("/v1/messages") and isinstance(request.json, dict)


def _continues(body: JsonObject) -> bool:
    """Whether the request continues a thread: then it has only new messages, and no system prompt and no tools."""
    return as_object(body.get("thread")).get("type") == "continue"


async def _prepare_body(engine: Engine, body: JsonObject) -> JsonObject:
    """The layers send the whole conversation, so a thread is not continued; their cache markers replace the others."""
    only_new = _continues(body)
    messages: list[Any] = body.get("messages") or []
    request = await engine.prepare(
        messages=messages,
        system=body.get("system", None if only_new else []),
        tools=body.get("tools", None if only_new else []),
        max_tokens=body.get("max_tokens"),
        whole=False if only_new else len(messages) == 1 or None,
        **{name: value for name, value in body.items() if name not in _SET_BY_LAYERS},
    )
    return request.body


def _too_long(status: int, body: bytes) -> PromptTooLong | None:
    said: Any = body.decode("utf-8", "replace")
    with suppress(ValueError):
        said = load_json(body)
    problem = model_error(ServerRefusal.read(status, said, {}, ""))
    return problem if isinstance(problem, PromptTooLong) else None
