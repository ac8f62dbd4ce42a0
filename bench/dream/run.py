"""Runs a real dream over scenarios with any mind, and scores the memory directory afterwards.

A scenario is a folder with `before/`, `transcripts/`, `now.txt`, `check.json` and perhaps `mtimes.json`. It is copied
into a scratch home, with its times.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from bench.dream.edits import read_scene
from bench.dream.minds import WRONG, MindKind, make_model, plan
from bench.dream.score import CheckResult, score
from bench.scratch import copy_memory, memory_files, read_json_object, read_time, scratch_home
from reverie.errors import UserError
from reverie.memory.opening import open_memory
from reverie.memory.topic_file import decode
from reverie.models.base import Model
from reverie.models.script import Script
from reverie.models.scripted import ScriptedModel
from reverie.paths import Places
from reverie.quick import dataclass
from reverie.session.session import Session
from reverie.text.columns import cut
from reverie.types import JsonObject

Mind: TypeAlias = str | MindKind | Callable[["ScenarioFolders"], Model] | None
"""The name of a model, a kind of mind, or a function that makes a model; None: the model of the settings."""
_CHECK = "check.json"
_SCRIPTED = "scripted:"


@dataclass(frozen=True, slots=True)
class ScenarioFolders:
    """The folders of a scenario in its home, and its time."""

    name: str
    source: Path
    memory: Path
    transcripts: Path
    now: datetime


@dataclass(frozen=True, slots=True)
class ScenarioScore:
    """One scenario after a dream. `said`: the outcome of the dream, or why it failed."""

    name: str
    checks: tuple[CheckResult, ...]
    said: str
    got_in: tuple[str, ...] = ()
    """Wrong texts of a mind that are in memory now."""
    seconds: float = 0.0
    """The time of the dream."""
    again: tuple[str, ...] | None = None
    """Files that a second dream changed; None if there was no second dream."""

    @property
    def failed(self) -> list[str]:
        return [check.what for check in self.checks if not check.passed]


def scenarios(folder: Path) -> list[Path]:
    """The scenarios in a folder, by name, or the folder itself if it is a scenario."""
    if (folder / _CHECK).is_file():
        return [folder]
    found = sorted(path.parent for path in folder.glob(f"*/{_CHECK}")) if folder.is_dir() else []
    if not found:
        raise UserError(f"{folder} holds no scenarios: folders with before/ and {_CHECK}.")
    return found


def measure(
    folders: Sequence[Path], mind: Mind, *, progress: Callable[[int, str], None] = lambda _done, _name: None
) -> list[ScenarioScore]:
    """Runs every scenario, except for those in which this mind cannot do anything wrong."""
    found: list[ScenarioScore] = []
    for number, folder in enumerate(folders, 1):
        scored = asyncio.run(play(folder, mind))
        if scored is not None:
            found.append(scored)
        progress(number, folder.name)
    return found


def measure_wrong(
    folders: Sequence[Path], *, progress: Callable[[int, str], None] = lambda _done, _name: None
) -> list[ScenarioScore]:
    """Runs every wrong mind in every scenario where it can err; the names are `mind/scenario`."""
    return [
        replace(one, name=f"{kind.value}/{one.name}")
        for kind in WRONG
        for one in measure(folders, kind, progress=progress)
    ]


async def play(source: Path, mind: Mind) -> ScenarioScore | None:
    """Runs one scenario in a scratch home; None if this mind cannot do anything wrong in it."""
    check = read_json_object(source / _CHECK)
    with scratch_home() as (cwd, settings):
        places = Places.of(cwd, settings)
        memory = open_memory(settings, places).directory.root
        laid = ScenarioFolders(source.name, source, memory, places.project, _now(source))
        before = _copy_scenario(laid)
        planned = None
        if isinstance(mind, MindKind):
            scene = read_scene(memory, places.project, laid.now, check)
            planned = plan(mind, scene)
            if planned is None:
                return None
            model: str | Model | None = make_model(planned, memory, scene.before)
        else:
            model = _model(mind, laid)
        session = await Session.open(cwd=cwd, settings=settings, model=model, clock=lambda: laid.now, interactive=False)
        async with session:
            began = time.perf_counter()
            said = await _dream(session)
            seconds = time.perf_counter() - began
        after = read_files(memory)
        wrong = planned.find_wrong({name: decode(data) for name, data in after.items()}) if planned is not None else []
        scored = ScenarioScore(source.name, tuple(score(check, before, after)), said, tuple(wrong), seconds)
        return scored if not _dreams_twice(mind) else replace(scored, again=await _dream_again(session, laid, after))


def _dreams_twice(mind: Mind) -> bool:
    """Whether a second dream makes sense: a script only has replies for the first."""
    return mind is None or (isinstance(mind, str) and not isinstance(mind, MindKind) and not mind.startswith(_SCRIPTED))


async def _dream_again(first: Session, laid: ScenarioFolders, before: Mapping[str, bytes]) -> tuple[str, ...]:
    """Dreams again as if for the first time, and returns the files that this changed."""
    (laid.memory / ".consolidate-lock").unlink(missing_ok=True)
    parts = first.parts
    session = await Session.open(
        cwd=parts.places.cwd,
        settings=parts.settings,
        model=parts.model.name,
        clock=lambda: laid.now,
        interactive=False,
    )
    async with session:
        await _dream(session)
    after = read_files(laid.memory)
    return tuple(sorted(name for name in {*before, *after} if before.get(name) != after.get(name)))


async def _dream(session: Session) -> str:
    if session.dreaming is None:
        raise UserError("Memory is switched off, so there is nothing to dream about.")
    task = session.dreaming.start()
    info = await task.wait()
    if task.result is None:
        return info.error or info.state.value
    left: Mapping[str, str] = task.result.landed.left if task.result.landed is not None else {}
    denied = f", {len(task.result.denied)} calls denied" if task.result.denied else ""
    return task.result.outcome + denied + "".join(f"; {why}" for why in left.values())


def _model(mind: Mind, laid: ScenarioFolders) -> str | Model | None:
    if mind is None or not isinstance(mind, str):
        return None if mind is None else mind(laid)
    if not mind.startswith(_SCRIPTED):
        return mind
    path = Path(mind.removeprefix(_SCRIPTED).replace("{scenario}", laid.name))
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"The script {path} cannot be read: {error}.") from error
    for name, value in (("memory", laid.memory), ("transcripts", laid.transcripts), ("scenario", laid.name)):
        text = text.replace("{" + name + "}", str(value))
    return ScriptedModel(Script.parse(text, str(path)))


def _copy_scenario(laid: ScenarioFolders) -> dict[str, bytes]:
    """Copies a scenario into its home, and returns the files before the dream."""
    copy_memory(laid.source / "before", laid.memory, laid.source / "mtimes.json")
    laid.transcripts.mkdir(parents=True, exist_ok=True)
    moment = laid.now.timestamp()
    for path in sorted((laid.source / "transcripts").glob("*.jsonl")):
        os.utime(shutil.copyfile(path, laid.transcripts / path.name), (moment - 60, moment - 60))
    return read_files(laid.memory)


def read_files(memory: Path) -> dict[str, bytes]:
    """The contents of all memories, by relative path."""
    return {name: path.read_bytes() for name, path in memory_files(memory).items()}


def _now(source: Path) -> datetime:
    path = source / "now.txt"
    try:
        return read_time(path.read_text("utf-8").strip(), str(path))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}; it has the time of the dream.") from error


def summary(found: Sequence[ScenarioScore]) -> JsonObject:
    """The figures for programs."""
    return {
        "checks": sum(len(one.checks) for one in found),
        "passed": sum(check.passed for one in found for check in one.checks),
        "scenarios": {
            one.name: {
                "passed": sum(check.passed for check in one.checks),
                "checks": len(one.checks),
                "failed": one.failed,
                "dream": one.said,
                "got_in": list(one.got_in),
                "seconds": round(one.seconds, 3),
                "again": None if one.again is None else list(one.again),
            }
            for one in found
        },
    }


def table(found: Sequence[ScenarioScore]) -> str:
    """The figures for people."""
    wide = max((len(one.name) for one in found), default=0) + 2
    lines: list[str] = []
    for one in found:
        passed = len(one.checks) - len(one.failed)
        lines.append(f"{one.name:<{wide}} {passed:>3} of {len(one.checks):>3}   {cut(one.said, 100)}")
        lines += [f"    ✗ {what}" for what in one.failed]
        lines += [f"    ! is in memory: {cut(text, 90)}" for text in one.got_in]
        lines += [f"    ! changed again by a second dream: {name}" for name in one.again or ()]
    whole = summary(found)
    return "\n".join([*lines, f"{whole['passed']} of {whole['checks']} checks hold"])
