"""The simulated server, in process: it answers requests, at once or as a stream, and bills them.

It joins a responder (the answers), a meter (the cost) and a clock. Tests can call it directly; `http.py` serves it.
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
from reverie.simulator.answer import Event, content_tokens, cut_at_budget, cut_at_stop, events
from reverie.simulator.control import MOST_TIMES, Clock, QueuedFault
from reverie.simulator.errors import ApiError
from reverie.simulator.ledger import Billing, Ledger
from reverie.simulator.meter import Caller, Meter, OpenRequest
from reverie.simulator.responder import EchoResponder, Reply, Responder, api_error
from reverie.types import Usage

Body = Mapping[str, Any]
Headers = Mapping[str, str]
_MOST_FAULTS = 1_000
_PURPOSE_CHARACTERS = 64


@dataclass(frozen=True, slots=True)
class _BilledAnswer:
    """An answer that is billed and can be sent."""

    message: dict[str, Any]
    cut_after: int | None
    pace_s: float


class Simulator:
    """A free simulation of the Messages API and of chat completions.

    `responder` answers (default: an echo). `window` replaces the context window of every model. `control_key` is the
    key of `/_sim/` over HTTP (default: a random one).
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
        self.ledger = self.meter.ledger
        self._responder = responder or EchoResponder()
        self._seed = seed
        self._answers = 0
        self._faults: deque[QueuedFault] = deque()

    def bill(self, body: Body, *, output_tokens: int = 0) -> Billing:
        """Bills a request without answering it, at the clock's time."""
        return self.meter.bill(body, self.clock.now(), output_tokens=output_tokens)

    def fail_next(self, status: int, *, times: int = 1, message: str = "", retry_after: float | None = None) -> None:
        """Answers the next `times` requests with this status (429, 529, 500, 401 …)."""
        if not 1 <= times <= MOST_TIMES or len(self._faults) >= _MOST_FAULTS:
            raise ValueError(f"times is 1 to {MOST_TIMES:,}, and at most {_MOST_FAULTS:,} faults wait")
        self._faults.append(QueuedFault(status, times, message, retry_after))

    async def messages(self, body: Body, headers: Headers | None = None) -> dict[str, Any]:
        """Answers a request at once. Raises `ApiError`, or `Unreachable` if a fault breaks the connection."""
        answer = await self._answer(body, headers)
        if answer.cut_after is not None:
            raise Unreachable("The connection was cut before the answer was complete.")
        return answer.message

    async def stream(self, body: Body, headers: Headers | None = None) -> AsyncIterator[Event]:
        """Answers a request as events. Errors come before the first event; a cut raises `Unreachable`."""
        answer = await self._answer({**body, "stream": True}, headers)
        for event in events(answer.message, cut_after=answer.cut_after):
            if answer.pace_s and event["type"] == "content_block_delta":
                await asyncio.sleep(answer.pace_s)
            yield event

    def count_tokens(self, body: Body, headers: Headers | None = None) -> dict[str, Any]:
        """The tokens of a request, after context edits and before them."""
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
        shown = usage if options.get("include_usage") else None
        cut, started = _cut_of(reply), int(opened.started)
        for chunk in wire.stream_chunks(name, str(body["model"]), content, stop, shown, started, cut):
            if reply.delay_s and chunk["choices"]:
                await asyncio.sleep(reply.delay_s)
            yield chunk

    async def _answer(self, body: Body, headers: Headers | None) -> _BilledAnswer:
        caller, started = caller_of(headers), self.clock.now()
        try:
            self._raise_queued_fault()
            opened = self.meter.open(body, started, caller)
            reply = Reply([], "compaction") if opened.paused else await self._reply(body, caller)
        except ReverieError as error:
            self.meter.refuse(body, started, str(error), caller)
            raise
        content, stop, sequence = _cut_reply(body, opened, reply)
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
        prompt = opened.step.prompt
        if prompt.edits:
            deleted = {"deleted_tool_results": len(prompt.edits), "deleted_input_tokens": prompt.deleted_tokens}
            message["cache_edits"] = deleted
        return _BilledAnswer(message, _cut_of(reply), reply.delay_s)

    async def _chat(
        self, body: Body, headers: Headers | None
    ) -> tuple[OpenRequest, Reply, list[dict[str, Any]], str, Usage, str]:
        caller, started = caller_of(headers), self.clock.now()
        try:
            self._raise_queued_fault()
            plain = wire.to_messages(body)
            opened = self.meter.open_chat(plain, started, caller)
            reply = await self._reply(plain, caller)
        except ReverieError as error:
            self.meter.refuse(body, started, str(error), caller, "/v1/chat/completions")
            raise
        content, cut = cut_at_budget(reply.content, plain["max_tokens"] or opened.facts.max_output)
        stop = "max_tokens" if cut else reply.stop_reason
        name = self._name("chatcmpl-")
        billing = self.meter.begin(opened, content_tokens(content), message_id=name, endpoint="/v1/chat/completions")
        return opened, reply, content, stop, billing.usage, name

    async def _reply(self, body: Body, caller: Caller) -> Reply:
        if body["max_tokens"] == 0:
            return Reply([], "max_tokens")
        reply = await self._responder.reply(body, purpose=caller.purpose)
        if reply.wait_s:
            await asyncio.sleep(reply.wait_s)
        if reply.fault is not None:
            _raise(reply.fault)
        return reply.fitted(body["messages"], body.get("tools") or (), body.get("tool_choice"), _schema_of(body))

    def _raise_queued_fault(self) -> None:
        if not self._faults:
            return
        due = self._faults.popleft()
        if due.times > 1:
            self._faults.appendleft(replace(due, times=due.times - 1))
        raise ApiError(due.status, due.message, retry_after=due.retry_after)

    def _name(self, prefix: str) -> str:
        self._answers += 1
        return prefix + "01" + blake2b(f"{self._seed}/{self._answers}".encode(), digest_size=11).hexdigest()


def caller_of(headers: Headers | None) -> Caller:
    """Who sends a request, by its headers. Without headers, beta features are not checked."""
    if headers is None:
        return Caller()
    low = {name.lower(): value for name, value in headers.items()}
    key = low.get("x-api-key") or low.get("authorization", "").removeprefix("Bearer ")
    betas = tuple(part.strip() for part in low.get("anthropic-beta", "").split(",") if part.strip())
    # The key itself is not kept: the ledger only needs to distinguish workspaces.
    workspace = blake2b(key.encode(), digest_size=4).hexdigest() if key else ""
    return Caller(workspace, betas, low.get(PURPOSE_HEADER, "main")[:_PURPOSE_CHARACTERS])


def _schema_of(body: Body) -> Mapping[str, Any] | None:
    """The JSON schema that the answer must have."""
    output = cast("Mapping[str, Any]", body.get("output_config") or {})
    form = output.get("format") or body.get("output_format")
    schema = cast("Mapping[str, Any]", form).get("schema") if isinstance(form, Mapping) else None
    return cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else None


def _raise(fault: Fault) -> None:
    error = api_error(fault)
    if error is not None:
        raise error
    if fault.kind == "unreachable":
        raise Unreachable("The connection broke before there was an answer.")


def _cut_of(reply: Reply) -> int | None:
    return reply.fault.after_chars if reply.fault is not None and reply.fault.kind == "cut" else None


def _cut_reply(body: Body, opened: OpenRequest, reply: Reply) -> tuple[list[dict[str, Any]], str, str | None]:
    """The reply, cut at a stop sequence, `max_tokens` or the end of the window."""
    content, sequence = cut_at_stop(reply.content, cast("list[str]", body.get("stop_sequences") or []))
    stop = reply.stop_reason if sequence is None else "stop_sequence"
    room = opened.window - opened.step.prompt.total
    limit = cast("int", body["max_tokens"])
    content, cut = cut_at_budget(content, max(0, min(limit, room)))
    if cut:
        stop, sequence = ("max_tokens" if limit <= room else "model_context_window_exceeded"), None
    return content, stop, sequence


def _usage(opened: OpenRequest, usage: Usage) -> dict[str, Any]:
    values = usage.wire() | {"service_tier": "standard"}
    if opened.compact is not None:
        summary = opened.summary_usage
        runs = [] if summary is None else [{"type": "compaction", **summary.wire()}]
        values["iterations"] = runs if opened.paused else [*runs, {"type": "message", **usage.wire()}]
    return values
