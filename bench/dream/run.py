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
from typing import Any, TypeAlias

import click

from bench.dream.edits import read_scene
from bench.dream.gates import measure_gates, measure_speed
from bench.dream.minds import WRONG, MindKind, make_model, plan
from bench.dream.score import CheckResult, score
from bench.scratch import (
    FOLDER,
    copy_memory,
    gates_option,
    memory_files,
    model_option,
    read_json_object,
    read_time,
    scratch_home,
    show_gates,
)
from reverie.errors import UserError
from reverie.lab.measurement import Result, measurement, track
from reverie.memory.opening import open_memory
from reverie.memory.topic_file import decode
from reverie.models.base import Model
from reverie.models.script import Script
from reverie.models.scripted import ScriptedModel
from reverie.paths import Places
from reverie.quick import dataclass
from reverie.session.session import Session
from reverie.text.columns import cut

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


_MINDS = ("right", "wrong", "idle", *(kind.value for kind in WRONG))


@measurement(
    "reverie lab dream scenarios --mind right",
    "reverie lab dream scenarios --model anthropic:claude-sonnet-5-5",
    "reverie lab dream evals/dream-own/tune --model embedded --json",
    "reverie lab dream --gates",
    "reverie lab dream --files 150",
)
@click.argument("folder", metavar="[DIR]", required=False, type=FOLDER)
@model_option("The model that dreams")
@click.option("--mind", type=click.Choice(_MINDS), help="A test mind that dreams instead of a model (see above).")
@gates_option("a dream")
@click.option(
    "--files",
    type=click.IntRange(1, 5_000),
    metavar="N",
    help="Measure how long the offline mind takes to dream about N memory files.",
)
def dream(folder: Path | None, model: str | None, mind: str | None, gates: bool, files: int | None) -> Result:
    """Run a dream on every scenario in DIR and check the result.

    A scenario is a folder with before/, transcripts/, now.txt, check.json and optionally mtimes.json. The command works
    on a copy. With `--model scripted:FILE`, placeholders are replaced: `{scenario}` in the path FILE by the name of the
    scenario, and `{memory}` and `{transcripts}` in the content of this file by the paths of the two folders. Other
    models dream twice: the second dream should change nothing, so files that it changes are listed.

    \b
    A test mind replaces the model, to test the checks. Each makes edits that follow from check.json:
      right        makes the edits that the checks ask for
      idle         does nothing
      deletes      empties every file
      contradicts  keeps wrong statements next to true ones
      invents      adds statements that nobody made
      misdates     computes relative dates from the day of the dream, not of the message
      obeys        follows instructions in tool results
      leaks        moves private notes to the team, secrets into memories
      wrong        all bad minds, one after the other: the six from `deletes` to `leaks`
    """
    if sum((gates, folder is not None, files is not None)) != 1:
        raise UserError("Give one thing to measure: a folder of scenarios, --gates, or --files.")
    if files is not None:
        speed = measure_speed(files)
        first = f"{files} files, {speed['bytes']:,} bytes: {speed['first_s']:.2f} s ({speed['left']} files left)"
        return Result(speed, [f"{first}; a second dream: {speed['second_s']:.2f} s, {speed['second']}"])
    if folder is None:
        return show_gates(measure_gates())
    if model is not None and mind is not None:
        raise UserError("Give --model or --mind, not both.")
    folders = scenarios(folder)
    if mind == "wrong":
        return report(measure_wrong(folders))
    return report(measure(folders, model if mind is None else MindKind(mind)))


def scenarios(folder: Path) -> list[Path]:
    """The scenarios in a folder, by name, or the folder itself if it is a scenario."""
    if (folder / _CHECK).is_file():
        return [folder]
    found = sorted(path.parent for path in folder.glob(f"*/{_CHECK}")) if folder.is_dir() else []
    if not found:
        raise UserError(f"{folder} holds no scenarios: folders with before/ and {_CHECK}.")
    return found


def measure(folders: Sequence[Path], mind: Mind) -> list[ScenarioScore]:
    """Runs every scenario, except for those in which this mind cannot do anything wrong."""
    scores = (asyncio.run(play(folder, mind)) for folder in track(folders, len(folders), "scenarios"))
    return [scored for scored in scores if scored is not None]


def measure_wrong(folders: Sequence[Path]) -> list[ScenarioScore]:
    """Runs every wrong mind in every scenario where it can err; the names are `mind/scenario`."""
    return [replace(one, name=f"{kind.value}/{one.name}") for kind in WRONG for one in measure(folders, kind)]


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


def report(found: Sequence[ScenarioScore]) -> Result:
    """The checks of every scenario, and each that failed."""
    figures: dict[str, dict[str, Any]] = {
        one.name: {
            "passed": sum(check.passed for check in one.checks),
            "checks": len(one.checks),
            "failed": one.failed,
            "dream": one.said,
            "got_in": list(one.got_in),
            "seconds": one.seconds,
            "again": None if one.again is None else list(one.again),
        }
        for one in found
    }
    lines = list[str]()
    for name, one in figures.items():
        lines.append(f"{name:<40} {one['passed']:>3} of {one['checks']:>3}   {cut(one['dream'], 100)}")
        lines += [f"    ✗ {what}" for what in one["failed"]]
        lines += [f"    ! is in memory: {cut(text, 90)}" for text in one["got_in"]]
        lines += [f"    ! changed again by a second dream: {file}" for file in one["again"] or ()]
    checks, passed = (sum(one[key] for one in figures.values()) for key in ("checks", "passed"))
    return Result(
        {"checks": checks, "passed": passed, "scenarios": figures}, [*lines, f"{passed} of {checks} checks hold"]
    )
