"""Whether clearing and compaction ever make an agent read the same files in circles.

A mind plays the model of a real session: it warms up, then needs several files in view at once and reads those that are
not. It finishes, or gives up after too many extra reads. Files, tools and layers are real; nothing is sent anywhere.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from bench.scratch import home_settings
from reverie.lab.measurement import Result, Row, Table, measurement, track
from reverie.models.base import Capabilities, Finished, ModelEvent, Request, Response
from reverie.models.tokens import PROSE_BYTES
from reverie.models.window import REFERENCE_WINDOW, scaled, thresholds
from reverie.quick import dataclass
from reverie.session.session import Session
from reverie.settings.sections import ToolSettings
from reverie.simulator.tokens import block_tokens
from reverie.types import Block, Message, Origin, Purpose, TextBlock, ToolResultBlock, ToolUseBlock, Usage

WINDOWS = (32_000, 200_000, 1_000_000)
NEEDED = (2, 3, 4, 5, 6)
WARM_UPS = (10, 50, 100, 200)
WORKING = (5, 20)
MOST_EXTRA = 1
"""Extra reads per file that count as finished well."""
LARGE, SMALL = 0.4, 0.05
_WARM_SHARE = 0.02
_TALK_SHARE = 0.015
_SECONDS = 10
_GIVES_UP = 10
_OFF = ("EXTRACTION", "DREAM", "RECALL", "CACHE_WATCH")
_LINE = (
    "{name} {number}: the keeper of the lighthouse writes down the hour, the wind and the ships that pass by here.\n"
)
_LINE_BYTES = len(_LINE) + 12
_NAME = "scripted:mind"
_SUMS = ("finished", "extra", "cleared", "compactions")


@dataclass(frozen=True, slots=True)
class ThrashCase:
    """One mind: `needed` files at once after `warm_up` rounds, for `work` rounds; `idle_reads`: without a reason."""

    window: int
    needed: int
    warm_up: int
    work: int = 0
    idle_reads: int = 0
    share: float = LARGE
    """The part of the effective window that the needed files fill together."""
    talks: bool = False
    """Says so much in every round that the window is compacted again and again."""

    @property
    def kind(self) -> str:
        what = "re-reads" if self.idle_reads else f"works {self.work}" if self.work else "needs"
        return what + (" small" if self.share < LARGE else "") + (", talks" if self.talks else "")


@dataclass(slots=True)
class ThrashResult:
    """How a mind fared. `most_extra`: extra reads of the file that was read most often."""

    case: ThrashCase
    finished: bool = False
    rounds: int = 0
    extra: int = 0
    most_extra: int = 0
    cleared: int = 0
    compactions: int = 0
    largest: int = 0
    """Tokens of the largest prompt."""

    @property
    def is_well(self) -> bool:
        return self.finished and (self.most_extra <= MOST_EXTRA or bool(self.case.idle_reads))

    def figures(self) -> Row:
        figures = asdict(self)
        return {"kind": self.case.kind, **figures.pop("case"), **figures, "well": self.is_well}


def thrash_cases(windows: Sequence[int]) -> Iterator[ThrashCase]:
    """The minds for these windows."""
    for window in windows:
        for warm_up in WARM_UPS:
            yield from (ThrashCase(window, needed, warm_up) for needed in NEEDED)
        yield from (ThrashCase(window, needed, 100, share=SMALL) for needed in NEEDED)
        yield from (ThrashCase(window, needed, warm_up, talks=True) for needed in (2, 6) for warm_up in (50, 55, 60))
        yield from (ThrashCase(window, 4, 100, work=work) for work in WORKING)
        yield ThrashCase(window, 5, 50, idle_reads=60)


def measure_thrash(cases: Sequence[ThrashCase]) -> list[ThrashResult]:
    """Runs every mind, one process per processor."""
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(cases))) as pool:
        return list(track(pool.map(run_case, cases), len(cases), "models"))


def run_case(case: ThrashCase) -> ThrashResult:
    """Runs one mind in a session of its own."""
    with TemporaryDirectory(prefix="reverie-thrash-") as folder:
        return asyncio.run(_run(case, Path(folder)))


async def _run(case: ThrashCase, folder: Path) -> ThrashResult:
    project = folder / "project"
    project.mkdir()
    mind = _Mind(case, project)
    settings = home_settings(folder, _OFF)
    settings = replace(settings, window=replace(settings.window, context_window=case.window))
    async with await Session.open(cwd=project, model=mind, settings=settings, clock=mind.clock) as session:
        async for _ in session.send("Look around, then compare the files you need."):
            pass
        view = session.log.view
        result = mind.result
        result.cleared, result.compactions = len(view.cleared), view.boundaries
    return result


@dataclass(eq=False)
class _Mind:
    """Answers from what it sees in the request."""

    case: ThrashCase
    folder: Path
    name: str = _NAME
    capabilities: Capabilities = field(default_factory=lambda: Capabilities(cache_markers=True, ttls=("5m", "1h")))
    reads: Counter[str] = field(default_factory=Counter[str])

    def __post_init__(self) -> None:
        case = self.case
        limits = thresholds(case.window, REFERENCE_WINDOW)
        most = scaled(ToolSettings().read_lines, min(case.window, REFERENCE_WINDOW)) - 2
        self.needed = [f"needed{number}.txt" for number in range(case.needed)]
        bytes_most = scaled(ToolSettings().read_bytes, min(case.window, REFERENCE_WINDOW))
        most = min(most, bytes_most // _LINE_BYTES)
        self._lines = max(3, min(most, int(limits.effective * case.share / case.needed * PROSE_BYTES / _LINE_BYTES)))
        self._warm_lines = max(3, min(most, int(case.window * _WARM_SHARE * PROSE_BYTES / _LINE_BYTES)))
        for name in self.needed:
            self._write(name, self._lines)
        self.result = ThrashResult(case)
        self._worked = 0
        self._known: dict[int, tuple[Message, frozenset[str], int]] = {}
        self._time = datetime(2026, 5, 1, 9, tzinfo=UTC)

    def clock(self) -> datetime:
        return self._time

    def _write(self, name: str, lines: int) -> None:
        text = "".join(_LINE.format(name=name, number=number) for number in range(lines))
        (self.folder / name).write_text(f"BEGIN {name}\n{text}END {name}\n")

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent]:
        seen = [self._look(message) for message in request.messages]
        tokens = sum(tokens for _, tokens in seen) + sum(len(text) for text in request.system) // PROSE_BYTES
        content: Block = TextBlock("<summary>Files were read.</summary>", Origin.MODEL)
        if request.purpose is Purpose.MAIN:
            self._time += timedelta(seconds=_SECONDS)
            self.result.rounds += 1
            self.result.largest = max(self.result.largest, tokens)
            content = self._act(frozenset[str]().union(*(names for names, _ in seen)))
        stop = "tool_use" if isinstance(content, ToolUseBlock) else "end_turn"
        said = self._talk() if self.case.talks and request.purpose is Purpose.MAIN else ()
        usage = Usage(input_tokens=tokens, output_tokens=60 + sum(len(block.text) for block in said) // PROSE_BYTES)
        name = f"msg_{self.result.rounds}_{request.purpose}"
        yield Finished(Response(name, self.name, (*said, content), stop, usage))

    def _talk(self) -> tuple[TextBlock, ...]:
        words = f"In round {self.result.rounds} I think about the lighthouse. "
        size = int(self.case.window * _TALK_SHARE * PROSE_BYTES)
        return (TextBlock((words * (size // len(words) + 1))[:size], Origin.MODEL),)

    async def close(self) -> None:
        pass

    def _look(self, message: Message) -> tuple[frozenset[str], int]:
        """Which needed files a message shows whole, and its tokens."""
        known = self._known.get(id(message))
        if known is None:
            texts = [b.text for b in message.content if isinstance(b, TextBlock | ToolResultBlock)]
            names = {n for n in self.needed if any(f"BEGIN {n}" in text and f"END {n}" in text for text in texts)}
            tokens = sum(block_tokens(block.wire()) for block in message.content)
            known = self._known[id(message)] = (message, frozenset(names), tokens)
        return known[1:]

    def _act(self, in_view: frozenset[str]) -> Block:
        case, result = self.case, self.result
        if result.rounds <= case.warm_up:
            name = f"warm{result.rounds}.txt"
            self._write(name, self._warm_lines)
            return self._read(name)
        if case.idle_reads and self._worked < case.idle_reads:
            self._worked += 1
            return self._read(self.needed[self._worked % case.needed])
        missing = [name for name in self.needed if name not in in_view]
        if missing and not case.idle_reads:
            self.reads[missing[0]] += 1
            result.most_extra = max(0, max(self.reads.values()) - 1)
            result.extra = sum(self.reads.values()) - len(self.reads)
            if result.most_extra >= _GIVES_UP:
                return TextBlock("I give up.", Origin.MODEL)
            return self._read(missing[0])
        if self._worked < case.work:
            self._worked += 1
            name = f"step{self._worked}.txt"
            self._write(name, 3)
            return self._read(name)
        result.finished = True
        return TextBlock("Done.", Origin.MODEL)

    def _read(self, name: str) -> ToolUseBlock:
        return ToolUseBlock(f"toolu_{self.result.rounds}", "Read", {"file_path": str(self.folder / name)})


@measurement("reverie lab thrash --window 32000 --json")
@click.option(
    "--window",
    "windows",
    multiple=True,
    type=click.IntRange(min=8_000),
    help="Only this window, in tokens. Repeatable.",
)
def thrash(windows: tuple[int, ...]) -> Result:
    """Measure whether clearing and compaction make an agent read the same files again and again.

    A scripted model works in a real session. It reads 10 to 200 files, and then it needs two to six other files in view
    at once: it reads those that are not, until all are. Other models work on such files for 5 or 20 rounds, talk so
    much that the window is compacted meanwhile, or read files again without a reason. Each file may be read once more.

    Exit codes: 0: all models finished in this way; 1: one of them did not; 2: wrong usage.
    """
    return report(measure_thrash(list(thrash_cases(windows or WINDOWS))))


def report(done: Sequence[ThrashResult]) -> Result:
    """One row per window and kind, and every mind that did not fare well."""
    figures = {
        "minds": len(done),
        "finished": sum(one.finished for one in done),
        "well": sum(one.is_well for one in done),
        "most_extra_reads": max((one.most_extra for one in done if not one.case.idle_reads), default=0),
        "cases": [one.figures() for one in done],
    }
    groups = dict[tuple[int, str], list[ThrashResult]]()
    for one in done:
        groups.setdefault((one.case.window, one.case.kind), []).append(one)
    rows = [
        {
            "window": window,
            "mind": kind,
            "runs": len(group),
            "most_per_file": max(one.most_extra for one in group),
            **{name: sum(getattr(one, name) for one in group) for name in _SUMS},
        }
        for (window, kind), group in groups.items()
    ]
    bad = [f"{one.case}: {one.most_extra} extra reads of one file" for one in done if not one.is_well]
    words = "extra: reads of files that a mind had read before and needed again because they were no longer in view."
    columns = ("window", "mind", "runs", *_SUMS, "most_per_file")
    return Result(figures, (Table(rows, columns), *bad, words), holds=not bad)
