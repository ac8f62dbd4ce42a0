"""Scores extraction on labelled conversations: what it should store and what it must not store.

Each case has its own home with its memories, its instruction file and its messages with their date. One real run with
any model goes over them. Only the files are scored.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, time, timedelta
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, TypeAlias, cast

import click

from bench.extraction.gates import measure_gates
from bench.extraction.score import CaseOutcome, LabelledCase, Score, read_cases, report, score
from bench.scratch import (
    FILE,
    at_once,
    gates_option,
    jobs_option,
    memory_texts,
    model_option,
    scratch_home,
    show_gates,
)
from reverie.errors import ReverieError, UserError
from reverie.lab.measurement import Result, measurement
from reverie.memory.opening import open_memory
from reverie.memory.taxonomy import INDEX, is_index
from reverie.memory.topic_file import TopicFile
from reverie.models.base import Model
from reverie.paths import Places
from reverie.session.learner import open_learner
from reverie.settings import Settings
from reverie.storage.transcript.session_log import timestamp
from reverie.storage.transcript.view import Entry
from reverie.types import Block, JsonObject, Message, Origin, TextBlock, ToolResultBlock, ToolUseBlock

_OLD = timedelta(days=10)  # how long before the conversation the memories were written

Mind: TypeAlias = str | Callable[[LabelledCase, Path], Model] | None
"""The name of a model, or a function that makes one from a case and its memory directory; None: from the settings."""


@measurement("reverie lab extraction evals/extraction-own.jsonl --model embedded", "reverie lab extraction --gates")
@click.argument("file", metavar="[FILE]", required=False, type=FILE)
@model_option("The model; `embedded` needs no key")
@jobs_option("Cases")
@click.option("--split", metavar="NAME", help="Only cases whose field `split` is NAME.")
@gates_option("an extraction")
def extraction(file: Path | None, model: str | None, jobs: int, split: str | None, gates: bool) -> Result:
    """Measure extraction on labelled conversations.

    FILE has one case per line. Each case runs through the real extraction code, in a temporary home of its own. The
    files that it writes are compared with the labels. The result: how many of the written files are right (precision),
    how many of the expected memories were written (recall, as in statistics), how many dates are right, how many of the
    conversations without anything to save stayed without a memory, and the time per turn. Every mistake is shown.
    """
    if gates == (file is not None):
        raise UserError("Give one thing to measure: a file of cases, or --gates.")
    if file is None:
        return show_gates(measure_gates())
    cases = [case for case in read_cases(file) if split is None or case.split == split]
    if not cases:
        raise UserError(f"No case in {file} has the `split` {split!r}.")
    return report(asyncio.run(measure(cases, model, jobs)))


async def measure(cases: list[LabelledCase], mind: Mind, jobs: int = 1) -> list[Score]:
    """Plays and scores every case, `jobs` of them at once."""

    async def scored(case: LabelledCase) -> Score:
        return score(await play(case, mind))

    return await at_once(cases, scored, jobs)


async def play(case: LabelledCase, mind: Mind, settings: Settings | None = None) -> CaseOutcome:
    """Runs one case in its own folders."""
    with scratch_home() as (cwd, found):
        given = replace(settings, places=found.places, memory=found.memory) if settings is not None else found
        if case.instructions:
            (cwd / "AGENTS.md").write_text(case.instructions, "utf-8")
        memory = open_memory(given, Places.of(cwd, given))
        before = _write_memories(case, memory.directory.root)
        entries = entries_of(case)
        model = mind if mind is None or isinstance(mind, str) else mind(case, memory.directory.root)
        refused: list[str] = []
        failed = ""

        def report(kind: str, why: str) -> None:
            refused.append(f"{kind}: {why}")

        async with open_learner(cwd, given, memory.directory, model=model) as learner:
            began, worked = perf_counter(), process_time()
            try:
                await learner.learn(entries, 0, len(entries), today=case.today, report=report)
            except ReverieError as error:
                failed = str(error)
            seconds, cpu_seconds = perf_counter() - began, process_time() - worked
        after = memory_texts(memory.directory.root)
        topics = {name: text for name, text in after.items() if not is_index(name)}
        return CaseOutcome(
            case,
            written={name: text for name, text in topics.items() if before.get(name) != text},
            gone=tuple(sorted(name for name in before if name not in after and not is_index(name))),
            index="\n".join(text for name, text in after.items() if is_index(name) and before.get(name) != text),
            refused=tuple(refused),
            failed=failed,
            seconds=seconds,
            cpu_seconds=cpu_seconds,
        )


def entries_of(case: LabelledCase) -> list[Entry]:
    """The messages as entries of a conversation on that day; tool calls come before the text about them."""
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


def _write_memories(case: LabelledCase, root: Path) -> dict[str, str]:
    """Writes the memories of a case, with an index, and returns all their texts."""
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
    return memory_texts(root)
