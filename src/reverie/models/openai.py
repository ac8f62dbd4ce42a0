"""Servers with the chat-completions API, through OpenAI's SDK: OpenAI, Ollama, vLLM, llama.cpp, LM Studio, OpenRouter.

It only converts requests, responses and errors; the SDK's retries are off. Ids and usage that a server leaves out are
replaced by deterministic ids and an estimate. Thinking that a server streams is shown, and kept without a signature.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import field
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from reverie.models import openai_wire, wire
from reverie.models.base import Capabilities, ModelEvent, Request, Response, TextDelta, ThinkingDelta, ToolCallStarted
from reverie.models.openai_items import STOP_REASONS, read_usage
from reverie.models.sdk import SdkModel
from reverie.models.wire import as_object, read_input
from reverie.parsing import load_json
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

    @property
    def is_whole(self) -> bool:
        """Whether its arguments are complete, so that what follows belongs to another call."""
        return bool(self.arguments) and self.arguments[-1].rstrip().endswith("}") and _is_json("".join(self.arguments))

    def wire(self) -> JsonObject:
        function = {"name": self.name, "arguments": "".join(self.arguments)}
        return {"id": self.id, "type": "function", "function": function}


class ToolCalls:
    """The calls of an answer, put together from their parts. Some servers give all calls the same index, the same id or
    none: then a call begins where the one before it is complete."""

    def __init__(self, name_call: Callable[[int], str] = lambda _number: "") -> None:
        """`name_call` gives the n-th call an id, if the server does not."""
        self.calls = list[_Call]()
        self._name_call = name_call
        self._by_index = dict[int, int]()
        self._by_id = dict[str, int]()

    def take(self, part: JsonObject) -> tuple[int, bool]:
        """Takes a part in; returns the number of its call, and whether the call begins with it."""
        function = as_object(part.get("function"))
        index = number if isinstance(number := part.get("index"), int) else 0
        given, name = str(part.get("id") or ""), str(function.get("name") or "")
        number = self._by_id.get(given, self._by_index.get(index))
        begins = number is None or self._begins(self.calls[number], given, name)
        if number is None or begins:
            number = len(self.calls)
            if given:
                self._by_id[given] = number
            self.calls.append(_Call(given or self._name_call(number), name))
        self._by_index[index] = number
        if arguments := function.get("arguments"):
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            self.calls[number].arguments.append(text)
        return number, begins

    def _begins(self, call: _Call, given: str, name: str) -> bool:
        return bool(name) and ((bool(given) and given != call.id) or call.is_whole)


class ChatAnswer:
    """Builds the answer of chat completions from the chunks of a stream."""

    def __init__(self, name_call: Callable[[int], str] = lambda _number: "") -> None:
        self.request_id: str | None = None
        self._head: JsonObject = {}
        self._texts: dict[str, list[str]] = {"content": [], "refusal": []}
        self._thinking: list[str] = []
        self._calls = ToolCalls(name_call)
        self._stop: str | None = None
        self._usage: JsonObject = {}

    @property
    def ended(self) -> bool:
        return self._stop is not None

    def take(self, event: JsonObject) -> Iterator[ModelEvent]:
        self._head |= {
            key: event[key] for key in ("id", "model", "created") if event.get(key) and not self._head.get(key)
        }
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
            for key, texts in self._texts.items():
                if isinstance(said := delta.get(key), str) and said:
                    texts.append(said)
                    yield TextDelta(said)
            calls: list[Json] = delta.get("tool_calls") or []
            for part in calls:
                number, begins = self._calls.take(as_object(part))
                if begins:
                    call = self._calls.calls[number]
                    yield ToolCallStarted(call.id, call.name)

    def message(self) -> JsonObject:
        """The response as the server gives it without a stream."""
        texts = {key: "".join(texts) or None for key, texts in self._texts.items()}
        said: JsonObject = {
            "role": "assistant",
            **{key: text for key, text in texts.items() if text or key == "content"},
        }
        if self._calls.calls:
            said["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": "".join(call.arguments)},
                }
                for call in self._calls.calls
            ]
        return {**self._head, "choices": [{"message": said, "finish_reason": self._stop}], "usage": self._usage or None}


class _OpenAIAnswer(ChatAnswer):
    """The response to a request of ours."""

    def __init__(self, request: Request) -> None:
        super().__init__(lambda number: f"call_{self._digest()}_{number}")
        self._request = request

    def response(self) -> Response:
        content: list[Block] = []
        if self._thinking:
            content.append(ThinkingBlock("".join(self._thinking)))
        if text := "".join(part for texts in self._texts.values() for part in texts):
            content.append(TextBlock(text, Origin.MODEL))
        calls = self._calls.calls
        content += [ToolUseBlock(call.id, call.name, read_input("".join(call.arguments))) for call in calls]
        stop = STOP_REASONS.get(self._stop or "", self._stop or "")
        return Response(
            id=str(self._head.get("id") or f"chatcmpl-{self._digest()}"),
            model=str(self._head.get("model") or wire.model_id(self._request.model)),
            content=tuple(content),
            stop_reason="tool_use" if calls and stop == "end_turn" else stop,
            usage=read_usage(self._usage) or self._estimate(content),
            request_id=self.request_id,
            raw_usage=self._usage,
        )

    def _estimate(self, content: list[Block]) -> Usage:
        said = json.dumps([block.wire() for block in content], ensure_ascii=False)
        return Usage(len(wire.canonical(self._request)) // 4, len(said.encode("utf-8", "surrogatepass")) // 4)

    def _digest(self) -> str:
        return hashlib.blake2s(wire.canonical(self._request), digest_size=8).hexdigest()


def _is_json(text: str) -> bool:
    try:
        load_json(text)
    except ValueError:
        return False
    return True
