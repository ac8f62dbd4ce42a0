"""Changes of a request outside our pipeline: by LangChain's middleware, or by the server.

LangChain is the installed package, with its public middleware. For the server, this only finds the results it cleared,
because its response does not name them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from reverie.models.wire import as_object
from reverie.simulator import Billing
from reverie.types import JsonObject, Message, TextBlock, ToolResultBlock, ToolUseBlock


class OutsideEdits:
    """Changes a request before it is sent. `gone`: calls whose results it removed. This class changes nothing."""

    def __init__(self) -> None:
        self.gone = set[str]()

    def edit(self, body: JsonObject, messages: Sequence[Message]) -> JsonObject:
        del messages
        return body

    def read_billing(self, body: JsonObject, billing: Billing) -> None:
        """Gets the bill of the request."""


class _Server(OutsideEdits):
    """If the server cleared any results, those before the newest `keep` are gone."""

    def read_billing(self, body: JsonObject, billing: Billing) -> None:
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


class _LangChain(OutsideEdits):
    """`ContextEditingMiddleware()` with its defaults."""

    def __init__(self) -> None:
        super().__init__()
        self._middlewares, self._converter = Middlewares(), Converter()

    def edit(self, body: JsonObject, messages: Sequence[Message]) -> JsonObject:
        sent = self._middlewares.edit(self._converter.convert(messages))
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


def outside_edits(name: str | None) -> OutsideEdits:
    """The changes of a policy's requests."""
    return {"langchain": _LangChain, "server": _Server}.get(name or "", OutsideEdits)()


class Middlewares:
    """Context editing and summarisation, as an agent with both runs them before a request."""

    def __init__(self, threshold: int = 167_000) -> None:
        from langchain.agents.middleware import ContextEditingMiddleware, SummarizationMiddleware
        from langchain_core.language_models.fake_chat_models import FakeListChatModel

        self._model = FakeListChatModel(responses=["ok"])
        self._editing: Any = ContextEditingMiddleware()
        self._summarising: Any = SummarizationMiddleware(self._model, trigger=("tokens", threshold))

    def run(self, messages: list[Any]) -> list[Any]:
        """The messages to send. The timed histories stay below the threshold, so nothing is summarised."""
        self._summarising.before_model({"messages": messages}, None)
        return self.edit(messages)

    def edit(self, messages: list[Any]) -> list[Any]:
        """The messages to send after context editing alone."""
        from langchain.agents.middleware.types import ModelRequest

        sent = list[Any]()

        def handler(request: Any) -> Any:
            sent.extend(request.messages)

        self._editing.wrap_model_call(ModelRequest(model=self._model, messages=messages), handler)
        return sent


class Converter:
    """Converts our messages to LangChain's, each only once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Message, list[Any]]] = {}

    def convert(self, messages: Sequence[Message]) -> list[Any]:
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
