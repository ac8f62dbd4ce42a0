"""The time to prepare a request, compared with LangChain's two middlewares on the same history in the same run.

Ours is `prepare` of a real session with all its layers, from the recorded results of a round to the request. Recording
and rendering as JSON are separate figures; LangChain's figure includes neither.
"""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import random
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench.scratch import home_settings
from reverie.errors import UserError
from reverie.lab.measurement import Result, Table, measurement, named, ratio
from reverie.lab.recordings import SilentModel
from reverie.lab.replay.outside import Converter, Middlewares
from reverie.loop import record_result
from reverie.models import wire
from reverie.models.base import Capabilities
from reverie.quick import dataclass
from reverie.session.session import Session
from reverie.storage.transcript.session_log import SessionLog
from reverie.tools.base import ToolOutput
from reverie.types import Message, Origin, TextBlock, ToolUseBlock

SIZES = (20_000, 80_000, 160_000)
"""Tokens of history, with system prompt and tools."""
TIMED = 31
"""Timed rounds per size; the median counts."""
_WORDS = (
    "reverie: all layers of a session, up to the request. langchain: its context editing and summarisation",
    "middlewares on the same messages. recording: the answer and its results. rendering: the request as JSON.",
)
_TIMES = ("reverie_ms", "langchain_ms", "recording_ms", "rendering_ms")
_BEFORE = 4_000
_LARGE, _SMALL = 3_200, 400
_CODE = ("def", "return", "value", "the", "path", "of", "file", "import", "if", "not", "found:", "self.index", "0x1f")


@dataclass(frozen=True, slots=True)
class Overhead:
    """Medians in milliseconds per round, for one size of the history: of the processor, so that other programs do not
    count; recording also waits for the disk."""

    tokens: int
    reverie_ms: float
    langchain_ms: float
    recording_ms: float
    rendering_ms: float


def measure_overhead() -> list[Overhead]:
    """Times rounds at the end of a history of each size. UserError if LangChain is not installed."""
    if importlib.util.find_spec("langchain") is None:
        raise UserError("The comparison needs LangChain: install it with `pip install 'reverie[lab]'`.")
    return [asyncio.run(_measure(size)) for size in SIZES]


async def _measure(size: int) -> Overhead:
    with TemporaryDirectory(prefix="reverie-overhead-") as folder:
        settings = home_settings(Path(folder))
        model = SilentModel("anthropic:claude-opus-4-5", Capabilities(cache_markers=True, ttls=("5m", "1h")))
        async with await Session.open(cwd=folder, model=model, settings=settings) as session:
            rounds = _TimedRounds(session)
            await rounds.grow(size - _BEFORE)
            return await rounds.time(size)


class _TimedRounds:
    """Adds rounds with two tool calls each to a session, and times them."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._log: SessionLog = session.log
        self._random = random.Random(7)
        self._rounds = 0

    def _text(self, characters: int) -> str:
        words = self._random.choices(_CODE, k=characters // 5)
        return "\n".join(" ".join(words[at : at + 9]) for at in range(0, len(words), 9))

    async def grow(self, size: int) -> None:
        self._session.ensure_header()
        self._log.append_message(Message("user", (TextBlock("Find out why it is slow.", Origin.TYPED),)))
        while self._log.view.meter.tokens < size:
            await self._session.conversation.prepare(1_000)
            self._round(_LARGE)

    def _round(self, characters: int) -> None:
        self._rounds += 1
        number = self._rounds
        calls = (
            ToolUseBlock(f"toolu_{number}a", "Grep", {"pattern": f"name_{number}"}),
            ToolUseBlock(f"toolu_{number}b", "mcp__docs__look", {"page": number}),
        )
        usage = {"input_tokens": self._log.view.meter.tokens, "output_tokens": 120}
        text = TextBlock(self._text(200), Origin.MODEL)
        fields = {"id": f"msg_{number}", "model": "claude-opus-4-5", "usage": usage}
        self._log.append_message(Message("assistant", (text, *calls), fields=fields))
        record_result(self._log, calls[0].id, ToolOutput(self._text(_SMALL)))
        record_result(self._log, calls[1].id, ToolOutput(self._text(characters)))

    async def time(self, size: int) -> Overhead:
        ours, theirs = list[tuple[float, float, float]](), list[float]()
        conversation, histories = self._session.conversation, list[tuple[Message, ...]]()
        gc.collect()
        gc.disable()  # a collection would slow down one of them by chance
        try:
            for _ in range(TIMED):
                began = time.perf_counter()
                self._round(_SMALL)
                recorded_s = time.perf_counter() - began
                began = time.process_time()
                request = await conversation.prepare(1_000)
                prepared = time.process_time()
                wire.body(request)
                rendered = time.process_time()
                conversation.went_out(request)
                histories.append(request.messages)
                ours.append((prepared - began, recorded_s, rendered - prepared))
            middlewares, converter = Middlewares(), Converter()
            for history in histories:
                messages = converter.convert(history)
                began = time.process_time()
                middlewares.run(messages)
                theirs.append(time.process_time() - began)
        finally:
            gc.enable()
        prepare_ms, record_ms, render_ms = (median(times) * 1_000 for times in zip(*ours, strict=True))
        return Overhead(size, prepare_ms, median(theirs) * 1_000, record_ms, render_ms)


@measurement("reverie lab overhead --json")
def overhead() -> Result:
    """Measure how long preparing a request takes, compared with LangChain's middlewares.

    Uses histories of 20,000, 80,000 and 160,000 tokens and all layers of a session.
    """
    measured = measure_overhead()
    figures = {str(one.tokens): {name: getattr(one, name) for name in _TIMES} for one in measured}
    rows = [{**row, "share": row["reverie_ms"] / row["langchain_ms"]} for row in named(figures, "history")]
    factor = measured[-1].reverie_ms / measured[0].reverie_ms
    grows = f"From {measured[0].tokens:,} to {measured[-1].tokens:,} tokens ours grows {factor:.2f} times."
    columns = ("history", *map(ratio, (*_TIMES, "share")))
    return Result(figures, (Table(rows, columns), grows, *_WORDS))
