"""The offline mind as a `Model`: streams what the current task decided; ids and usage come only from the request."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator

from reverie.models import wire
from reverie.models.base import (
    Capabilities,
    Finished,
    ModelEvent,
    Request,
    Response,
    TextDelta,
    ToolCallStarted,
)
from reverie.models.forced import force_call, is_forced
from reverie.models.scripted import chunks, tokens
from reverie.offline.step import Answer, Step
from reverie.offline.tasks import next_step
from reverie.types import Block, Origin, TextBlock, ToolUseBlock, Usage, parse_block


class EmbeddedModel:
    """Answers from the conversation and the files it finds. Needs no key, no network and no disk of its own."""

    def __init__(self) -> None:
        self._rendered = wire.Rendered()

    @property
    def name(self) -> str:
        return "embedded"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(images=False, output_schema=True)

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        parts = wire.prefix_parts(request, self._rendered)
        digest = hashlib.blake2s(wire.join_parts(parts), digest_size=8).hexdigest()
        content = _content(request, f"toolu_embedded_{digest}")
        for block in content:
            if isinstance(block, ToolUseBlock):
                yield ToolCallStarted(block.id, block.name)
            elif isinstance(block, TextBlock):
                for chunk in chunks(block.text):
                    await asyncio.sleep(0)
                    yield TextDelta(chunk)
        usage = Usage(
            input_tokens=sum(tokens(part) for part in parts),
            output_tokens=sum(tokens(json.dumps(block.wire(), ensure_ascii=False)) for block in content),
        )
        calls = any(isinstance(block, ToolUseBlock) for block in content)
        yield Finished(
            Response(
                id=f"msg_embedded_{digest}",
                model="embedded",
                content=content,
                stop_reason="tool_use" if calls else "end_turn",
                usage=usage,
                raw_usage=usage.wire(),
            )
        )

    async def close(self) -> None:
        """Nothing is held open."""


def _content(request: Request, call_id: str) -> tuple[Block, ...]:
    content = _planned(next_step(request), call_id)
    if not is_forced(request.tool_choice):
        return content
    messages = [message.wire() for message in request.messages]
    forced = force_call([block.wire() for block in content], request.tool_choice, request.tools, messages)
    return tuple(parse_block(block, Origin.MODEL) for block in forced)


def _planned(step: Step, call_id: str) -> tuple[Block, ...]:
    if isinstance(step, Answer):
        return (TextBlock(step.text, Origin.MODEL),)
    ids = [call_id, *(f"{call_id}_{number}" for number in range(2, len(step.calls) + 1))]
    calls = (ToolUseBlock(one, call.tool, call.input) for one, call in zip(ids, step.calls, strict=True))
    return TextBlock(step.say, Origin.MODEL), *calls
