"""LangChain's messages as the items of a wire, and back. The chat model itself converts: its request is what is sent.

A message that no layer changed stays the caller's object. Chat models that cannot show their request are converted as
OpenAI's chat messages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

from langchain.agents.middleware import ModelRequest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
    convert_to_openai_messages,
)
from langchain_core.utils.function_calling import convert_to_openai_tool

from reverie.models.wire import as_object
from reverie.quick import dataclass
from reverie.types import Json, JsonObject

WireName: TypeAlias = Literal["messages", "chat", "responses"]

_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_MARKER = "cache_control"
_NOTHING: tuple[Json, ...] = (None, False, "", [], {})
_AFTER = HumanMessage("-")


@dataclass(frozen=True, slots=True)
class Part:
    """A block of the Messages API, or an item of the other APIs, with the number and the role of its message."""

    said: JsonObject
    number: int
    role: str

    @property
    def key(self) -> str:
        """What equal parts share: markers and empty fields do not count."""
        said = {name: value for name, value in self.said.items() if name != _MARKER and value not in _NOTHING}
        return repr(sorted(said.items()))


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A request of LangChain, and the body that the chat model makes of it."""

    request: ModelRequest[Any]
    body: JsonObject
    convert: Callable[[Sequence[BaseMessage]], JsonObject]
    wire: WireName
    converted: dict[int, tuple[BaseMessage, list[JsonObject]]]
    """The items of each message by its `id()`."""

    @classmethod
    def of(cls, request: ModelRequest[Any], before: WireRequest | None = None) -> WireRequest:
        """Converts a request. `before` is the last one of the conversation: its messages are converted already."""
        model: Any = request.model
        convert = _converter(request, model)
        body = convert([*_system(request), _AFTER])
        wire: WireName = "responses" if "input" in body else "messages" if _is_anthropic(model) else "chat"
        made = cls(request, body, convert, wire, {})
        known = before.converted if before is not None and before.wire == wire else {}
        for one in made._ours():
            made.converted[id(one)] = known.get(id(one)) or (one, made._convert_one(one))
        if wire == "messages" and any(isinstance(one, SystemMessage) for one in request.messages):
            body.update(convert([*_system(request), *request.messages]))  # their place decides what becomes of them
        else:
            items = [item for one in made._ours() for item in made.converted[id(one)][1]]
            body["input" if wire == "responses" else "messages"] = items
        return made

    def _ours(self) -> list[BaseMessage]:
        return [*([] if self.wire == "messages" else _system(self.request)), *self.request.messages]

    def _convert_one(self, message: BaseMessage) -> list[JsonObject]:
        """The items of one message. The text that ends an answer is converted differently at the end of a request."""
        if isinstance(message, AIMessage):
            return _items(self.convert([message, _AFTER]))[:-1]
        return _items(self.convert([message]))

    @property
    def model(self) -> str:
        """The name of the model, with its vendor."""
        return f"{'anthropic' if self.wire == 'messages' else 'openai'}:{self.body.get('model') or 'unknown'}"

    @property
    def max_tokens(self) -> int | None:
        return next((self.body[name] for name in _LIMITS if self.body.get(name)), None)

    def given(self) -> JsonObject:
        """The arguments for `Engine.prepare`."""
        system = self.body.get("system", []) if self.wire == "messages" else None
        thinking = {"thinking": self.body["thinking"]} if self.body.get("thinking") else {}
        return {"messages": _items(self.body), "system": system, "tools": self.body.get("tools") or [], **thinking}

    # -- the answer -----------------------------------------------------------------------------------------------

    def response(self, answer: AIMessage) -> JsonObject:
        """An answer as the response of the wire."""
        about, items = answer.response_metadata, self._convert_one(answer)
        made: JsonObject = {"id": about.get("id") or answer.id, "model": about.get("model_name")}
        if self.wire == "messages":
            content = [part.said for part in self._parts(items)]
            said = {"role": "assistant", "content": content, "stop_reason": about.get("stop_reason")}
            return made | said | {"usage": _usage(answer)}
        usage = as_object(answer.usage_metadata)
        details = {"cached_tokens": as_object(usage.get("input_token_details")).get("cache_read") or 0}
        made["usage"] = {**usage, "input_tokens_details": details} if usage else {}
        chosen = [{"message": item, "finish_reason": about.get("finish_reason")} for item in items]
        return made | ({"choices": chosen} if self.wire == "chat" else {"output": items})

    # -- the way back ---------------------------------------------------------------------------------------------

    def prepared(self, body: JsonObject) -> ModelRequest[Any]:
        """The request of LangChain that sends this body."""
        request, made = self.request, self._rebuild(body)
        changed: Any = {}
        if self.wire == "messages":
            if body.get("system"):
                changed["system_message"] = SystemMessage(body["system"])
            tools = cast("list[JsonObject]", body.get("tools") or [])
            if any(_MARKER in tool for tool in (*(self.body.get("tools") or ()), *tools)):
                changed["tools"] = tools
            changed["model_settings"] = {
                name: value for name, value in request.model_settings.items() if name != _MARKER
            }
        elif made and made[0] is request.system_message:
            made = made[1:]
        return request.override(messages=cast("list[AnyMessage]", made), **changed)

    def _rebuild(self, body: JsonObject) -> list[BaseMessage]:
        ours = self._ours()
        own = [list(self._parts(self.converted[id(one)][1])) for one in ours]
        starts = defaultdict[str, list[int]](list)
        for number, parts in enumerate(own):
            if parts:
                starts[parts[0].key].append(number)
        results = {one.tool_call_id: one for one in ours if isinstance(one, ToolMessage)}
        parts, made, at = list(self._parts(_items(body))), list[BaseMessage](), 0
        while at < len(parts):
            waiting = starts.get(parts[at].key, [])
            found = next((n for n in waiting if _equal(own[n], parts[at : at + len(own[n])])), None)
            if found is not None:
                waiting.remove(found)
                count = len(own[found])
                made.append(_marked(ours[found], own[found], parts[at : at + count]))
            else:
                count = self._count_together(parts, at)
                made.append(self._new(parts[at : at + count], results))
            at += count
        return made

    def _parts(self, items: Sequence[JsonObject]) -> Iterator[Part]:
        for number, item in enumerate(items):
            role, content = str(item.get("role") or ""), item.get("content")
            if self.wire != "messages" or role == "system":
                yield Part(item, number, role)
            elif isinstance(content, str):
                yield Part({"type": "text", "text": content}, number, role)
            else:
                yield from (Part(block, number, role) for block in cast("list[JsonObject]", content or []))

    def _count_together(self, parts: Sequence[Part], at: int) -> int:
        """The blocks of an answer belong together; others are merged by the chat model."""
        if self.wire != "messages" or parts[at].role != "assistant":
            return 1
        return sum(1 for part in parts[at:] if part.number == parts[at].number)

    def _new(self, parts: Sequence[Part], results: Mapping[str, ToolMessage]) -> BaseMessage:
        """A message for what a layer wrote or changed. A result keeps its other fields."""
        item = parts[0].said
        call = str(item.get("tool_use_id") or item.get("tool_call_id") or item.get("call_id"))
        is_result = item.get("role") == "tool" or str(item.get("type")).endswith(("_result", "_output"))
        if self.wire == "messages":
            content: Any = [part.said for part in parts]
        else:
            content = item.get("output", item.get("content"))
        if is_result and call in results:
            return results[call].model_copy(update={"content": content})
        if self.wire == "chat":
            return convert_to_messages([item])[0]
        if parts[0].role == "assistant":
            calls = [one for one in content if as_object(one).get("type") == "tool_use"]
            return AIMessage(
                content, tool_calls=[{"name": one["name"], "args": one["input"], "id": one["id"]} for one in calls]
            )
        if parts[0].role == "system":
            return SystemMessage(item["content"])
        return HumanMessage(content) if content is not None else AIMessage([cast(Any, item)])


async def ask_chat_model(model: BaseChatModel, body: JsonObject) -> JsonObject:
    """Answers a Messages request with a chat model, for `ask`."""
    given: list[BaseMessage] = [SystemMessage(body["system"])] if body.get("system") else []
    for message in cast("list[JsonObject]", body["messages"]):
        content, results = message["content"], list[JsonObject]()
        if not _is_anthropic(model):  # LangChain would put the results behind the text
            results = [block for block in content if block.get("type") == "tool_result"]
            content = [block for block in content if block.get("type") != "tool_result"]
        given += [ToolMessage(one.get("content") or "", tool_call_id=one["tool_use_id"]) for one in results]
        given += [(AIMessage if message["role"] == "assistant" else HumanMessage)(content)] if content else []
    if not _is_anthropic(model):
        given = convert_to_messages(cast("list[Any]", convert_to_openai_messages(given)))
    tools = cast("list[JsonObject]", body.get("tools") or [])
    answer = await (model.bind_tools(tools) if tools else model).ainvoke(given)
    calls = [
        {"type": "tool_use", "id": one["id"], "name": one["name"], "input": one["args"]} for one in answer.tool_calls
    ]
    said = [{"type": "text", "text": str(answer.text)}] if answer.text else []
    return {"content": [*said, *calls], "usage": _usage(answer)}


def _usage(answer: AIMessage) -> JsonObject:
    """The usage of an answer in the form of the Messages API, where the input does not include what is cached."""
    usage = as_object(answer.usage_metadata)
    details = as_object(usage.get("input_token_details"))
    split = {key: details.get(key) or 0 for key in ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")}
    read, written = details.get("cache_read") or 0, sum(split.values()) or details.get("cache_creation") or 0
    return {
        "input_tokens": max(0, (usage.get("input_tokens") or 0) - read - written),
        "output_tokens": usage.get("output_tokens") or 0,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "cache_creation": split,
    }


def _is_anthropic(model: Any) -> bool:
    return "anthropic" in str(model._llm_type)


def _converter(request: ModelRequest[Any], model: Any) -> Callable[[Sequence[BaseMessage]], JsonObject]:
    own = getattr(model, "_get_request_payload", None)
    if own is not None:
        settings = request.model_settings
        bound = model.bind_tools(request.tools, **settings) if request.tools else model.bind(**settings)
        return lambda messages: own(messages, **bound.kwargs)
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    tools = [convert_to_openai_tool(tool) for tool in request.tools]
    return lambda messages: {"model": name, "tools": tools, "messages": convert_to_openai_messages(messages)}


def _system(request: ModelRequest[Any]) -> list[BaseMessage]:
    return [request.system_message] if request.system_message else []


def _items(body: Mapping[str, Any]) -> list[JsonObject]:
    return cast("list[JsonObject]", body["input"] if "input" in body else body["messages"])


def _equal(own: Sequence[Part], parts: Sequence[Part]) -> bool:
    return len(own) == len(parts) and all(a.role == b.role and a.key == b.key for a, b in zip(own, parts, strict=True))


def _marked(message: BaseMessage, own: Sequence[Part], parts: Sequence[Part]) -> BaseMessage:
    """The caller's message; a copy if it must have other markers."""
    if not any(_MARKER in part.said for part in (*own, *parts)):
        return message
    marked = [
        {name: value for name, value in part.said.items() if name != _MARKER}
        | ({_MARKER: now.said[_MARKER]} if _MARKER in now.said else {})
        for part, now in zip(own, parts, strict=True)
    ]
    return message.model_copy(update={"content": marked})
