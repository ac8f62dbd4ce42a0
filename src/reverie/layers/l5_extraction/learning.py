"""One run of layer 5: a fork looks at what is new in a conversation and writes what is worth keeping.

The same for a running session and for recorded conversations. Every write passes the directory's gate. It decides
neither when it runs nor what happens after it failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from reverie.errors import ReverieError
from reverie.layers.base import Fork
from reverie.layers.l5_extraction.directive import directive
from reverie.layers.l5_extraction.span import Span
from reverie.layers.l5_extraction.writes import Done, MemoryWrites, Source
from reverie.memory.directory import MemoryDirectory
from reverie.memory.scan import scan
from reverie.permissions.background import BackgroundWriter
from reverie.runtime.heartbeat import run_figures
from reverie.tools.base import Keeper
from reverie.types import JsonObject, Purpose, Usage


class ExtractionFailed(ReverieError):
    """A run came to no good end; its messages are looked at again."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of layer 5 as they hold now."""

    every_turns: int = 1
    max_rounds: int = 5
    run_s: float = 180.0
    most_losses: int = 3


@dataclass(frozen=True, slots=True)
class Learnt:
    """What a run came to. `done`: what became of each topic file. `refused` and `denied`: why other writes were not."""

    done: dict[str, Done]
    refused: tuple[str, ...]
    denied: tuple[str, ...]
    usage: Usage
    rounds: int
    reason: str

    def figures(self) -> JsonObject:
        """What the log and the heartbeat keep of it."""
        return {
            "written": len(self.done),
            "refused": len(self.refused),
            "denied": len(self.denied),
            **run_figures(self.usage, rounds=self.rounds),
        }


async def learn(
    fork: Fork,
    span: Span,
    directory: MemoryDirectory,
    numbers: Numbers,
    *,
    session: str,
    today: date,
    keeps_index: bool = True,
    addressed: Path | None = None,
    report: Callable[[str, str], None] = lambda _kind, _reason: None,
    progress: Callable[[str], None] = lambda _text: None,
) -> Learnt:
    """One run over the new messages. `report` is told at once what was denied or refused, and why.

    `addressed`: the path by which the model knows the directory, where `directory` is a copy of it.

    Raises what the model raised, `StorageError` if the disk refused a write, or `ExtractionFailed` if the run came to
    no end.
    """
    await asyncio.to_thread(directory.make)
    found = await asyncio.to_thread(scan, directory.root)
    known_as = addressed or directory.root
    asked = directive(span, found.entries, known_as, rounds=numbers.max_rounds, today=today)
    source = Source(session, span.end or "", span.evidence())
    writes = MemoryWrites(
        directory,
        source,
        keeps_index=keeps_index,
        most_losses=numbers.most_losses,
        report=lambda reason: report("refused", reason),
    )
    permission = BackgroundWriter(known_as, on_denied=lambda tool, reason: report("denied", f"{tool}: {reason}"))

    def in_the_copy(path: Path) -> Path:
        return directory.root / path.relative_to(known_as) if path.is_relative_to(known_as) else path

    def keeper(path: Path) -> Keeper | None:
        return writes.keeper(in_the_copy(path))

    try:
        async with asyncio.timeout(numbers.run_s):
            result = await fork.run(
                asked,
                purpose=Purpose.EXTRACTION,
                permission=permission,
                max_rounds=numbers.max_rounds,
                map_path=in_the_copy,
                keeper=keeper,
                progress=progress,
            )
    except TimeoutError:
        raise ExtractionFailed(f"it took longer than {numbers.run_s:g} s and was ended") from None
    if writes.unstored is not None:
        raise writes.unstored
    if result.reason == "refused":
        raise ExtractionFailed("the model refused to answer")
    if result.reason != "answered" and not writes.done:
        raise ExtractionFailed(f"it came to no end in {result.rounds} rounds and wrote nothing")
    return Learnt(writes.done, tuple(writes.refused), result.denied, result.usage, result.rounds, result.reason)
