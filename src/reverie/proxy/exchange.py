"""One request through the proxy: decide, send, pass the answer on while listening, and bill it afterwards.

If anything of ours fails, the request goes out as it came, and the failure is counted.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import sqlite3
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple, cast

from reverie.errors import ReverieError
from reverie.library.wires import wire_named
from reverie.parsing import load_json
from reverie.plugins import guarded
from reverie.proxy.answers import Listener
from reverie.proxy.bills import Bills
from reverie.proxy.bodies import Api
from reverie.proxy.conversations import Conversations, Plan
from reverie.proxy.upkeep import Upkeep
from reverie.quick import dataclass
from reverie.types import JsonObject

if TYPE_CHECKING:
    import httpx

_log = logging.getLogger("reverie.proxy")
_OURS = "Reverie"
WORSE = 1.005
"""How much more a conversation may have cost before its line in the statistics says so."""
_HOP = frozenset(("connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "content-length"))
_NOT_SENT = _HOP | {"host", "proxy-authorization", "accept-encoding"}
_NOT_ANSWERED = _HOP | {"proxy-authenticate", "date", "server"}


class _Call(NamedTuple):
    method: str
    path: str
    headers: Mapping[str, str]
    api: Api | None


@dataclass(eq=False, slots=True)
class Exchanges:
    """Sends requests to the upstream of their API."""

    upstreams: Mapping[str, str]
    """Addresses by API; the first one is for all other paths."""
    client: httpx.AsyncClient
    conversations: Conversations
    bills: Bills
    key: bytes = field(default_factory=lambda: secrets.token_bytes(16), repr=False)
    """With it, clients get names. All workers of a proxy have the same."""
    _biller: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "bills"))
    """One thread, because the meters work on one bill at a time."""
    _billing: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _upkeep: Upkeep = field(default_factory=Upkeep)

    async def send(
        self, method: str, path: str, headers: Mapping[str, str], raw: bytes, api: Api | None
    ) -> tuple[int, list[tuple[str, str]], AsyncIterator[bytes]]:
        """Sends one request; returns the status, the headers and the bytes of the answer as they come."""
        who = self._name(headers)
        plan = await self._plan(api, raw, who, headers) if api is not None else Plan(raw, False)
        call = _Call(method, path, headers, api)
        response = await self._sent(call, plan.body)
        if plan.asked_engine and response.status_code in (400, 413):
            plan, response = await self._again(call, plan, raw, response)
        is_read = response.is_stream_consumed  # to see why it was refused; then it is plain again
        left_out = _NOT_ANSWERED | {"content-encoding"} if is_read else _NOT_ANSWERED
        given = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in left_out]
        if api is None or not response.is_success:
            return response.status_code, given, _passed(response)
        streams = "event-stream" in response.headers.get("content-type", "")
        encoding = response.headers.get("content-encoding", "").strip().lower()
        listener = Listener(api, streams=streams, encoding=encoding)
        return response.status_code, given, self._listened(response, listener, api, plan, raw, who)

    async def _sent(self, call: _Call, body: bytes) -> httpx.Response:
        passed = {name: value for name, value in call.headers.items() if name.lower() not in _NOT_SENT}
        base = self.upstreams.get(call.api or "") or self._upstream_of(call.path, call.headers)
        headers = {**passed, "accept-encoding": "identity"}
        request = self.client.build_request(call.method, base + call.path, headers=headers, content=body)
        return await self.client.send(request, stream=True)

    def _upstream_of(self, path: str, headers: Mapping[str, str]) -> str:
        """For paths that are not conversations: Anthropic's clients name the version of their API in a header."""
        is_messages = "anthropic-version" in headers or path.startswith("/v1/messages")
        return self.upstreams["messages" if is_messages else "chat"]

    async def _again(self, call: _Call, plan: Plan, raw: bytes, refusal: httpx.Response) -> tuple[Plan, httpx.Response]:
        """Sends a prompt that the server finds too long once more, compacted. Any other refusal is passed on."""
        await refusal.aread()
        shorter = None
        try:
            with guarded(_OURS):
                if call.api is not None:
                    shorter = await self.conversations.shorter(plan, call.api, raw, refusal.text)
        except ReverieError as error:
            _log.warning("The prompt is too long and was not made shorter: %s", error)
        if shorter is None:
            return plan, refusal
        await refusal.aclose()
        return shorter, await self._sent(call, shorter.body)

    async def _plan(self, api: Api, raw: bytes, who: str, headers: Mapping[str, str]) -> Plan:
        if headers.get("content-encoding", "identity") != "identity":
            return Plan(raw, False)  # compressed by the client, for the server only
        try:
            with guarded(_OURS):
                body = load_json(raw)
                if not isinstance(body, dict):
                    return Plan(raw, False)
                return await self.conversations.plan(api, raw, cast(JsonObject, body), who)
        except ReverieError as error:
            self.failed("passed_as_it_came")
            _log.warning("A request goes out as it came: %s", error)
            return Plan(raw, False)

    async def _listened(
        self, response: httpx.Response, listener: Listener, api: Api, plan: Plan, raw: bytes, who: str
    ) -> AsyncIterator[bytes]:
        """Passes the answer on. Before its last part, the answer is recorded: the next request may come at once."""
        recorded, held = False, b""
        try:
            async for chunk in response.aiter_raw():
                listener.take(chunk)
                if not recorded and (message := listener.message_of_stream()) is not None:
                    recorded = True
                    await self._record(plan, api, message, raw, who)
                if not listener.streams:
                    held, chunk = chunk, held
                if chunk:
                    yield chunk
            message = None if recorded else listener.message()
            if message is not None:
                await self._record(plan, api, message, raw, who)
            elif not recorded and plan.conversation:
                self.failed("answer_not_read")
            if held:
                yield held
        finally:
            await response.aclose()

    async def _record(self, plan: Plan, api: Api, message: JsonObject, raw: bytes, who: str) -> None:
        try:
            with guarded(_OURS):
                await self.conversations.answered(plan, api, message)
        except ReverieError as error:
            self.failed("answer_not_recorded")
            _log.warning("An answer was not recorded: %s", error)
        if plan.conversation:
            task = asyncio.create_task(self._book(plan, api, message, raw, who))
            self._billing.add(task)
            task.add_done_callback(self._billing.discard)
            if plan.breaks or plan.marks:
                self.conversations.unpaid[plan.conversation] = task

    async def _book(self, plan: Plan, api: Api, message: JsonObject, raw: bytes, who: str) -> None:
        try:
            with guarded(_OURS):
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(self._biller, self._book_now, plan, api, message, raw, who)
                self._biller.submit(self._upkeep.served, len(raw))
        except ReverieError as error:
            self.failed("not_billed")
            _log.warning("A request was not billed: %s", error)

    def _book_now(self, plan: Plan, api: Api, message: JsonObject, raw: bytes, who: str) -> None:
        usage = wire_named(api).read_response(message).usage
        two = self.bills.book(api, raw, plan.body, who, usage, is_ours=plan.reads_back)
        book, name = self.conversations.book, plan.conversation
        book.add(
            name,
            requests=1,
            changed=int(plan.is_changed),
            results=plan.results,
            compactions=int(plan.compacted),
            fresh=usage.input_tokens,
            read=usage.cache_read_input_tokens,
            written=usage.cache_creation_input_tokens,
            output=usage.output_tokens,
            paid=two.paid,
            direct=two.paid_directly,
            sent_meter=two.sent_tokens,
            direct_meter=two.direct_tokens,
        )
        for cause in plan.breaks:
            book.add_break(name, cause)
        if plan.marks and usage.cache_read_input_tokens + usage.cache_creation_input_tokens > 0:
            book.mark(name, plan.marks.end, plan.at)
        if two.sent == 0 and plan.is_changed:
            self.failed("not_billed")
            return
        sent, direct = book.meters(name)
        over = sent / direct - 1 if direct else 0.0
        stopped = book.state_of(name)[0]
        if over > WORSE - 1 and not stopped:
            book.stop(
                name,
                f"{over:.1%} more than directly so far; until that is earned back, only what costs nothing is cleared",
            )
        elif over <= 0 and stopped:
            book.stop(name, "")

    def failed(self, what: str) -> None:
        """Counts something of ours that failed, where `stats` sees it."""
        with suppress(sqlite3.Error):
            self.conversations.book.fail(what)

    async def settle(self) -> None:
        """Waits for the bills of answered requests."""
        if self._billing:
            await asyncio.wait(self._billing)

    def _name(self, headers: Mapping[str, str]) -> str:
        """A name for the client: the same for the same key, and useless to anyone else."""
        key = headers.get("x-api-key") or headers.get("authorization") or ""
        return hashlib.blake2b(key.encode("utf-8", "replace"), key=self.key, digest_size=6).hexdigest()


async def _passed(response: httpx.Response) -> AsyncIterator[bytes]:
    try:
        if response.is_closed or response.is_stream_consumed:  # read already, to see why it was refused
            yield response.content
            return
        async for chunk in response.aiter_raw():
            yield chunk
    finally:
        await response.aclose()
