"""Requests and conversations the model tests are made of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, TypeVar

from reverie.models.base import Finished, Marker, Model, ModelEvent, Request, Response
from reverie.types import Message, Origin, TextBlock, ToolResultBlock

T = TypeVar("T")

READ_TOOL: dict[str, Any] = {
    "name": "Read",
    "description": "Reads a file.",
    "input_schema": {"type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["file_path"]},
}


def person(text: str) -> Message:
    return Message("user", (TextBlock(text, Origin.TYPED),))


def request(*messages: Message, **more: Any) -> Request:
    given: dict[str, Any] = {
        "model": "claude-test",
        "system": ("You are terse.",),
        "tools": (READ_TOOL,),
        "max_tokens": 1000,
        "markers": (Marker("messages", -1),),
        **more,
    }
    return Request(messages=messages or (person("hello"),), **given)


def answered(before: Request, response: Response, result: str = "ok") -> Request:
    """The next request of the conversation: the answer, and its calls answered or the person going on."""
    results = tuple(ToolResultBlock(call.id, result) for call in Message("assistant", response.content).tool_uses)
    more = Message("user", results) if results else person("go on")
    kept = {name: getattr(before, name) for name in Request.__dataclass_fields__ if name != "messages"}
    return Request(messages=(*before.messages, Message("assistant", response.content), more), **kept)


async def collect(stream: AsyncIterator[T]) -> list[T]:
    return [event async for event in stream]


def ask(model: Model, asked: Request) -> tuple[list[ModelEvent], Response]:
    """All events of one answer and the response at their end; closes the model."""

    async def run() -> list[ModelEvent]:
        try:
            return await collect(model.stream(asked))
        finally:
            await model.close()

    return finished(asyncio.run(run()))


def finished(events: list[ModelEvent]) -> tuple[list[ModelEvent], Response]:
    last = events[-1]
    assert isinstance(last, Finished)
    assert not any(isinstance(event, Finished) for event in events[:-1])
    return events, last.response
