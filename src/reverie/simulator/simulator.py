"""The simulated server, in process: requests in, answers or streams out, billed on the way. No HTTP.

It ties a responder (what is said) to a meter (what it costs) and a clock (when). A test drives it directly; the HTTP
layer does nothing but translate.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, cast

from reverie.errors import ReverieError, Unreachable
from reverie.models.base import PURPOSE_HEADER
from reverie.models.catalogue import Catalogue
from reverie.models.script_syntax import Fault
from reverie.simulator import chat as wire
from reverie.simulator.answer import Cut, Event, content_tokens, events, limited, stopped
from reverie.simulator.control import MOST_TIMES, Clock, Strike
from reverie.simulator.errors import ApiError
from reverie.simulator.ledger import Ledger
from reverie.simulator.meter import Billing, Caller, Meter, Opened
from reverie.simulator.responder import EchoResponder, Reply, Responder, api_error
from reverie.types import Usage

Body = Mapping[str, Any]
Headers = Mapping[str, str]
_MOST_STRIKES = 1_000
_PURPOSE_CHARACTERS = 64


@dataclass(frozen=True, slots=True)
class _Answer:
    """A reply ready to be sent, already billed."""

    message: dict[str, Any]
    cut_after: int | None
    pace_s: float


class Simulator:
    """A free stand-in for the Messages API and for chat completions.

    `responder` says what is answered (default: an echo). `window` replaces every model's context window.
    `control_key` is what `/_sim/` asks for over HTTP (default: a random one).
    """

    def __init__(
        self,
        responder: Responder | None = None,
        *,
        catalogue: Catalogue | None = None,
        clock: Clock | None = None,
        window: int | None = None,
        ledger: Ledger | None = None,
        seed: str = "",
        control_key: str = "",
    ) -> None:
        self.control_key = control_key or secrets.token_urlsafe(16)
        self.clock = clock or Clock()
        self.meter = Meter(catalogue, window=window, ledger=ledger)
        self._responder = responder or EchoResponder()
        self._seed = seed
        self._answers = 0
        self._strikes: deque[Strike] = deque()

    @property
    def ledger(self) -> Ledger:
        """Every request so far, as it was billed."""
        return self.meter.ledger

    def bill(self, body: Body, *, output_tokens: int = 0) -> Billing:
        """Bills a request without answering it, at the clock's time."""
        return self.meter.bill(body, self.clock.now(), output_tokens=output_tokens)

    def fail_next(self, status: int, *, times: int = 1, message: str = "", retry_after: float | None = None) -> None:
        """Answers the next `times` requests with this status (429, 529, 500, 401 …)."""
        if not 1 <= times <= MOST_TIMES or len(self._strikes) >= _MOST_STRIKES:
            raise ValueError(f"times is 1 to {MOST_TIMES:,}, and at most {_MOST_STRIKES:,} faults wait")
        self._strikes.append(Strike(status, times, message, retry_after))

    async def messages(self, body: Body, headers: Headers | None = None) -> dict[str, Any]:
        """Answers a request at once. Raises `ApiError`, or `Unreachable` where a fault breaks the connection."""
        answer = await self._answer(body, headers)
        if answer.cut_after is not None:
            raise Unreachable("The connection was cut before the answer was complete.")
        return answer.message

    async def stream(self, body: Body, headers: Headers | None = None) -> AsyncIterator[Event]:
        """Answers a request as events. Errors come before the first event; a cut raises `Unreachable` on the way."""
        answer = await self._answer({**body, "stream": True}, headers)
        try:
            for event in events(answer.message, cut_after=answer.cut_after):
                if answer.pace_s and event["type"] == "content_block_delta":
                    await asyncio.sleep(answer.pace_s)
                yield event
        except Cut:
            raise Unreachable("The connection was cut in the middle of the answer.") from None

    def count_tokens(self, body: Body, headers: Headers | None = None) -> dict[str, Any]:
        """The free estimate: tokens after context edits, and what they were before."""
        tokens, original = self.meter.count(body, caller_of(headers))
        if body.get("context_management"):
            return {"input_tokens": tokens, "context_management": {"original_input_tokens": original}}
        return {"input_tokens": tokens}

    async def chat(self, body: Body, headers: Headers | None = None) -> Mapping[str, Any]:
        """Answers a chat-completions request at once."""
        opened, reply, content, stop, usage, name = await self._chat(body, headers)
        if _cut_of(reply) is not None:
            raise Unreachable("The connection was cut before the answer was complete.")
        return wire.completion(name, str(body["model"]), content, stop, usage, int(opened.started))

    async def chat_stream(self, body: Body, headers: Headers | None = None) -> AsyncIterator[Event]:
        """Answers a chat-completions request as chunks."""
        opened, reply, content, stop, usage, name = await self._chat(body, headers)
        options = cast("Mapping[str, Any]", body.get("stream_options") or {})
        told = usage if options.get("include_usage") else None
        try:
            for chunk in wire.chunked(
                name, str(body["model"]), content, stop, told, int(opened.started), _cut_of(reply)
            ):
                if reply.delay_s and chunk["choices"]:
                    await asyncio.sleep(reply.delay_s)
                yield chunk
        except Cut:
            raise Unreachable("The connection was cut in the middle of the answer.") from None

    async def _answer(self, body: Body, headers: Headers | None) -> _Answer:
        caller, started = caller_of(headers), self.clock.now()
        try:
            self._strike()
            opened = self.meter.open(body, started, caller)
            reply = Reply([], "compaction") if opened.paused else await self._reply(body, caller)
        except ReverieError as error:
            self.meter.refuse(body, started, str(error), caller)
            raise
        content, stop, sequence = _finished(body, opened, reply)
        name = self._name("msg_")
        tokens = 0 if opened.paused or body["max_tokens"] == 0 else content_tokens(content)
        billing = self.meter.begin(opened, tokens, message_id=name)
        message: dict[str, Any] = {
            "id": name,
            "type": "message",
            "role": "assistant",
            "model": str(body["model"]),
            "content": content,
            "stop_reason": stop,
            "stop_sequence": sequence,
            "usage": _usage(opened, billing.usage) | (reply.usage or {}),
        }
        if opened.summary is not None:
            message["content"] = [{"type": "compaction", "content": opened.summary}, *content]
        if body.get("context_management"):
            message["context_management"] = {"applied_edits": opened.applied}
        if "diagnostics" in body:
            message["diagnostics"] = opened.diagnosis
        if opened.deleted_results:
            message["cache_edits"] = {
                "deleted_tool_results": opened.deleted_results,
                "deleted_input_tokens": opened.deleted_tokens,
            }
        return _Answer(message, _cut_of(reply), reply.delay_s)

    async def _chat(
        self, body: Body, headers: Headers | None
    ) -> tuple[Opened, Reply, list[dict[str, Any]], str, Usage, str]:
        caller, started = caller_of(headers), self.clock.now()
        try:
            self._strike()
            plain = wire.to_messages(body)
            opened = self.meter.open_chat(plain, started, caller)
            reply = await self._reply(plain, caller)
        except ReverieError as error:
            self.meter.refuse(body, started, str(error), caller, "/v1/chat/completions")
            raise
        limit = plain["max_tokens"] or opened.facts.max_output
        content, cut = limited(reply.content, limit)
        stop = "max_tokens" if cut else reply.stop_reason
        name = self._name("chatcmpl-")
        tokens = content_tokens(content)
        billing = self.meter.begin(opened, tokens, message_id=name, endpoint="/v1/chat/completions")
        return opened, reply, content, stop, billing.usage, name

    async def _reply(self, body: Body, caller: Caller) -> Reply:
        if body["max_tokens"] == 0:
            return Reply([], "max_tokens")
        reply = await self._responder.reply(body, purpose=caller.purpose)
        if reply.wait_s:
            await asyncio.sleep(reply.wait_s)
        if reply.fault is not None:
            _raise(reply.fault)
        return reply

    def _strike(self) -> None:
        if not self._strikes:
            return
        due = self._strikes.popleft()
        if due.times > 1:
            self._strikes.appendleft(replace(due, times=due.times - 1))
        raise ApiError(due.status, due.message, retry_after=due.retry_after)

    def _name(self, prefix: str) -> str:
        self._answers += 1
        return prefix + "01" + blake2b(f"{self._seed}/{self._answers}".encode(), digest_size=11).hexdigest()


def caller_of(headers: Headers | None) -> Caller:
    """Who asks, by their headers. Without headers nothing is checked about beta features."""
    if headers is None:
        return Caller()
    low = {name.lower(): value for name, value in headers.items()}
    key = low.get("x-api-key") or low.get("authorization", "").removeprefix("Bearer ")
    betas = tuple(part.strip() for part in low.get("anthropic-beta", "").split(",") if part.strip())
    # The key itself is nobody's business: books and files only need to tell workspaces apart.
    workspace = blake2b(key.encode(), digest_size=4).hexdigest() if key else ""
    return Caller(workspace, betas, low.get(PURPOSE_HEADER, "main")[:_PURPOSE_CHARACTERS])


def _raise(fault: Fault) -> None:
    error = api_error(fault)
    if error is not None:
        raise error
    if fault.kind == "unreachable":
        raise Unreachable("The connection broke before there was an answer.")


def _cut_of(reply: Reply) -> int | None:
    return reply.fault.after_chars if reply.fault is not None and reply.fault.kind == "cut" else None


def _finished(body: Body, opened: Opened, reply: Reply) -> tuple[list[dict[str, Any]], str, str | None]:
    """The reply as far as stop sequences, `max_tokens` and the window let it go."""
    content, sequence = stopped(reply.content, cast("list[str]", body.get("stop_sequences") or []))
    stop = reply.stop_reason if sequence is None else "stop_sequence"
    room = opened.window - opened.prompt_tokens
    limit = cast("int", body["max_tokens"])
    content, cut = limited(content, max(0, min(limit, room)))
    if cut:
        stop, sequence = ("max_tokens" if limit <= room else "model_context_window_exceeded"), None
    return content, stop, sequence


def _usage(opened: Opened, usage: Usage) -> dict[str, Any]:
    """The usage object; where the server may compact, with each of its runs apart."""
    told = usage.wire() | {"service_tier": "standard"}
    if opened.compact is not None:
        summary = opened.summary_usage
        runs = [] if summary is None else [{"type": "compaction", **summary.wire()}]
        told["iterations"] = runs if opened.paused else [*runs, {"type": "message", **usage.wire()}]
    return told
