"""What changes a request outside our pipeline: LangChain's middleware, and the server's own clearing.

LangChain is the installed package, asked through its public middleware, on the same messages. It is imported here
only. For the server this only works out what it cleared, which its response counts but does not name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from reverie.models.wire import as_object
from reverie.simulator import Billing
from reverie.types import JsonObject, Message, TextBlock, ToolResultBlock, ToolUseBlock


class Outside:
    """Changes the body of a request on its way out; `gone` are the calls whose results it took away. This one: none."""

    def __init__(self) -> None:
        self.gone = set[str]()

    def edit(self, body: JsonObject, messages: Sequence[Message]) -> JsonObject:
        del messages
        return body

    def billed(self, body: JsonObject, billing: Billing) -> None:
        """Is told what the server made of it."""


class _Server(Outside):
    """All results but the newest `keep` are gone while the server says that it cleared any."""

    def billed(self, body: JsonObject, billing: Billing) -> None:
        self.gone = set[str]()
        if not any("cleared_tool_uses" in edit for edit in billing.applied_edits):
            return
        edit = next(e for e in body["context_management"]["edits"] if e["type"] == "clear_tool_uses_20250919")
        never, keep = set(edit.get("exclude_tools", ())), int(edit["keep"]["value"])
        calls = [
            str(block["id"])
            for message in cast("list[Mapping[str, Any]]", body["messages"])
            if message["role"] == "assistant"
            for block in message["content"]
            if block["type"] == "tool_use" and block["name"] not in never
        ]
        self.gone = set(calls[:-keep])


class _LangChain(Outside):
    """`ContextEditingMiddleware()` with its defaults."""

    def __init__(self) -> None:
        super().__init__()
        self._middlewares, self._converter = Middlewares(), Converter()

    def edit(self, body: JsonObject, messages: Sequence[Message]) -> JsonObject:
        sent = self._middlewares.edit(self._converter.converted(messages))
        cleared = {
            str(one.tool_call_id): str(one.content)
            for one in sent
            if one.type == "tool" and one.response_metadata.get("context_editing", {}).get("cleared")
        }
        self.gone = set(cleared)
        for message in body["messages"]:
            for i, block in enumerate(message["content"]):
                if block["type"] == "tool_result" and block["tool_use_id"] in cleared:
                    message["content"][i] = {**block, "content": cleared[block["tool_use_id"]]}
        return body


def outside(name: str | None) -> Outside:
    """Who changes the requests of a policy."""
    return {"langchain": _LangChain, "server": _Server}.get(name or "", Outside)()


class Middlewares:
    """Context editing and summarisation, as an agent with both would run them before a request."""

    def __init__(self, threshold: int = 167_000) -> None:
        from langchain.agents.middleware import ContextEditingMiddleware, SummarizationMiddleware
        from langchain_core.language_models.fake_chat_models import FakeListChatModel

        self._model = FakeListChatModel(responses=["ok"])
        self._editing: Any = ContextEditingMiddleware()
        self._summarising: Any = SummarizationMiddleware(self._model, trigger=("tokens", threshold))

    def run(self, messages: list[Any]) -> list[Any]:
        """What would be sent. The threshold is not reached in the histories this is timed on: nothing is summarised."""
        self._summarising.before_model({"messages": messages}, None)
        return self.edit(messages)

    def edit(self, messages: list[Any]) -> list[Any]:
        """What would be sent after context editing alone."""
        from langchain.agents.middleware.types import ModelRequest

        sent = list[Any]()

        def handler(request: Any) -> Any:
            sent.extend(request.messages)

        self._editing.wrap_model_call(ModelRequest(model=self._model, messages=messages), handler)
        return sent


class Converter:
    """Our messages as LangChain's. A message is converted once, however often it is sent."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Message, list[Any]]] = {}

    def converted(self, messages: Sequence[Message]) -> list[Any]:
        out = list[Any]()
        for message in messages:
            found = self._known.get(id(message))
            if found is None:
                found = self._known[id(message)] = (message, _convert(message))
            out += found[1]
        return out


def _convert(message: Message) -> list[Any]:
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    blocks = message.content
    text = "\n".join(block.text for block in blocks if isinstance(block, TextBlock))
    if message.role == "assistant":
        uses = (block for block in blocks if isinstance(block, ToolUseBlock))
        calls: list[Any] = [{"id": use.id, "name": use.name, "args": as_object(use.input)} for use in uses]
        return [AIMessage(content=text, tool_calls=calls)]
    answers = (block for block in blocks if isinstance(block, ToolResultBlock))
    results = [ToolMessage(content=block.text, tool_call_id=block.tool_use_id) for block in answers]
    return [*results, HumanMessage(content=text)] if text else results
