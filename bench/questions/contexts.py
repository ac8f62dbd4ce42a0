"""What a compaction leaves of a recorded session: a real session with all layers, whose answers are recorded ones.

The recording gives the answers and the results of tools. A model writes the notes and summaries. The session works in
a folder with a fixed name, so that its requests are the same in every run.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncGenerator, Iterator
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from uuid import NAMESPACE_URL, uuid5

from bench.questions.answers import Answers
from bench.scratch import home_settings
from reverie.errors import ReverieError, UserError
from reverie.lab.replay.compaction import ReplayDisk
from reverie.lab.replay.policies import CACHED
from reverie.lab.replay.recorded import NEVER_FULL, RecordedSession
from reverie.lab.replay.run import limit_read
from reverie.layers.base import Effect, EffectResult, ReadFile
from reverie.loop import record_result
from reverie.models import wire
from reverie.models.base import Capabilities, Finished, ModelEvent, Request, Response
from reverie.models.tokens import estimate_text
from reverie.quick import dataclass
from reverie.session.session import Session
from reverie.simulator import Meter
from reverie.simulator.tokens import block_tokens
from reverie.storage.transcript.records import CompactBoundary, from_record
from reverie.tools.base import ToolOutput
from reverie.types import Message, Purpose, TextBlock, ToolResultBlock, ToolUseBlock

Cadence = Literal["reference", "economic"]
CADENCES: tuple[Cadence, ...] = ("reference", "economic")
_OFF = ("EXTRACTION", "DREAM", "RECALL", "CACHE_WATCH")
_MAX_TOKENS = 8_000
_LONGEST_WAIT_S = 100_000.0


@dataclass(frozen=True, slots=True)
class CompactedContext:
    """The messages directly after a compaction, as text. `writer`: who wrote its summary (such as `notes`)."""

    session: str
    cadence: Cadence
    text: str
    writer: str
    round: int
    compactions: int

    @property
    def tokens(self) -> int:
        return estimate_text(self.text)


async def compact_recorded(
    recorded: RecordedSession,
    cadence: Cadence,
    answers: Answers,
    *,
    folder: Path,
    window: int,
    compactions: int = 1,
) -> CompactedContext:
    """Replays a session until it was compacted that often, and returns the last context. UserError if it never is."""
    shutil.rmtree(folder, ignore_errors=True)  # an earlier run of the same
    project = folder / "project"
    project.mkdir(parents=True)
    settings = home_settings(folder, _OFF)
    settings = replace(
        settings,
        window=replace(settings.window, autocompact_window=window),
        notes=replace(settings.notes, cadence=cadence),
        background=replace(settings.background, fallback=False),
    )
    player = _Player(recorded, cadence, answers)
    session_id = str(uuid5(NAMESPACE_URL, recorded.name))
    opened = Session.open(cwd=project, model=player, settings=settings, session_id=session_id, clock=player.clock)
    async with await opened as session:
        found = await _Replay(session, player, folder, window).run(compactions)
    if found is None:
        raise UserError(f"{recorded.name} is not compacted in a window of {window:,} tokens; lower --window.")
    return found


@dataclass(eq=False)
class _Player:
    """A model that answers the conversation from the recording, and asks the real model for notes and summaries."""

    recorded: RecordedSession
    cadence: Cadence
    answers: Answers
    capabilities: Capabilities = CACHED
    at: int = 0
    error: ReverieError | None = None
    _meter: Meter = field(default_factory=lambda: Meter(window=NEVER_FULL))

    @property
    def name(self) -> str:
        return f"anthropic:{self.recorded.model}"

    def clock(self) -> datetime:
        return datetime.fromtimestamp(self.recorded.rounds[self.at].at, UTC)

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent]:
        yield Finished(await self._answer(request))

    async def close(self) -> None:
        pass

    async def _answer(self, request: Request) -> Response:
        if request.purpose is not Purpose.MAIN:
            try:
                return await self.answers.ask(request, request.purpose.value, self.cadence)
            except ReverieError as error:  # a background task hides it
                self.error = error
                raise
        each = self.recorded.rounds[self.at]
        content = each.response.content
        size = sum(block_tokens(block.wire()) for block in content)
        usage = self._meter.bill(wire.body(request), each.at, output_tokens=size).usage
        stop = "tool_use" if each.response.tool_uses else "end_turn"
        return Response(f"msg_{self.at}", self.name, content, stop, usage)


class _Replay:
    """Takes a session through the rounds of a recording, as the loop does, without running a tool."""

    def __init__(self, session: Session, player: _Player, folder: Path, window: int) -> None:
        self._session, self._player, self._window = session, player, window
        self._conversation = session.conversation
        self._disk = ReplayDisk()
        self._calls = dict[str, ToolUseBlock]()
        around = self._conversation.around

        async def carry_out(effect: Effect) -> EffectResult:
            """Reads the files of the recorded session from the recording."""
            if isinstance(effect, ReadFile) and not effect.path.is_relative_to(folder):
                return self._disk.read(effect)
            return await around.carry_out(effect)

        self._conversation.around = replace(around, carry_out=carry_out)

    async def run(self, compactions: int) -> CompactedContext | None:
        session, player, view = self._session, self._player, self._session.log.view
        session.ensure_header()
        found = None
        for number, each in enumerate(player.recorded.rounds):
            player.at, before = number, view.boundaries
            for message in each.entered:
                await self._enter(message)
            request = await self._conversation.prepare(_MAX_TOKENS)
            self._raise_error()
            if view.boundaries > before:
                text = "\n\n".join(_lines(view.messages()))
                found = CompactedContext(
                    player.recorded.name, player.cadence, text, self._writer(), number, view.boundaries
                )
                if view.boundaries >= compactions:
                    break
            async for event in self._conversation.send(request):
                if isinstance(event, Finished):
                    await self._conversation.observe(event.response)
            self._calls |= {call.id: call for call in each.response.tool_uses}
            await self._conversation.after_response()
            await session.tasks.settle(Purpose.NOTES, _LONGEST_WAIT_S)
            self._raise_error()
        return found

    def _raise_error(self) -> None:
        if self._player.error is not None:
            raise self._player.error

    def _writer(self) -> str:
        payloads = (from_record(record) for record in reversed(self._session.log.records))
        return next(one.writer for one in payloads if isinstance(one, CompactBoundary))

    async def _enter(self, message: Message) -> None:
        log = self._session.log
        for block in message.content:
            if isinstance(block, ToolResultBlock):
                await self._record(block)
        others = tuple(block for block in message.content if not isinstance(block, ToolResultBlock))
        if others:
            log.append_message(replace(message, content=others, plain=False))

    async def _record(self, block: ToolResultBlock) -> None:
        call = self._calls.get(block.tool_use_id)
        if call is None:
            return
        self._disk.record(call, block)
        block = limit_read(call, block, self._window)
        output = ToolOutput(block.content or "", is_error=bool(block.is_error), origin=block.origin)
        record_result(self._session.log, call.id, await self._conversation.keep(call, output))


def _lines(messages: tuple[Message, ...]) -> Iterator[str]:
    """The messages as a reader would see them, without thinking and images."""
    for message in messages:
        for block in message.content:
            match block:
                case TextBlock():
                    yield f"[{message.role}] {block.text}"
                case ToolUseBlock():
                    yield f"[{message.role} calls {block.name}] {json.dumps(block.input, ensure_ascii=False)}"
                case ToolResultBlock():
                    yield f"[result] {block.text}"
                case _:
                    pass
