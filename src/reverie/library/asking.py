"""`ask`: the model for work beside the conversation, as a caller gives it: a name, a function, a `Model`, or nothing.

If a function raises, hangs or answers nonsense, a `ModelError` has the reason, and the embedded model takes over.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, TypeAlias, cast

from reverie.errors import ModelError, ReverieError, UserError
from reverie.models import wire
from reverie.models.base import (
    Capabilities,
    Finished,
    Model,
    ModelEvent,
    Request,
    Response,
    TextDelta,
    ToolCallStarted,
    Ttl,
)
from reverie.models.catalogue import Catalogue
from reverie.models.registry import EMBEDDED, facts_of, model_access, open_model
from reverie.plugins import guarded
from reverie.settings import Settings
from reverie.types import JsonObject, Origin, TextBlock, ToolUseBlock, Usage, parse_block

AskFunction: TypeAlias = Callable[[JsonObject], Awaitable[Any] | Any]
Ask: TypeAlias = str | AskFunction | Model | None

UNNAMED: Final = "ask"
"""The name of a function whose model nobody named."""
_WHOSE: Final = "the function given as `ask`"
_WANTED: Final = "return a text, or a response of the Messages API as an object or a dictionary"


def open_ask(ask: Ask, settings: Settings, *, model: str = "") -> Model:
    """The model that answers what is asked beside the conversation.

    `ask` is the name of a model, a `Model` (which stays open), a function, or None: then the embedded model answers. A
    function gets one dictionary, the body of a Messages request. It returns, or awaits, a response object of an SDK, a
    dictionary in the shape of a Messages response, or a text. `model` names the model behind it: it is in the body, and
    its window and prices count. Without it, the body has no `model`.
    """
    if ask is None or isinstance(ask, str):
        return open_model(ask or EMBEDDED, model_access(settings), Catalogue.load(settings.catalogue.files))
    if isinstance(ask, Model) and not isinstance(ask, type):
        return _LentModel(ask)
    if not callable(ask):
        raise UserError(f"`ask` is {type(ask).__name__}: give the name of a model, an async function, or None.")
    capabilities = Capabilities(images=False)
    if model:
        facts = facts_of(model, Catalogue.load(settings.catalogue.files))
        ttls = tuple[Ttl, ...](ttl for ttl in ("5m", "1h") if ttl in facts.ttls)
        capabilities = Capabilities(cache_markers=facts.cache_markers, ttls=ttls)
    return AskedModel(ask, model or UNNAMED, capabilities, settings.background.ask_s)


class AskedModel:
    """A function of the caller as a model."""

    def __init__(self, ask: AskFunction, name: str, capabilities: Capabilities, timeout_s: float) -> None:
        self._ask = ask
        self._name = name
        self._capabilities = capabilities
        self._timeout_s = timeout_s

    @property
    def name(self) -> str:
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        body = wire.body(replace(request, output_schema=None))
        if self._name == UNNAMED:
            del body["model"]
        limit = asyncio.timeout(self._timeout_s)
        try:
            async with limit:
                with guarded(_WHOSE, ModelError):
                    given = await self._call(body)
                    answer = read_answer(given)
        except TimeoutError as error:  # of this limit: one of the function itself is a failure of it
            raise ModelError(
                f"The function given as `ask` did not answer within {self._timeout_s:g} s (background.ask_s)."
            ) from error
        for block in answer.content:
            if isinstance(block, ToolUseBlock):
                yield ToolCallStarted(block.id, block.name)
            elif isinstance(block, TextBlock):
                yield TextDelta(block.text)
        yield Finished(answer)

    async def _call(self, body: JsonObject) -> Any:
        if inspect.iscoroutinefunction(self._ask) or inspect.iscoroutinefunction(getattr(self._ask, "__call__", None)):  # noqa: B004
            return await self._ask(body)
        given = await self._call_in_thread(body)  # a function that waits must not stop the loop
        return await given if inspect.isawaitable(given) else given

    async def _call_in_thread(self, body: JsonObject) -> Any:
        """In a thread that ends with the process: nobody waits at exit for a function that hangs."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()

        def tell(settle: Callable[[Any], None], what: Any) -> None:
            with suppress(RuntimeError):  # the loop is closed, nobody waits any more
                loop.call_soon_threadsafe(lambda: None if done.done() else settle(what))

        def work() -> None:
            try:
                with guarded(_WHOSE, ModelError):
                    given = self._ask(body)
            except ReverieError as error:
                tell(done.set_exception, error)
            else:
                tell(done.set_result, given)

        threading.Thread(target=work, name="reverie-ask", daemon=True).start()
        return await done

    async def close(self) -> None:
        """The function is the caller's own."""


class _LentModel:
    """A model of the caller: it answers here, and stays open."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.stream = model.stream

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def capabilities(self) -> Capabilities:
        return self._model.capabilities

    async def close(self) -> None:
        """The caller closes it."""


def read_answer(given: object) -> Response:
    """What a function of the caller, or an SDK, gave as a response. `ModelError` if it cannot be one."""
    if isinstance(given, str):
        given = {"content": given}
    if not isinstance(given, dict):
        given = _to_dict(given)
    raw = cast(JsonObject, given)
    if raw.get("type") == "error":
        said = wire.as_object(raw.get("error")).get("message") or raw.get("message") or "no reason given"
        raise ModelError(f"The function given as `ask` returned an error: {str(said)[:300]}")
    content: Any = raw.get("content")
    if not isinstance(content, str | list):
        raise ModelError(f"What the function given as `ask` returned has no content: {_WANTED}.")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else cast(list[Any], content)
    blocks = tuple(parse_block(_without_nothing(part), Origin.MODEL) for part in parts)
    if not any(isinstance(b, ToolUseBlock) or (isinstance(b, TextBlock) and b.text.strip()) for b in blocks):
        raise ModelError("The function given as `ask` returned neither text nor a tool call.")
    calls = any(isinstance(block, ToolUseBlock) for block in blocks)
    usage: Any = raw.get("usage")
    return Response(
        id=str(raw.get("id") or f"msg_ask_{uuid.uuid4().hex[:20]}"),
        model=str(raw.get("model") or ""),
        content=blocks,
        stop_reason=str(raw.get("stop_reason") or ("tool_use" if calls else "end_turn")),
        usage=Usage.parse(usage) or Usage(),
        raw_usage=wire.as_object(usage),
    )


def _to_dict(given: object) -> JsonObject:
    """An object of an SDK as a dictionary."""
    for name in ("to_dict", "model_dump"):
        dump = getattr(given, name, None)
        if callable(dump) and not isinstance(given, type):
            dumped = dump()
            if isinstance(dumped, dict):
                return cast(JsonObject, dumped)
    raise ModelError(f"The function given as `ask` returned {type(given).__name__}: {_WANTED}.")


def _without_nothing(part: Any) -> Any:
    """A block without fields that say None, as objects of an SDK have them."""
    if not isinstance(part, dict):
        return part
    return {key: value for key, value in cast(JsonObject, part).items() if value is not None}
