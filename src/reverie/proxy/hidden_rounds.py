"""Answers calls of our tool: reads the copy, sends the next request, and gives the client one answer without them.

Calls of the client's own tools end an answer. Then our calls in it are answered as well, and the next request of the
client gets them back with their results (`saved_reads.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol

from reverie.errors import ReverieError
from reverie.models.wire import as_object
from reverie.parsing import Unparsable, load_json
from reverie.plugins import guarded
from reverie.proxy.answers import Listener
from reverie.proxy.bodies import Api, dump
from reverie.proxy.conversations import Conversations, Plan
from reverie.proxy.merging import Events, merged, merging
from reverie.proxy.read_back import (
    OwnCall,
    ReadResult,
    has_other_calls,
    is_whole,
    own_calls,
    result_items,
    result_parts,
    said_items,
    without_calls,
    without_echo,
)
from reverie.proxy.saved_reads import Hidden
from reverie.types import JsonObject

if TYPE_CHECKING:
    import httpx

_log = logging.getLogger("reverie.proxy")
_MOST_ROUNDS = 8
_REST_S = 0.5
_ONCE = ("idempotency-key", "x-idempotency-key")
"""Headers that would give us the answer to the first request again."""
_NO_MORE = "Nothing was read: this answer has read often enough. Answer with what you have, and read on later."


class Call(NamedTuple):
    """A request of a client, without its body."""

    method: str
    target: bytes
    """The path and the query, as they came."""
    headers: httpx.Headers
    api: Api | None
    """Its form; None if it is not a conversation."""
    to: Api | None
    """The API whose server gets it; None if its headers have to tell."""


class Ending(NamedTuple):
    """The end of an answer: what the client gets, and what the server has in its place, if they are not the same."""

    shown: JsonObject | None = None
    hidden: Hidden | None = None


class Exchange(Protocol):
    """What sends, records and bills."""

    conversations: Conversations

    async def send_plan(self, call: Call, plan: Plan, raw: bytes) -> tuple[Plan, httpx.Response]: ...

    async def record(
        self, plan: Plan, api: Api, message: JsonObject, raw: bytes, who: str, ending: Ending | None
    ) -> None:
        """Without an ending, another round follows."""
        ...

    def failed(self, what: str) -> None: ...


class HiddenRounds:
    """One request of a client, in a conversation that has our tool."""

    def __init__(self, exchange: Exchange, call: Call, api: Api, plan: Plan, raw: bytes, who: str) -> None:
        self._exchange = exchange
        self._call = call
        self._api: Api = api
        self._plan = plan
        self._tool = plan.tool
        self._raw = raw
        self._who = who
        self._said = list[JsonObject]()
        self._items = list[JsonObject]()
        """What the server has of earlier rounds."""
        self._shown: JsonObject | None = None
        """What the client gets, if the server gave another answer."""

    async def plain(self, response: httpx.Response) -> tuple[httpx.Response, AsyncIterator[bytes]]:
        """The answer as one document, and the response with its status and headers."""
        while True:
            data = await response.aread()
            if not response.is_success:
                return response, _given(data)
            try:
                message = as_object(load_json(data))
            except Unparsable:
                self._exchange.failed("answer_not_read")
                return response, _given(data)
            if not await self._take(message):
                return response, _given(data if self._shown is None else dump(self._shown, finite=False))
            self._plan, response = await self._exchange.send_plan(self._call, self._plan, self._raw)

    async def stream(self, response: httpx.Response) -> AsyncIterator[bytes]:
        """The answer as one stream."""
        import httpx

        out = merging(self._api, self._tool)
        while True:
            listener, events = Listener(self._api, streams=True), Events()
            chunks, message = response.aiter_bytes(), None
            try:
                async for chunk in chunks:
                    listener.take(chunk)
                    if shown := b"".join(map(out.take, events.take(chunk))):
                        yield shown
                    if (message := listener.message_of_stream()) is not None:
                        break
                rest = events.rest()
                message = message or listener.message()
                if message is None:
                    self._exchange.failed("answer_not_read")
                    yield out.end(None) + rest
                    return
                if rest.strip():
                    yield out.take(rest.rstrip() + b"\n\n")
                if not await self._take(message):
                    yield out.end(self._shown)
                    async for chunk in chunks:
                        yield chunk
                    return
                with suppress(TimeoutError):  # so that the connection can be used again
                    async with asyncio.timeout(_REST_S):
                        async for _ in chunks:
                            pass
            finally:
                await response.aclose()
            out.begin()
            try:
                self._plan, response = await self._exchange.send_plan(self._call, self._plan, self._raw)
                refusal = None if response.is_success else _error(response.status_code, await response.aread())
            except httpx.HTTPError as error:
                refusal = {"type": "proxy_error", "message": f"The upstream does not answer: {error}"[:500]}
            if refusal is not None:
                yield out.fail(refusal)
                return

    async def _take(self, message: JsonObject) -> bool:
        """Takes in the answer of a round; returns whether another one follows. If anything of ours fails, that is the
        request as it came."""
        try:
            with guarded("Reverie"):
                return await self._next(message)
        except ReverieError as error:
            _log.warning("Our tool could not be answered; the request goes out as it came: %s", error)
            self._exchange.failed("passed_as_it_came")
            plan = self._plan
            self._plan = Plan(self._raw, False, plan.conversation, plan.states, reads_back=True, is_round=True)
            self._items = []
            return True

    async def _next(self, message: JsonObject) -> bool:
        api, plan = self._api, self._plan
        calls = own_calls(api, message, plan.tool) if plan.tool else []
        is_cut = bool(calls) and not is_whole(api, message)
        if is_cut:  # in the middle of a call, which nobody can answer
            message, calls = without_calls(api, message, plan.tool), []
        self._said.append(message)
        is_last = not calls or has_other_calls(api, message, plan.tool)
        results = [await self._read(call) for call in calls]
        if not is_last and len(self._said) <= _MOST_ROUNDS:
            items = [*said_items(api, message, plan.given or {}), *result_items(api, results)]
            await self._exchange.record(plan, api, message, self._raw, self._who, None)
            self._items += items
            for name in _ONCE:
                self._call.headers.pop(name, None)
            self._plan = await self._exchange.conversations.next_round(plan, api, items)
            return True
        hidden = None
        if self._items or calls:
            ends, parts = said_items(api, message, plan.given or {}), result_parts(api, results)
            follows = api == "messages"  # results are in the next message of the client
            hidden = Hidden(
                [*self._items, *ends, *([] if follows else parts)],
                parts if follows else [],
                parts if api == "responses" else [],
                str(message.get("id") or "") if api == "responses" else "",
            )
        echoes = without_echo(api, message, self._tool) is not message
        if hidden is not None or is_cut or echoes or len(self._said) > 1:
            self._shown = merged(api, self._said, self._tool, ends=not is_last)
        await self._exchange.record(plan, api, message, self._raw, self._who, Ending(self._shown, hidden))
        return False

    async def _read(self, call: OwnCall) -> ReadResult:
        if len(self._said) > _MOST_ROUNDS:
            return ReadResult(call.id, _NO_MORE, is_error=True)
        return await self._exchange.conversations.read_saved(self._plan, self._api, call)


async def _given(data: bytes) -> AsyncIterator[bytes]:
    yield data


def _error(status: int, data: bytes) -> JsonObject:
    """The refusal of a server as an error inside a stream."""
    try:
        told = as_object(as_object(load_json(data)).get("error"))
    except Unparsable:
        told = {}
    message = told.get("message") or f"The upstream answered {status}: {data[:300].decode('utf-8', 'replace')}"
    return {**told, "type": str(told.get("type") or "proxy_error"), "message": str(message)}
