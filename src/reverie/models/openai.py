"""Servers with the chat-completions API, through OpenAI's SDK: OpenAI, Ollama, vLLM, llama.cpp, LM Studio, OpenRouter.

It only converts requests, responses and errors; the SDK's retries are off. Ids and usage that a server leaves out are
replaced by deterministic ids and an estimate. Thinking that a server streams is shown, and kept without a signature.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator, Iterator
from dataclasses import field
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from reverie.models import openai_wire, wire
from reverie.models.base import Capabilities, ModelEvent, Request, Response, TextDelta, ThinkingDelta, ToolCallStarted
from reverie.models.openai_items import STOP_REASONS, read_usage
from reverie.models.sdk import SdkModel
from reverie.models.wire import as_object, read_input
from reverie.quick import dataclass
from reverie.types import Block, Json, JsonObject, Origin, TextBlock, ThinkingBlock, ToolUseBlock, Usage

VENDOR_URL = "https://api.openai.com/v1"

_NO_KEY = "none"


class OpenAIModel(SdkModel):
    """One model at one endpoint."""

    vendor = "openai"
    setting = "OPENAI_BASE_URL (model.openai_base_url)"
    id_header = "x-request-id"

    def __init__(
        self,
        model: str,
        *,
        key: str | None,
        base_url: str | None = None,
        timeout_s: float = 600.0,
        capabilities: Capabilities | None = None,
    ) -> None:
        able = capabilities or Capabilities(output_schema=True)
        super().__init__(model, base_url or VENDOR_URL, "AsyncOpenAI", {"api_key": key or _NO_KEY}, timeout_s, able)
        self._is_vendor = (urlsplit(self._url).hostname or "").endswith(("openai.com", "openai.azure.com"))

    def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        body = openai_wire.body(request, vendor=self._is_vendor)

        def create(client: Any) -> Any:
            return partial(client.chat.completions.create, model=body["model"], messages=[])

        return self._stream(request, create, body, _OpenAIAnswer(request))


@dataclass(slots=True)
class _Call:
    id: str
    name: str
    arguments: list[str] = field(default_factory=list[str])


class _OpenAIAnswer:
    """Builds the response from the chunks of a stream."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._id = ""
        self._model = ""
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._stop: str | None = None
        self._usage: JsonObject = {}
        self.request_id: str | None = None

    @property
    def ended(self) -> bool:
        return self._stop is not None

    def take(self, event: JsonObject) -> Iterator[ModelEvent]:
        self._id = self._id or str(event.get("id") or "")
        self._model = self._model or str(event.get("model") or "")
        self._usage = as_object(event.get("usage")) or self._usage
        choices: list[Json] = event.get("choices") or []
        for choice in choices[:1]:
            given = as_object(choice)
            self._stop = str(given.get("finish_reason") or "") or self._stop
            delta = as_object(given.get("delta"))
            thought = delta.get("reasoning_content") or delta.get("reasoning")
            if isinstance(thought, str) and thought:
                self._thinking.append(thought)
                yield ThinkingDelta(thought)
            for said in (delta.get("content"), delta.get("refusal")):
                if isinstance(said, str) and said:
                    self._text.append(said)
                    yield TextDelta(said)
            calls: list[Json] = delta.get("tool_calls") or []
            for call in calls:
                yield from self._call(as_object(call))

    def _call(self, delta: JsonObject) -> Iterator[ModelEvent]:
        """A call begins at a new index, or with a new id and name if a server gives all calls the same index."""
        function = as_object(delta.get("function"))
        index, given, name = int(delta.get("index") or 0), str(delta.get("id") or ""), str(function.get("name") or "")
        call = self._by_index.get(index)
        if call is None or (name and given and given != call.id):
            call = _Call(given or f"call_{self._digest()}_{len(self._calls)}", name)
            self._by_index[index] = call
            self._calls.append(call)
            yield ToolCallStarted(call.id, call.name)
        arguments = function.get("arguments")
        if arguments:
            call.arguments.append(arguments if isinstance(arguments, str) else json.dumps(arguments))

    def response(self) -> Response:
        content: list[Block] = []
        if self._thinking:
            content.append(ThinkingBlock("".join(self._thinking)))
        if self._text:
            content.append(TextBlock("".join(self._text), Origin.MODEL))
        content += [ToolUseBlock(call.id, call.name, read_input("".join(call.arguments))) for call in self._calls]
        stop = STOP_REASONS.get(self._stop or "", self._stop or "")
        return Response(
            id=self._id or f"chatcmpl-{self._digest()}",
            model=self._model or wire.model_id(self._request.model),
            content=tuple(content),
            stop_reason="tool_use" if self._calls and stop == "end_turn" else stop,
            usage=read_usage(self._usage) or self._estimate(content),
            request_id=self.request_id,
            raw_usage=self._usage,
        )

    def _estimate(self, content: list[Block]) -> Usage:
        said = json.dumps([block.wire() for block in content], ensure_ascii=False)
        return Usage(len(wire.canonical(self._request)) // 4, len(said.encode("utf-8", "surrogatepass")) // 4)

    def _digest(self) -> str:
        return hashlib.blake2s(wire.canonical(self._request), digest_size=8).hexdigest()
