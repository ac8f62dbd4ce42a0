"""One request through the proxy: decide, send, pass the answer on while listening, and bill it afterwards.

If anything of ours fails, the request goes out as it came, and the failure is counted.
"""

from __future__ import annotations

import asyncio
import logging
import re
import sqlite3
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from dataclasses import field
from typing import TYPE_CHECKING, cast

from reverie.errors import ReverieError
from reverie.library.wires import wire_named
from reverie.parsing import load_json
from reverie.plugins import guarded
from reverie.proxy.answers import Listener
from reverie.proxy.bills import Bills
from reverie.proxy.bodies import Api
from reverie.proxy.conversations import Conversations, Plan
from reverie.proxy.hidden_rounds import Call, Ending, HiddenRounds
from reverie.proxy.owners import Owner
from reverie.proxy.recalled import price
from reverie.proxy.received import Received
from reverie.proxy.stats import RunTally
from reverie.proxy.upkeep import Upkeep
from reverie.quick import dataclass
from reverie.types import JsonObject

if TYPE_CHECKING:
    import httpx

_log = logging.getLogger("reverie.proxy")
_OURS = "Reverie"
_AS_IT_IS = Ending()
_MOST_REFUSAL = 1_000_000
WORSE = 1.005
"""How much more a conversation may have cost before its line in the statistics says so."""
_SLASH, _DOT = rb"(?:[/\\]|%(?:25)*(?:2f|5c))", rb"(?:\.|%(?:25)*2e)"
_UP = re.compile(b"%b%b{2}(?:%b|;|%%(?:25)*3b|#|$)" % (_SLASH, _DOT, _SLASH), re.IGNORECASE)
"""A step up in a path, as any server reads it: escaped any number of times, with backslashes or parameters."""
_HOP = frozenset(("connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "content-length"))
_NOT_SENT = _HOP | {"host", "proxy-authorization", "accept-encoding"}
_NOT_ANSWERED = _HOP | {"proxy-authenticate", "date", "server"}


@dataclass(eq=False, slots=True)
class Exchanges:
    """Sends requests to the upstream of their API."""

    upstreams: Mapping[str, httpx.URL]
    """The address of each API. A client only ever chooses the path below one."""
    client: httpx.AsyncClient
    conversations: Conversations
    bills: Bills
    tally: RunTally | None = None
    """Gets what this process does."""
    _biller: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "bills"))
    """One thread, because the meters work on one bill at a time."""
    _billing: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _upkeep: Upkeep = field(default_factory=Upkeep)

    async def send(
        self, call: Call, raw: bytes, owner: Owner, *, is_near: bool = True
    ) -> tuple[int, list[tuple[bytes, bytes]], AsyncIterator[bytes]]:
        """Sends one request; returns the status, the headers and the bytes of the answer as they come. `is_near`: the
        client is on this machine."""
        api, plan = call.api, Plan(raw, False, owner)
        if api is not None:
            plan = await self._plan(api, raw, owner, call.headers, is_near)
        plan, response = await self.send_plan(call, plan, raw)
        if api is None or not response.is_success:
            return response.status, _headers(response), response.raw()
        if plan.tool and response.is_readable:
            rounds = HiddenRounds(self, call, api, plan, raw)
            if response.streams:
                return response.status, _headers(response, is_plain=True), rounds.stream(response)
            response, body = await rounds.plain(response)
            if body is None:
                return response.status, _headers(response), response.raw()
            return response.status, _headers(response, is_plain=True), _given(body)
        most = response.most_streamed
        listener = Listener(api, streams=response.streams, encoding=response.encoding, most=most)
        return response.status, _headers(response), self._listened(response, listener, api, plan, raw)

    async def send_plan(self, call: Call, plan: Plan, raw: bytes) -> tuple[Plan, Received]:
        """Sends what was planned, and once more if the server finds it too long."""
        response = await self._sent(call, plan.body)
        if plan.asked_engine and response.status in (400, 413):
            return await self._again(call, plan, raw, response)
        return plan, response

    async def _sent(self, call: Call, body: bytes) -> Received:
        passed = [(name, value) for name, value in call.headers.raw if name.decode("latin-1").lower() not in _NOT_SENT]
        headers = [*passed, (b"accept-encoding", b"identity")]
        request = self.client.build_request(call.method, self._address(call), headers=headers, content=body)
        return Received(await self.client.send(request, stream=True))

    def _address(self, call: Call) -> httpx.URL:
        """The address of the API with the target of the client below its path. Only the path and the query are set, so
        no target changes the host. A path that a server may read as one above is an `httpx.InvalidURL`."""
        import httpx

        base = self.upstreams[call.to or self._guess_api(call)]
        if _UP.search(call.target.partition(b"?")[0]):
            raise httpx.InvalidURL("the path leads out of the address of the upstream")
        return base.copy_with(raw_path=base.raw_path.rstrip(b"/") + call.target)

    def _guess_api(self, call: Call) -> Api:
        """For paths that are not conversations: Anthropic's clients name the version of their API in a header."""
        is_messages = "anthropic-version" in call.headers or call.target.startswith(b"/v1/messages")
        return "messages" if is_messages else "chat"

    async def _again(self, call: Call, plan: Plan, raw: bytes, refusal: Received) -> tuple[Plan, Received]:
        """Sends a prompt that the server finds too long once more, compacted. Any other refusal is passed on."""
        said = await refusal.read(_MOST_REFUSAL)
        shorter = None
        try:
            with guarded(_OURS):
                if call.api is not None and said is not None:
                    told = said.decode("utf-8", "replace")
                    shorter = await self.conversations.shorter(plan, call.api, raw, told)
        except ReverieError as error:
            _log.warning("The prompt is too long and was not made shorter: %s", error)
        if shorter is None:
            return plan, refusal
        return shorter, await self._sent(call, shorter.body)

    async def _plan(self, api: Api, raw: bytes, owner: Owner, headers: Mapping[str, str], is_near: bool) -> Plan:
        if headers.get("content-encoding", "identity") != "identity":
            return Plan(raw, False, owner)  # compressed by the client, for the server only
        try:
            with guarded(_OURS):
                body = load_json(raw)
                if not isinstance(body, dict):
                    return Plan(raw, False, owner)
                return await self.conversations.plan(api, raw, cast(JsonObject, body), owner, is_near=is_near)
        except ReverieError as error:
            self.failed("passed_as_it_came")
            _log.warning("A request goes out as it came: %s", error)
            return Plan(raw, False, owner)

    async def _listened(
        self, response: Received, listener: Listener, api: Api, plan: Plan, raw: bytes
    ) -> AsyncIterator[bytes]:
        """Passes the answer on. Before its last part, the answer is recorded: the next request may come at once."""
        recorded, held = False, b""
        async with aclosing(response.raw()) as chunks:
            async for chunk in chunks:
                listener.take(chunk)
                if not recorded and (message := listener.message_of_stream()) is not None:
                    recorded = True
                    await self.record(plan, api, message, raw)
                if not listener.streams:
                    held, chunk = chunk, held
                if chunk:
                    yield chunk
            message = None if recorded else listener.message()
            if message is not None:
                await self.record(plan, api, message, raw)
            elif not recorded and plan.conversation:
                self.failed("answer_not_read")
            if held:
                yield held

    async def record(
        self, plan: Plan, api: Api, message: JsonObject, raw: bytes, ending: Ending | None = _AS_IT_IS
    ) -> None:
        """Records and bills an answer. Without an ending, the client does not get it yet."""
        try:
            with guarded(_OURS):
                if ending is None:
                    await self.conversations.heard(plan, api, message)
                else:
                    await self.conversations.answered(plan, api, message, *ending)
        except ReverieError as error:
            self.failed("answer_not_recorded")
            _log.warning("An answer was not recorded: %s", error)
        if plan.conversation:
            task = asyncio.create_task(self._book(plan, api, message, raw, ending is not None))
            self._billing.add(task)
            task.add_done_callback(self._billing.discard)
            if plan.breaks or plan.is_round or plan.marks.end >= 0:
                self.conversations.unpaid[plan.conversation] = task

    async def _book(self, plan: Plan, api: Api, message: JsonObject, raw: bytes, is_last: bool) -> None:
        try:
            with guarded(_OURS):
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(self._biller, self._book_now, plan, api, message, raw, is_last)
                self._biller.submit(self._upkeep.served, len(raw))
        except ReverieError as error:
            self.failed("not_billed")
            _log.warning("A request was not billed: %s", error)

    def _book_now(self, plan: Plan, api: Api, message: JsonObject, raw: bytes, is_last: bool) -> None:
        usage = wire_named(api).read_response(message).usage
        said = usage.output_tokens if plan.is_round else None  # without us, the last round is the whole answer
        said = said if is_last else 0
        two = self.bills.book(api, raw, plan.body, plan.owner.name, usage, is_ours=plan.reads_back, said=said)
        book, name = self.conversations.book, plan.conversation
        carried = book.carried(name)
        new = max(0, plan.recalled - carried)
        counts = {
            "requests": int(not plan.is_round),
            "rounds": int(plan.is_round),
            "changed": int(plan.is_changed),
            "results": plan.results,
            "compactions": int(plan.compacted),
            "fresh": usage.input_tokens,
            "read": usage.cache_read_input_tokens,
            "written": usage.cache_creation_input_tokens,
            "output": usage.output_tokens,
            "paid": two.paid,
            "direct": two.paid_directly,
            "sent_meter": two.sent_tokens,
            "direct_meter": two.direct_tokens,
            "recalled": new,
            "carried": plan.recalled - carried,
            "recall_meter": price(plan.recalled, new, usage),
        }
        book.add(name, **counts)
        if self.tally is not None:
            self.tally.add(name, two.model, counts)
        for cause in plan.breaks:
            book.add_break(name, cause)
        if plan.marks.end >= 0 and usage.cache_read_input_tokens + usage.cache_creation_input_tokens > 0:
            book.mark(name, plan.marks.end, plan.at)
        if two.sent_tokens == 0 and plan.is_changed and not plan.kept:
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


def _headers(response: Received, *, is_plain: bool = False) -> list[tuple[bytes, bytes]]:
    """The headers for the client. `is_plain`: it gets the answer decoded."""
    left_out = _NOT_ANSWERED | {"content-encoding"} if is_plain else _NOT_ANSWERED
    return [one for one in response.headers.raw if one[0].decode("latin-1").lower() not in left_out]


async def _given(data: bytes) -> AsyncIterator[bytes]:
    yield data
