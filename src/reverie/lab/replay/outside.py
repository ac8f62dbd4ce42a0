"""What changes a request outside our pipeline: LangChain's middleware, and the server's own clearing.

LangChain is the installed package, asked through its public middleware, on the same messages. It is imported here and
in `lab/overhead.py` only. For the server this only works out what it cleared: its response counts that and does not
name it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from reverie.lab.replay.langchain_messages import Converter
from reverie.simulator import Billing
from reverie.types import JsonObject, Message


class Outside(Protocol):
    """Changes the body of a request on its way out; `gone` are the calls whose results it took away."""

    gone: set[str]

    def edit(self, body: JsonObject, messages: Sequence[Message]) -> JsonObject: ...

    def billed(self, body: JsonObject, billing: Billing) -> None: ...


def outside(name: str | None) -> Outside:
    match name:
        case "langchain":
            return _LangChain()
        case "server":
            return _Server()
        case _:
            return _Nothing()


class _Nothing:
    def __init__(self) -> None:
        self.gone = set[str]()

    def edit(self, body: JsonObject, messages: Sequence[Message]) -> JsonObject:
        return body

    def billed(self, body: JsonObject, billing: Billing) -> None:
        pass


class _Server(_Nothing):
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


class _LangChain(_Nothing):
    """`ContextEditingMiddleware()` with its defaults."""

    def __init__(self) -> None:
        super().__init__()
        from langchain.agents.middleware import ContextEditingMiddleware

        self._middleware: Any = ContextEditingMiddleware()
        self._converter = Converter()

    def edit(self, body: JsonObject, messages: Sequence[Message]) -> JsonObject:
        kept = self._converter.edited(self._middleware, messages)
        self.gone = {call for call, content in kept.items() if content is not None}
        for message in body["messages"]:
            for i, block in enumerate(message["content"]):
                placeholder = kept.get(block.get("tool_use_id", ""))
                if block["type"] == "tool_result" and placeholder is not None:
                    message["content"][i] = {**block, "content": placeholder}
        return body
