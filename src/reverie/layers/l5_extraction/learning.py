"""One run of layer 5: a fork reads the new messages of a conversation and writes what is worth keeping.

The same for running sessions and recorded conversations. Every write passes the gate of the memory directory.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from pathlib import Path

from reverie.errors import ReverieError
from reverie.layers.base import Fork
from reverie.layers.l5_extraction.span import MessageSpan
from reverie.layers.l5_extraction.writes import Done, MemoryWrites, RunSource
from reverie.memory.directory import MemoryDirectory
from reverie.memory.listing import ShownMemory, find_meant, list_memories
from reverie.memory.scan import ScanEntry, scan
from reverie.permissions.background import BackgroundWriter
from reverie.prompts import render
from reverie.quick import dataclass
from reverie.runtime.heartbeat import run_figures
from reverie.storage.transcript.view import Entry
from reverie.text.cutting import shorten
from reverie.tools.base import Keeper, SeenFile
from reverie.tools.files import digest
from reverie.types import JsonObject, Purpose, Usage

_OPENING_WORDS = 60
_SHOWN = "\nThese of them may be meant. They are whole: you can change them without a Read."
_ANSWER_CHARACTERS = 2_000


class ExtractionFailed(ReverieError):
    """A run failed; its messages are looked at again."""


@dataclass(frozen=True, slots=True)
class ExtractionNumbers:
    """The numbers of layer 5."""

    every_turns: int = 1
    max_rounds: int = 5
    run_s: float = 180.0
    most_losses: int = 3


@dataclass(frozen=True, slots=True)
class LearningResult:
    """The result of a run. `done`: what happened to each topic file. `held`: statements that wait for the user.
    `refused`, `denied`: why others were not written."""

    done: dict[str, Done]
    held: tuple[str, ...]
    refused: tuple[str, ...]
    denied: tuple[str, ...]
    usage: Usage
    rounds: int
    reason: str
    model: str = ""
    """The model that answered."""

    def figures(self) -> JsonObject:
        """Returns the figures for the log and the heartbeat."""
        return {
            "written": len(self.done),
            "held": len(self.held),
            "refused": len(self.refused),
            "denied": len(self.denied),
            **run_figures(self.usage, rounds=self.rounds),
        }


def directive(
    span: MessageSpan,
    memories: Iterable[ScanEntry],
    directory: Path,
    *,
    rounds: int,
    today: date,
    shown: Sequence[ShownMemory] = (),
) -> str:
    """Renders the directive of the fork. `today` counts if the messages have no dates; `shown` are memories that it
    does not have to read."""
    count = span.messages
    whole = "\n".join([_SHOWN, *(one.text for one in shown)]) if shown else ""
    values = {
        "count": "The last message" if count == 1 else f"The last {count} messages",
        "are": "is" if count == 1 else "are",
        "directory": str(directory),
        "dates": _list_dates(span.days() or [(today, "")]),
        "rounds": str(rounds),
        "manifest": list_memories(memories) or "(none yet)",
        "shown": whole,
    }
    return render("reverie.layers.l5_extraction", "directive.md", values)


def _list_dates(days: Sequence[tuple[date, str]]) -> str:
    if len(days) == 1:
        return f"The user wrote on {days[0][0]:%A, %Y-%m-%d}."
    lines = [f"- from “{shorten(words, _OPENING_WORDS)}” on: {day:%A, %Y-%m-%d}" for day, words in days]
    return "\n".join(["The user wrote on these days:", *lines])


async def learn(
    fork: Fork,
    span: MessageSpan,
    directory: MemoryDirectory,
    numbers: ExtractionNumbers,
    *,
    session: str,
    today: date,
    older: Sequence[Entry] | None = None,
    addressed: Path | None = None,
    report: Callable[[str, str], None] = lambda _kind, _reason: None,
    progress: Callable[[str], None] = lambda _text: None,
) -> LearningResult:
    """Runs once over the new messages. `report` gets every refusal at once, with its reason.

    A reply whose writes are all carried out ends the run. `older` is the conversation before the new messages, if it is
    more than the fork has. `addressed` is the path by which the model knows the directory, if `directory` is a copy.
    Raises what the model raises, `StorageError` if the disk refused a write, or `ExtractionFailed`.
    """
    await asyncio.to_thread(directory.make)
    found = await asyncio.to_thread(scan, directory.root)
    known_as = addressed or directory.root
    shown = await asyncio.to_thread(find_meant, directory.root, found.entries, _said(span))
    asked = directive(span, found.entries, known_as, rounds=numbers.max_rounds, today=today, shown=shown)
    source = RunSource(session, span.end or "", span.evidence(fork.view.history if older is None else older))
    writes = MemoryWrites(
        directory,
        source,
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
                seen={
                    Path(os.path.realpath(known_as / one.name)): SeenFile(0, 0, digest(one.data), False, 0)
                    for one in shown
                },
                progress=progress,
                enough=writes.are_enough,
            )
    except TimeoutError:
        raise ExtractionFailed(f"it took longer than {numbers.run_s:g} s and was ended") from None
    if writes.unstored is not None:
        raise writes.unstored
    if result.reason == "refused":
        raise ExtractionFailed("the model refused to answer")
    if result.reason != "answered" and not writes.done:
        raise ExtractionFailed(f"it came to no end in {result.rounds} rounds and wrote nothing")
    return LearningResult(
        writes.done,
        tuple(writes.held),
        tuple(writes.refused),
        result.denied,
        result.usage,
        result.rounds,
        result.reason,
        result.model,
    )


def _said(span: MessageSpan) -> str:
    """What the user wrote, and the answer that it refers to."""
    before = "" if span.before is None else span.before.message.text[-_ANSWER_CHARACTERS:]
    return "\n".join([before, *(text for text, _ in span.typed)])
