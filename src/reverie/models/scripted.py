"""A model that plays a script, for tests, documentation and the lab: `scripted:<file>`.

It streams what `script.py` chose, with its delays and faults. Usage is deterministic: bytes/4, and what the same
conversation sent before counts as cached. For realistic bills use the simulator.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Iterator

from reverie import errors
from reverie.models import wire
from reverie.models.base import (
    UNPARSED_INPUT,
    Capabilities,
    Finished,
    ModelEvent,
    Request,
    Response,
    TextDelta,
    ThinkingDelta,
    ToolCallStarted,
)
from reverie.models.script import Script, ScriptedReply
from reverie.models.script_syntax import SERVER_FAULTS, Fault
from reverie.types import JsonObject, Origin, Usage, parse_block

CHUNK = 40
"""Characters of a streamed piece."""

_THREADS_KEPT = 8


class ScriptedModel:
    """Plays one `Script`. Several conversations and forks may use it at the same time."""

    def __init__(self, script: Script, name: str | None = None) -> None:
        self._script = script
        self.name = name or f"scripted:{script.name}"
        self.capabilities = Capabilities(cache_markers=True, ttls=("5m", "1h"))
        self._sent: dict[str, dict[str, list[str]]] = {}
        self._rendered = wire.Rendered()

    async def stream(self, request: Request) -> AsyncIterator[ModelEvent]:
        messages = [message.wire() for message in request.messages]
        reply = self._script.reply(messages, purpose=request.purpose.value)
        reply = reply.fitted(messages, request.tools, request.tool_choice)
        await asyncio.sleep(reply.wait_s)
        fault = reply.fault
        if fault and fault.kind != "cut":
            raise _error(fault)
        for event in _events(reply.content, fault.after_chars if fault else None):
            if reply.delay_s:
                await asyncio.sleep(reply.delay_s)
            yield event
        if fault:
            raise _error(fault)
        yield Finished(self._response(request, reply))

    async def close(self) -> None:
        pass

    def _response(self, request: Request, reply: ScriptedReply) -> Response:
        output = sum(tokens(json.dumps(block, ensure_ascii=False)) for block in reply.content)
        parts = wire.prefix_parts(request, self._rendered)
        usage = self._usage(request, parts, output)
        if reply.usage is not None:
            usage = Usage.parse({**usage.wire(), **reply.usage}) or usage
        seed = f"{request.conversation}\0{request.thread}\0".encode("utf-8", "surrogatepass")
        digest = hashlib.blake2s(seed + wire.join_parts(parts), digest_size=10).hexdigest()
        return Response(
            id=f"msg_{digest}",
            model=wire.model_id(request.model),
            content=tuple(parse_block(block, Origin.MODEL) for block in reply.content),
            stop_reason=reply.stop_reason,
            usage=usage,
            request_id=f"req_{digest}",
            raw_usage=usage.wire(),
        )

    def _usage(self, request: Request, parts: list[str], output: int) -> Usage:
        threads = self._sent.setdefault(request.conversation, {})
        shared = max((wire.count_shared(parts, before) for before in threads.values()), default=0)
        threads.pop(request.thread, None)
        threads[request.thread] = parts
        if len(threads) > _THREADS_KEPT:
            del threads[next(iter(threads))]
        sizes = [tokens(part) for part in parts]
        if not request.markers:
            return Usage(input_tokens=sum(sizes), output_tokens=output)
        read, rest = sum(sizes[:shared]), sum(sizes[shared:])
        hour = rest if any(marker.ttl == "1h" for marker in request.markers) else 0
        return Usage(0, output, read, rest, rest - hour, hour)


def tokens(text: str) -> int:
    """Bytes/4, rounded up."""
    return (len(text.encode("utf-8", "surrogatepass")) + 3) // 4


def chunks(text: str) -> Iterator[str]:
    for start in range(0, len(text), CHUNK):
        yield text[start : start + CHUNK]


def _events(content: list[JsonObject], cut: int | None) -> Iterator[ModelEvent]:
    """The events of a reply, or of its first `cut` characters. A tool input counts, but is not shown."""
    left = float("inf") if cut is None else cut
    for block in content:
        for event, size in _block_events(block):
            if size > left:
                if isinstance(event, TextDelta) and left:
                    yield TextDelta(event.text[: int(left)])
                return
            left -= size
            yield event


def _block_events(block: JsonObject) -> Iterator[tuple[ModelEvent, int]]:
    match block["type"]:
        case "text":
            for chunk in chunks(block["text"]):
                yield TextDelta(chunk), len(chunk)
        case "thinking":
            for chunk in chunks(block["thinking"]):
                yield ThinkingDelta(chunk), len(chunk)
        case _:
            given: JsonObject = block["input"]
            raw = str(given.get(UNPARSED_INPUT) or json.dumps(given, ensure_ascii=False))
            yield ToolCallStarted(block["id"], block["name"]), len(raw)


def _error(fault: Fault) -> errors.ModelError:
    match fault.kind:
        case "cut":
            return errors.Unreachable("The connection broke in the middle of the answer (scripted).")
        case "unreachable":
            return errors.Unreachable("The server cannot be reached (scripted).")
        case "prompt-too-long":
            sentence = f"The prompt is too long: {fault.actual} tokens, and the model takes {fault.limit}."
            return errors.PromptTooLong(sentence, actual=fault.actual, limit=fault.limit)
        case "bad-request":
            return errors.BadRequest(fault.message or "The request was refused (scripted).", status=400)
        case "authentication":
            return errors.AuthenticationFailed("The key was refused (scripted).", status=401)
        case "overloaded" | "rate-limited" | "server-error":
            status, sentence = SERVER_FAULTS[fault.kind]
            return errors.Overloaded(f"{sentence} (scripted).", status=status, retry_after=fault.retry_after)
