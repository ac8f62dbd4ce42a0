"""Scores layer 5 on labelled conversations: what should be remembered, what not, and what must never be.

Each case is played in a home of its own: its memories, its instruction file, its messages with the date of the day, and
one real run over them with any model. What is scored is the files afterwards, never what the model said.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, time, timedelta
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, TypeAlias, cast

from reverie.errors import ReverieError
from reverie.lab.extraction.score import Case, Outcome, Score, score
from reverie.lab.scratch import memory_files, own_home
from reverie.memory.opening import open_memory
from reverie.memory.taxonomy import INDEX, is_index
from reverie.memory.topic_file import TopicFile, decode
from reverie.models.base import Model
from reverie.paths import Places
from reverie.session.learner import open_learner
from reverie.settings import Settings
from reverie.storage.transcript.session_log import timestamp
from reverie.storage.transcript.view import Entry
from reverie.types import Block, JsonObject, Message, Origin, TextBlock, ToolResultBlock, ToolUseBlock

_OLD = timedelta(days=10)  # how long before the conversation the memories were written

Mind: TypeAlias = str | Callable[[Case, Path], Model] | None
"""Who thinks: a model's name, or what makes one from a case and its memory directory; None: the settings' model."""


async def measure(
    cases: Sequence[Case], mind: Mind, *, jobs: int = 1, progress: Callable[[int], None] = lambda _done: None
) -> list[Score]:
    """Plays and scores every case, `jobs` of them at once."""
    room, done = asyncio.Semaphore(jobs), 0

    async def one(case: Case) -> Score:
        nonlocal done
        async with room:
            found = score(await play(case, mind))
        done += 1
        progress(done)
        return found

    return list(await asyncio.gather(*map(one, cases)))


async def play(case: Case, mind: Mind, settings: Settings | None = None) -> Outcome:
    """One run over a case, in folders of its own."""
    with own_home() as (cwd, found):
        given = replace(settings, places=found.places, memory=found.memory) if settings is not None else found
        if case.instructions:
            (cwd / "AGENTS.md").write_text(case.instructions, "utf-8")
        memory = open_memory(given, Places.of(cwd, given))
        before = _lay_out(case, memory.directory.root)
        entries = entries_of(case)
        model = mind if mind is None or isinstance(mind, str) else mind(case, memory.directory.root)
        refused: list[str] = []
        failed = ""

        def heard(kind: str, why: str) -> None:
            refused.append(f"{kind}: {why}")

        async with open_learner(cwd, given, memory.directory, model=model) as learner:
            began, worked = perf_counter(), process_time()
            try:
                await learner.learn(entries, 0, len(entries), today=case.today, report=heard)
            except ReverieError as error:
                failed = str(error)
            seconds, cpu_seconds = perf_counter() - began, process_time() - worked
        after = _texts(memory.directory.root)
        topics = {name: text for name, text in after.items() if not is_index(name)}
        return Outcome(
            case,
            written={name: text for name, text in topics.items() if before.get(name) != text},
            gone=tuple(sorted(name for name in before if name not in after and not is_index(name))),
            index="\n".join(text for name, text in after.items() if is_index(name) and before.get(name) != text),
            refused=tuple(refused),
            failed=failed,
            seconds=seconds,
            cpu_seconds=cpu_seconds,
        )


def entries_of(case: Case) -> list[Entry]:
    """The messages as records of a conversation held on that day; tool calls stand before what was said about them."""
    clock = datetime.combine(case.today, time(10)).astimezone()
    found: list[Entry] = []

    def add(role: Any, *blocks: Block) -> None:
        nonlocal clock
        clock += timedelta(seconds=20)
        found.append(Entry(str(uuid.uuid4()), Message(role, blocks), timestamp(clock)))

    for number, message in enumerate(case.messages):
        text = str(message.get("text", ""))
        if message["role"] == "user":
            add("user", TextBlock(text, Origin.TYPED))
            continue
        for at, tool in enumerate(cast("list[JsonObject]", message.get("tools") or [])):
            call = f"toolu_case_{number}_{at}"
            name = str(tool["name"])
            add("assistant", ToolUseBlock(call, name, tool.get("input") or {}))
            origin = Origin.PAGE if name.startswith("Web") else Origin.TOOL
            add("user", ToolResultBlock(call, str(tool.get("result", "")), origin=origin))
        add("assistant", TextBlock(text, Origin.MODEL))
    return found


def _lay_out(case: Case, root: Path) -> dict[str, str]:
    """Puts the memories in place, with an index; what stands there then."""
    if not case.existing:
        return {}
    root.mkdir(parents=True, mode=0o700)
    when = (datetime.combine(case.today, time(9)) - _OLD).timestamp()
    lines: list[str] = []
    for name, text in case.existing.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        topic = TopicFile.parse(text)
        lines.append(f"- [{topic.name or name}]({name}) — {topic.description}\n")
    if INDEX not in case.existing:
        (root / INDEX).write_text("".join(lines), "utf-8")
    for path in root.rglob("*.md"):
        os.utime(path, (when, when))
    return _texts(root)


def _texts(root: Path) -> dict[str, str]:
    return {name: decode(path.read_bytes()) for name, path in memory_files(root).items()}
