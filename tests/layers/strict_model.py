"""A model that does as it is told and refuses what the API would refuse: it judges every request it gets."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from itertools import count

from reverie.errors import ModelError, PromptTooLong
from reverie.models.base import Capabilities, Finished, ModelEvent, Request, Response
from reverie.models.wire import body
from reverie.simulator.check import check_body
from reverie.types import Block, Origin, Purpose, TextBlock, Usage

SUMMARY = "<analysis>draft</analysis><summary>What mattered, in a few words.</summary>"
_numbers = count(1)


@dataclass(slots=True)
class StrictModel:
    """`answers` are played one by one for the main thread; then it only says that it is done."""

    window: int
    name: str = "scripted:strict"
    answers: deque[tuple[Block, ...]] = field(default_factory=lambda: deque[tuple[Block, ...]]())
    summary: Callable[[], str | ModelError] = lambda: SUMMARY
    requests: list[tuple[Purpose, int]] = field(default_factory=lambda: list[tuple[Purpose, int]]())
    watching: Callable[[Request, int], None] = lambda _request, _tokens: None
    refused: int = 0

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(cache_markers=True, ttls=("5m", "1h"))

    async def stream(self, request: Request) -> AsyncIterator[ModelEvent]:
        sent = body(request)
        check_body(sent)  # an orphaned call or result, an empty text, a wrong order: refused as the API would
        tokens = len(json.dumps(sent, ensure_ascii=False).encode()) // 4
        self.requests.append((request.purpose, tokens))
        self.watching(request, tokens)
        await asyncio.sleep(0)
        if tokens > self.window:
            self.refused += 1
            raise PromptTooLong(f"prompt is too long: {tokens}", actual=tokens, limit=self.window)
        yield Finished(self._response(request, tokens))

    def _response(self, request: Request, tokens: int) -> Response:
        content: tuple[Block, ...] = (TextBlock("Done.", Origin.MODEL),)
        if request.purpose is Purpose.COMPACTION:
            said = self.summary()
            if isinstance(said, ModelError):
                raise said
            content = (TextBlock(said, Origin.MODEL),)
        elif request.purpose is Purpose.MAIN and self.answers:
            content = self.answers.popleft()
        calls = any(block.wire()["type"] == "tool_use" for block in content)
        output = sum(len(json.dumps(block.wire())) for block in content) // 4
        return Response(
            id=f"msg_{next(_numbers)}",
            model="strict",
            content=content,
            stop_reason="tool_use" if calls else "end_turn",
            usage=Usage(input_tokens=tokens, output_tokens=output),
        )

    async def close(self) -> None:
        """Nothing is held open."""
