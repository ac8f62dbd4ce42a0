"""Our messages as LangChain's, for running its middlewares on the same history. The one place that imports them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reverie.models.wire import as_object
from reverie.types import Message, TextBlock, ToolResultBlock, ToolUseBlock


class Converter:
    """Remembers what it converted: a message is converted once, however often it is sent."""

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

    def edited(self, middleware: Any, messages: Sequence[Message]) -> dict[str, str | None]:
        """What a context-editing middleware would send: per tool result its placeholder, None where it stays."""
        from langchain.agents.middleware.types import ModelRequest
        from langchain_core.language_models.fake_chat_models import FakeListChatModel
        from langchain_core.messages import ToolMessage

        seen = list[Any]()

        def handler(request: Any) -> Any:
            seen.extend(request.messages)
            return None

        model = FakeListChatModel(responses=["ok"])
        middleware.wrap_model_call(ModelRequest(model=model, messages=self.converted(messages)), handler)
        return {
            str(message.tool_call_id): str(message.content)
            if message.response_metadata.get("context_editing", {}).get("cleared")
            else None
            for message in seen
            if isinstance(message, ToolMessage)
        }


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
        from langchain.agents.middleware.types import ModelRequest

        sent = list[Any]()

        def handler(request: Any) -> Any:
            sent.extend(request.messages)

        self._summarising.before_model({"messages": messages}, None)
        self._editing.wrap_model_call(ModelRequest(model=self._model, messages=messages), handler)
        return sent


def _convert(message: Message) -> list[Any]:
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    text = "\n".join(block.text for block in message.content if isinstance(block, TextBlock))
    if message.role == "assistant":
        calls: list[Any] = [
            {"id": block.id, "name": block.name, "args": as_object(block.input)}
            for block in message.content
            if isinstance(block, ToolUseBlock)
        ]
        return [AIMessage(content=text, tool_calls=calls)]
    results = [
        ToolMessage(content=block.text, tool_call_id=block.tool_use_id)
        for block in message.content
        if isinstance(block, ToolResultBlock)
    ]
    return [*results, HumanMessage(content=text)] if text else results
