"""Plays memory directories through a dream with any mind and scores what comes out.

A scenario is a folder: `before/`, `transcripts/`, `now.txt`, perhaps `mtimes.json`, and `check.json`. It is copied into
a home of its own, with its times and its clock, and dreamt about by the real layer; nothing is written where it lies.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias, cast

from reverie.errors import UserError
from reverie.lab.dream.edits import read_scene
from reverie.lab.dream.minds import WRONG, Kind, plan, played
from reverie.lab.dream.score import Checked, score
from reverie.lab.scratch import memory_files, own_home
from reverie.memory.opening import open_memory
from reverie.memory.topic_file import decode
from reverie.models.base import Model
from reverie.models.script import Script
from reverie.models.scripted import ScriptedModel
from reverie.parsing import RECORD_DEPTH, load_json
from reverie.paths import Places
from reverie.session.session import Session
from reverie.text.columns import cut
from reverie.types import JsonObject

Mind: TypeAlias = str | Kind | Callable[["Laid"], Model] | None
"""Who dreams: a model's name, a mind made for the scenario, or what makes one; None: the settings' model."""
_CHECK = "check.json"
_SCRIPTED = "scripted:"


@dataclass(frozen=True, slots=True)
class Laid:
    """A scenario laid out: where its memory and its transcripts are, and what time it is."""

    name: str
    source: Path
    memory: Path
    transcripts: Path
    now: datetime


@dataclass(frozen=True, slots=True)
class Scored:
    """One scenario after a dream. `said`: what the dream came to, or why it failed."""

    name: str
    checks: tuple[Checked, ...]
    said: str
    got_in: tuple[str, ...] = ()
    """What a mind that errs wrote and that stands in memory now."""
    seconds: float = 0.0
    """How long the dream took."""
    again: tuple[str, ...] | None = None
    """Files that a second dream over the same changed; None if there was none."""

    @property
    def failed(self) -> list[str]:
        return [check.what for check in self.checks if not check.passed]


def scenarios(folder: Path) -> list[Path]:
    """The scenarios in a folder, by name; or the folder itself, if it is one."""
    if (folder / _CHECK).is_file():
        return [folder]
    found = sorted(path.parent for path in folder.glob(f"*/{_CHECK}")) if folder.is_dir() else []
    if not found:
        raise UserError(f"{folder} holds no scenarios: folders with before/ and {_CHECK}.")
    return found


def measure(
    folders: Sequence[Path], mind: Mind, *, progress: Callable[[int, str], None] = lambda _done, _name: None
) -> list[Scored]:
    """Dreams every scenario, one after the other; but for those in which this mind has nothing to do wrong."""
    found: list[Scored] = []
    for number, folder in enumerate(folders, 1):
        scored = asyncio.run(play(folder, mind))
        if scored is not None:
            found.append(scored)
        progress(number, folder.name)
    return found


def measure_wrong(
    folders: Sequence[Path], *, progress: Callable[[int, str], None] = lambda _done, _name: None
) -> list[Scored]:
    """Every mind that errs, in every scenario in which it can; named `mind/scenario`."""
    return [
        replace(one, name=f"{kind.value}/{one.name}")
        for kind in WRONG
        for one in measure(folders, kind, progress=progress)
    ]


async def play(source: Path, mind: Mind) -> Scored | None:
    """One scenario in a home of its own; None if there is nothing in it for this mind to do wrong."""
    check = _json(source / _CHECK)
    with own_home() as (cwd, settings):
        places = Places.of(cwd, settings)
        memory = open_memory(settings, places).directory.root
        laid = Laid(source.name, source, memory, places.project, _now(source))
        before = _lay_out(laid)
        planned = None
        if isinstance(mind, Kind):
            scene = read_scene(memory, places.project, laid.now, check)
            planned = plan(mind, scene)
            if planned is None:
                return None
            model: str | Model | None = played(planned, memory, scene.before)
        else:
            model = _model(mind, laid)
        session = await Session.open(cwd=cwd, settings=settings, model=model, clock=lambda: laid.now, interactive=False)
        async with session:
            began = time.perf_counter()
            said = await _dream(session)
            seconds = time.perf_counter() - began
        after = files(memory)
        wrong = planned.got_in({name: decode(data) for name, data in after.items()}) if planned is not None else []
        scored = Scored(source.name, tuple(score(check, before, after)), said, tuple(wrong), seconds)
        return scored if not _dreams_twice(mind) else replace(scored, again=await _again(session, laid, after))


def _dreams_twice(mind: Mind) -> bool:
    """Whether a second dream tells something: a script has only the words of the first."""
    return mind is None or (isinstance(mind, str) and not isinstance(mind, Kind) and not mind.startswith(_SCRIPTED))


async def _again(first: Session, laid: Laid, before: Mapping[str, bytes]) -> tuple[str, ...]:
    """Dreams once more over the same, as if nobody had dreamt yet; the files that this changed."""
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
    after = files(laid.memory)
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


def _model(mind: Mind, laid: Laid) -> str | Model | None:
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


def _lay_out(laid: Laid) -> dict[str, bytes]:
    """Copies a scenario into its home, with its times; the files as they are before the dream."""
    shutil.copytree(laid.source / "before", laid.memory)
    laid.transcripts.mkdir(parents=True, exist_ok=True)
    moment = laid.now.timestamp()
    for path in sorted((laid.source / "transcripts").glob("*.jsonl")):
        os.utime(shutil.copyfile(path, laid.transcripts / path.name), (moment - 60, moment - 60))
    times = _json(laid.source / "mtimes.json") if (laid.source / "mtimes.json").exists() else {}
    for path in laid.memory.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    for name, told in times.items():
        when = _moment(str(told), f"{laid.source / 'mtimes.json'}: {name}").timestamp()
        if (laid.memory / name).is_file():
            os.utime(laid.memory / name, (when, when))
    return files(laid.memory)


def files(memory: Path) -> dict[str, bytes]:
    """What its files hold, by relative path."""
    return {name: path.read_bytes() for name, path in memory_files(memory).items()}


def _now(source: Path) -> datetime:
    path = source / "now.txt"
    try:
        return _moment(path.read_text("utf-8").strip(), str(path))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}; it says when the dream happens.") from error


def _moment(text: str, where: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UserError(f"{where}: {text[:40]!r} is no time; write one like 2025-10-12T03:00:00Z.") from None
    return moment if moment.tzinfo is not None else moment.astimezone()


def _json(path: Path) -> JsonObject:
    try:
        found: Any = load_json(path.read_text("utf-8"), depth=RECORD_DEPTH)
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}.") from error
    if not isinstance(found, dict):
        raise UserError(f"{path} is no JSON object.")
    return cast("JsonObject", found)


def summary(found: Sequence[Scored]) -> JsonObject:
    """The figures, for programs."""
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


def table(found: Sequence[Scored]) -> str:
    """The figures, for people."""
    wide = max((len(one.name) for one in found), default=0) + 2
    lines: list[str] = []
    for one in found:
        passed = len(one.checks) - len(one.failed)
        lines.append(f"{one.name:<{wide}} {passed:>3} of {len(one.checks):>3}   {cut(one.said, 100)}")
        lines += [f"    ✗ {what}" for what in one.failed]
        lines += [f"    ! stands in memory: {cut(text, 90)}" for text in one.got_in]
        lines += [f"    ! changed again by a second dream: {name}" for name in one.again or ()]
    whole = summary(found)
    return "\n".join([*lines, f"{whole['passed']} of {whole['checks']} checks hold"])
