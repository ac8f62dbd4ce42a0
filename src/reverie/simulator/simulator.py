"""The simulated server, in process: it answers requests, at once or as a stream, and bills them.

It joins a responder (the answers), a meter (the cost) and a clock. Tests can call it directly; `http.py` serves it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import Any, cast

from reverie.errors import ReverieError, Unreachable
from reverie.models.base import PURPOSE_HEADER
from reverie.models.catalogue import Catalogue
from reverie.models.script_syntax import Fault
from reverie.quick import dataclass
from reverie.simulator import chat, responses
from reverie.simulator.answer import Event, content_tokens, cut_at_budget, cut_at_stop, events
from reverie.simulator.check_messages import signature_of
from reverie.simulator.control import EVERY_ROUTE, MOST_TIMES, Clock, QueuedFault, RouteProfile
from reverie.simulator.errors import ApiError
from reverie.simulator.ledger import Billing, Ledger
from reverie.simulator.meter import Caller, Meter, OpenRequest
from reverie.simulator.responder import EchoResponder, Reply, Responder, api_error
from reverie.simulator.threads import LIFETIME_S, KeptConversations, Threads, continuing, keep
from reverie.simulator.tokens import text_tokens
from reverie.types import Usage

Body = Mapping[str, Any]
Headers = Mapping[str, str]
_MOST_FAULTS = 1_000
_PURPOSE_CHARACTERS = 64
_MESSAGES, _CHAT, _RESPONSES = "/v1/messages", "/v1/chat/completions", "/v1/responses"
_COMPACT = "/v1/responses/compact"
_NO_PROFILE = RouteProfile()


@dataclass(frozen=True, slots=True)
class _BilledAnswer:
    """An answer that is billed and can be sent."""

    message: dict[str, Any]
    cut_after: int | None
    pace_s: float


@dataclass(frozen=True, slots=True)
class _OpenAnswer:
    """An answer to a request of OpenAI's form, billed."""

    name: str
    content: list[dict[str, Any]]
    stop: str
    usage: Usage
    started: int
    cut: int | None
    pace_s: float

    def whole(self) -> tuple[list[dict[str, Any]], str, Usage]:
        """What an answer without a stream has; raises `Unreachable` if it is cut."""
        if self.cut is not None:
            raise Unreachable("The connection was cut before the answer was complete.")
        return self.content, self.stop, self.usage


class Simulator:
    """A free simulation of the Messages API, of chat completions and of the Responses API.

    `responder` answers (default: an echo). `window` replaces the context window of every model. `control_key` is the
    key of `/_sim/` over HTTP (default: a random one). `threads`: keeps the conversations of requests with a `thread`.
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
        threads: bool = False,
    ) -> None:
        self.control_key = control_key or secrets.token_urlsafe(16)
        self.clock = clock or Clock()
        self.meter = Meter(catalogue, window=window, ledger=ledger)
        self.ledger = self.meter.ledger
        self._responder = responder or EchoResponder()
        self._seed = seed
        self._answers = 0
        self._faults: deque[QueuedFault] = deque()
        self._profile: dict[str, RouteProfile] = {}
        self._entered: Counter[str] = Counter()
        self._threads = Threads(enabled=threads)
        self._responses = KeptConversations()

    def bill(self, body: Body, *, output_tokens: int = 0) -> Billing:
        """Bills a request without answering it, at the clock's time."""
        return self.meter.bill(body, self.clock.now(), output_tokens=output_tokens)

    def fail_next(
        self,
        status: int,
        *,
        times: int = 1,
        message: str = "",
        retry_after: float | None = None,
        route: str = EVERY_ROUTE,
    ) -> None:
        """Answers the next `times` requests, of one route or of all, with this status (429, 529, 500, 401 …)."""
        if not 1 <= times <= MOST_TIMES or len(self._faults) >= _MOST_FAULTS:
            raise ValueError(f"times is 1 to {MOST_TIMES:,}, and at most {_MOST_FAULTS:,} faults wait")
        self._faults.append(QueuedFault(status, times, message, retry_after, route))

    def behave(self, profile: Mapping[str, RouteProfile]) -> None:
        """Gives routes their latency and their faults, in place of those they had."""
        self._profile = dict(profile)
        self._entered.clear()

    async def enter(self, route: str) -> None:
        """Waits as long as the profile of this route says; raises the error that is due."""
        profile = self._profile_of(route)
        self._entered[route] += 1
        number = self._entered[route]
        if profile.wait_s:
            await asyncio.sleep(profile.wait_s)
        due = next((fault for fault in self._faults if fault.route in (route, EVERY_ROUTE)), None)
        if due is not None:
            at = self._faults.index(due)
            del self._faults[at]
            if due.times > 1:
                self._faults.insert(at, replace(due, times=due.times - 1))
            raise ApiError(due.status, due.message, retry_after=due.retry_after)
        if profile.status and number % profile.every == 0:
            raise ApiError(profile.status, profile.message, retry_after=profile.retry_after)

    def _profile_of(self, route: str) -> RouteProfile:
        return self._profile.get(route) or self._profile.get(EVERY_ROUTE) or _NO_PROFILE

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
        caller = caller_of(headers)
        whole, _ = self._threads.resolve(body, caller.workspace, caller.betas, self.clock.now(), counting=True)
        tokens, original = self.meter.count(whole, caller)
        if body.get("context_management"):
            return {"input_tokens": tokens, "context_management": {"original_input_tokens": original}}
        return {"input_tokens": tokens}

    async def chat(self, body: Body, headers: Headers | None = None) -> Mapping[str, Any]:
        """Answers a chat-completions request at once."""
        answer = await self._chat(body, headers)
        return chat.completion(answer.name, str(body["model"]), *answer.whole(), answer.started)

    async def chat_stream(self, body: Body, headers: Headers | None = None) -> AsyncIterator[Event]:
        """Answers a chat-completions request as chunks."""
        answer = await self._chat(body, headers)
        options = cast("Mapping[str, Any]", body.get("stream_options") or {})
        shown = answer.usage if options.get("include_usage") else None
        parts = (answer.content, answer.stop, shown, answer.started, answer.cut)
        for chunk in chat.stream_chunks(answer.name, str(body["model"]), *parts):
            if answer.pace_s and chunk["choices"]:
                await asyncio.sleep(answer.pace_s)
            yield chunk

    async def responses(self, body: Body, headers: Headers | None = None) -> dict[str, Any]:
        """Answers a request of the Responses API at once."""
        answer = await self._respond(body, headers)
        return responses.response(answer.name, body, *answer.whole(), answer.started)

    async def compact(self, body: Body, headers: Headers | None = None) -> dict[str, Any]:
        """Compacts a conversation of the Responses API: one request that the responder answers with a summary."""
        caller = caller_of(headers)
        answer, said = await self._open_answer(
            _COMPACT,
            "resp_",
            body,
            headers,
            lambda: self._whole_input(body, caller),
            lambda made: responses.with_summary_asked(responses.with_instructions(made, body)),
        )
        content, _, usage = answer.whole()
        return responses.compaction(answer.name, said, content, usage, answer.started)

    async def responses_stream(self, body: Body, headers: Headers | None = None) -> AsyncIterator[Event]:
        """Answers a request of the Responses API as events."""
        answer = await self._respond(body, headers)
        made = responses.response(answer.name, body, answer.content, answer.stop, answer.usage, answer.started)
        for event in responses.events(made, answer.cut):
            if answer.pace_s and "delta" in event:
                await asyncio.sleep(answer.pace_s)
            yield event

    async def _answer(self, body: Body, headers: Headers | None) -> _BilledAnswer:
        caller, started = caller_of(headers), self.clock.now()
        try:
            await self.enter(_MESSAGES)
            whole, kept = self._threads.resolve(body, caller.workspace, caller.betas, started)
            opened = self.meter.open(whole, started, caller)
            with continuing(kept):
                reply = Reply([], "compaction") if opened.paused else await self._reply(whole, caller)
        except ReverieError as error:
            self.meter.refuse(body, started, str(error), caller)
            raise
        content, stop, sequence = _cut_reply(whole, opened, reply)
        name = self._name("msg_")
        tokens = 0 if opened.paused or body["max_tokens"] == 0 else content_tokens(content)
        billing = self.meter.begin(opened, tokens, message_id=name)
        if opened.summary is not None:
            content, stop = _with_summary(body, opened.summary, content, stop)
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
        if body.get("context_management"):
            message["context_management"] = {"applied_edits": opened.applied}
        if "diagnostics" in body:
            message["diagnostics"] = opened.diagnosis
        prompt = opened.step.prompt
        if prompt.edits:
            deleted = {"deleted_tool_results": len(prompt.edits), "deleted_input_tokens": prompt.deleted_tokens}
            message["cache_edits"] = deleted
        if body.get("thread") is not None:
            said = keep(whole, content, caller.workspace, prompt.total, started + LIFETIME_S)
            self._threads.add(name, said, kept)
        return _BilledAnswer(message, _cut_of(reply), reply.delay_s or self._profile_of(_MESSAGES).pace_s)

    async def _chat(self, body: Body, headers: Headers | None) -> _OpenAnswer:
        answer, _ = await self._open_answer(_CHAT, "chatcmpl-", body, headers, lambda: chat.to_messages(body))
        return answer

    async def _respond(self, body: Body, headers: Headers | None) -> _OpenAnswer:
        caller = caller_of(headers)
        answer, said = await self._open_answer(
            _RESPONSES,
            "resp_",
            body,
            headers,
            lambda: self._whole_input(body, caller),
            lambda made: responses.with_instructions(made, body),
        )
        if body.get("store") is not False:
            kept = keep(said, answer.content, caller.workspace, answer.usage.prompt, 0)
            self._responses.put(answer.name, kept)
        return answer

    def _whole_input(self, body: Body, caller: Caller) -> dict[str, Any]:
        """A request of the Responses API in the form of the Messages API, with what it continues."""
        previous, earlier = body.get("previous_response_id"), None
        if previous is not None:
            kept = self._responses.get(previous, caller.workspace, 0)
            if kept is None:
                said = f"Previous response with id '{str(previous)[:80]}' not found."
                raise ApiError(400, said, code="previous_response_not_found")
            earlier = kept.body
        return responses.to_messages(body, earlier)

    async def _open_answer(
        self,
        route: str,
        prefix: str,
        body: Body,
        headers: Headers | None,
        convert: Callable[[], dict[str, Any]],
        complete: Callable[[dict[str, Any]], dict[str, Any]] = lambda made: made,
    ) -> tuple[_OpenAnswer, dict[str, Any]]:
        """Answers a request of OpenAI's form; also returns it in the form of the Messages API, not yet completed."""
        caller, started = caller_of(headers), self.clock.now()
        try:
            await self.enter(route)
            said = convert()
            plain = complete(said)
            opened = self.meter.open_chat(plain, started, caller)
            reply = await self._reply(plain, caller)
        except ReverieError as error:
            self.meter.refuse(body, started, str(error), caller, route)
            raise
        content, cut = cut_at_budget(reply.content, plain["max_tokens"] or opened.facts.max_output)
        stop = "max_tokens" if cut else reply.stop_reason
        name = self._name(prefix)
        billing = self.meter.begin(opened, content_tokens(content), message_id=name, endpoint=route)
        pace = reply.delay_s or self._profile_of(route).pace_s
        return _OpenAnswer(name, content, stop, billing.usage, int(started), _cut_of(reply), pace), said

    async def _reply(self, body: Body, caller: Caller) -> Reply:
        if body["max_tokens"] == 0:
            return Reply([], "max_tokens")
        reply = await self._responder.reply(body, purpose=caller.purpose)
        if reply.wait_s:
            await asyncio.sleep(reply.wait_s)
        if reply.fault is not None:
            _raise(reply.fault)
        return reply.fitted(body["messages"], body.get("tools") or (), body.get("tool_choice"), _schema_of(body))

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


def _with_summary(
    body: Body, summary: str, content: list[dict[str, Any]], stop: str
) -> tuple[list[dict[str, Any]], str]:
    """The content with the summary of a compaction. One that was asked for is signed, and is all or nothing."""
    block = {"type": "compaction", "content": summary}
    if not body.get("compaction"):
        return [block, *content], stop
    if text_tokens(summary) > body["max_tokens"]:
        return [], "max_tokens"
    return [{**block, "signature": signature_of(summary)}], "compaction"


def _usage(opened: OpenRequest, usage: Usage) -> dict[str, Any]:
    values = usage.wire() | {"service_tier": "standard"}
    if opened.compact is not None:
        summary = opened.summary_usage
        runs = [] if summary is None else [{"type": "compaction", **summary.wire()}]
        values["iterations"] = runs if opened.paused else [*runs, {"type": "message", **usage.wire()}]
    return values
