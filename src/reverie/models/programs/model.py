"""The model that all programs share: it writes the request as text, runs the program and returns the answer as events.

A program answers all at once, so nothing is streamed before the end. Tokens that a program does not report are an
estimate, and the name of the model says so.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator

from reverie.models.base import (
    Capabilities,
    Finished,
    ModelEvent,
    Request,
    Response,
    TextDelta,
    ToolCallStarted,
)
from reverie.models.programs.frame import Frame, InputForm, frame, read_answer
from reverie.models.programs.running import Program, Scratch, ScratchFolder
from reverie.models.tokens import PROSE_BYTES, encoded
from reverie.quick import dataclass
from reverie.types import JsonObject, TextBlock, ToolUseBlock, Usage

ESTIMATED = " (estimated)"


@dataclass(frozen=True, slots=True)
class ProgramAnswer:
    """What a program answered. `model` is the one that it used, if it says so."""

    said: str | JsonObject
    model: str = ""
    usage: Usage | None = None
    raw_usage: JsonObject | None = None
    stop_reason: str = ""


class ProgramModel:
    """A program as a model. Kinds of programs implement `ask`."""

    input_form: InputForm = "object"
    keyed = False

    def __init__(self, name: str, program: Program) -> None:
        self._name = name
        self._program = program

    @property
    def name(self) -> str:
        return self._name

    @property
    def path(self) -> str:
        """Where the program is."""
        return self._program.words[0]

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(images=False, output_schema=True)

    async def ask(self, framed: Frame, request: Request, scratch: Scratch) -> ProgramAnswer:
        """Runs the program with this text. Raises a ModelError."""
        raise NotImplementedError

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        framed = frame(request, form=self.input_form, keyed=self.keyed)
        with ScratchFolder() as scratch:
            answer = await self.ask(framed, request, scratch)
        response = self._response(framed, answer)
        for block in response.content:
            if isinstance(block, TextBlock):
                yield TextDelta(block.text)
            elif isinstance(block, ToolUseBlock):
                yield ToolCallStarted(block.id, block.name)
        yield Finished(response)

    async def close(self) -> None:
        """Each run has ended by itself."""

    def _response(self, framed: Frame, answer: ProgramAnswer) -> Response:
        content = read_answer(answer.said, framed)
        calls = any(isinstance(block, ToolUseBlock) for block in content)
        model = answer.model or self._name
        usage = answer.usage
        if usage is None:
            model += ESTIMATED
            usage = Usage(_estimate(framed.system + framed.prompt), _estimate(str(answer.said)))
        return Response(
            id=f"msg_{uuid.uuid4().hex}",
            model=model,
            content=content,
            stop_reason="tool_use" if calls else answer.stop_reason or "end_turn",
            usage=usage,
            raw_usage=answer.raw_usage or {},
        )


def _estimate(text: str) -> int:
    return -(-len(encoded(text)) // PROSE_BYTES)
