"""Claude models through the official SDK, and any server that speaks the Messages API.

It only converts requests, responses and errors; the SDK's retries are off. A tool input that is not a JSON object
becomes `{"_unparsed": text}`, so that the model gets an error message instead of an exception.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from functools import partial
from typing import Any

from reverie.models import wire
from reverie.models.base import Capabilities, ModelEvent, Request, Response, TextDelta, ThinkingDelta, ToolCallStarted
from reverie.models.sdk import SdkModel
from reverie.models.wire import as_object, read_input
from reverie.types import Json, JsonObject, Origin, Usage, parse_block

VENDOR_URL = "https://api.anthropic.com"

_NO_KEY = "none"
_PIECES = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "compaction_delta": ("content", "content"),
    "input_json_delta": ("input", "partial_json"),
}
"""The kinds of deltas that add to a text: the key of the block, and that of the delta."""


class AnthropicModel(SdkModel):
    """One Claude model at one endpoint."""

    vendor = "anthropic"
    setting = "ANTHROPIC_BASE_URL (model.anthropic_base_url)"
    id_header = "request-id"

    def __init__(
        self,
        model: str,
        *,
        key: str | None,
        token: str | None = None,
        base_url: str | None = None,
        timeout_s: float = 600.0,
        capabilities: Capabilities | None = None,
        betas: tuple[str, ...] = (),
    ) -> None:
        keys = {"auth_token": token} if token and not key else {"api_key": key or _NO_KEY}
        able = capabilities or Capabilities(True, ("5m", "1h"), context_edits=True, output_schema=True)
        super().__init__(model, base_url or VENDOR_URL, "AsyncAnthropic", keys, timeout_s, able)
        self._betas = betas

    def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        body = wire.body(request)
        betas = (*self._betas, *(beta for beta in request.betas if beta not in self._betas))
        fixed: JsonObject = {"model": body["model"], "max_tokens": body["max_tokens"], "messages": []}

        def create(client: Any) -> Any:
            if betas or request.context_management is not None:
                return partial(client.beta.messages.create, **fixed, betas=list(betas))
            return partial(client.messages.create, **fixed)

        return self._stream(request, create, body, AnthropicAnswer())


class AnthropicAnswer:
    """Builds the response from the events of a stream."""

    def __init__(self) -> None:
        self.request_id: str | None = None
        self._message: JsonObject = {}
        self._usage: JsonObject = {}
        self._blocks: list[JsonObject] = []
        self._pieces: dict[tuple[int, str], list[str]] = {}
        """What deltas add to the texts of blocks, by the number of the block and the key."""
        self._citations: dict[int, list[Json]] = {}
        self._by_index: dict[int, int] = {}
        """The newest block of each index: some servers give all blocks the same one."""
        self._edits: list[JsonObject] = []
        self.ended = False

    def take(self, event: JsonObject) -> Iterator[ModelEvent]:
        index = int(event.get("index") or 0)
        match event.get("type"):
            case "message_start":
                self._message = as_object(event.get("message"))
                self._count(self._message.get("usage"))
            case "content_block_start":
                yield from self._begin(index, dict(as_object(event.get("content_block"))))
            case "content_block_delta":
                yield from self._grow(index, as_object(event.get("delta")))
            case "message_delta":
                self._message |= as_object(event.get("delta"))
                self._count(event.get("usage"))
                managed = as_object(event.get("context_management") or self._message.get("context_management"))
                self._edits = list(managed.get("applied_edits") or [])
            case "message_stop":
                self.ended = True
            case _:
                pass  # an unknown kind of event carries no content

    def message(self) -> JsonObject:
        """The response as the server gives it without a stream."""
        return {**self._message, "content": self._content(), "usage": self._usage}

    def response(self) -> Response:
        return Response(
            id=str(self._message.get("id") or ""),
            model=str(self._message.get("model") or ""),
            content=tuple(parse_block(block, Origin.MODEL) for block in self._content()),
            stop_reason=str(self._message.get("stop_reason") or "end_turn"),
            usage=Usage.parse(self._usage) or Usage(),
            request_id=self.request_id,
            applied_edits=tuple(self._edits),
            raw_usage=self._usage,
        )

    def _begin(self, index: int, block: JsonObject) -> Iterator[ModelEvent]:
        self._by_index[index] = len(self._blocks)
        self._blocks.append(block)
        match block:
            case {"type": "tool_use"}:
                yield ToolCallStarted(str(block.get("id")), str(block.get("name")))
            case {"type": "text", "text": str(text)} if text:
                yield TextDelta(text)
            case {"type": "thinking", "thinking": str(text)} if text:
                yield ThinkingDelta(text)
            case _:
                pass

    def _grow(self, index: int, delta: JsonObject) -> Iterator[ModelEvent]:
        if index not in self._by_index:
            self._by_index[index] = len(self._blocks)
            self._blocks.append({"type": "text", "text": ""})
        number = self._by_index[index]
        kind = str(delta.get("type"))
        if kind in _PIECES:
            key, added = _PIECES[kind]
            piece = str(delta.get(added) or "")
            self._pieces.setdefault((number, key), []).append(piece)
            if kind == "text_delta":
                yield TextDelta(piece)
            elif kind == "thinking_delta":
                yield ThinkingDelta(piece)
        elif kind == "citations_delta":
            self._citations.setdefault(number, []).append(delta.get("citation"))

    def _content(self) -> list[JsonObject]:
        blocks = [dict(block) for block in self._blocks]
        for (number, key), pieces in self._pieces.items():
            block, text = blocks[number], "".join(pieces)
            if key != "input":
                block[key] = str(block.get(key) or "") + text
            elif text:
                block[key] = read_input(text)
        for number, citations in self._citations.items():
            blocks[number]["citations"] = [*(blocks[number].get("citations") or []), *citations]
        return blocks

    def _count(self, usage: Json) -> None:
        """Counts are cumulative: a later event replaces the counts of an earlier one."""
        self._usage |= {key: value for key, value in as_object(usage).items() if value is not None}
