"""The work of `reverie extract`: many transcripts, turn by turn, with a small state file for each.

The state is in the home and is written after every turn. A dry run works on a copy of the memory and writes neither.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

from reverie.errors import ModelError, ReverieError, UserError
from reverie.layers.l5_extraction.explicit import keep_requests
from reverie.layers.l5_extraction.extraction_state import ExtractionState
from reverie.layers.l5_extraction.learning import LearningResult
from reverie.layers.l5_extraction.recordings import Learner, Recording, read_recording, spans
from reverie.layers.l5_extraction.span import MessageSpan, OwnWrites
from reverie.layers.l5_extraction.writes import VERBS, Done
from reverie.memory.directory import MemoryDirectory
from reverie.memory.opening import OpenedMemory, ProjectGate, log_refusals, open_memory
from reverie.memory.topic_file import decode
from reverie.moments import local_day
from reverie.origins import strip_tags
from reverie.paths import Places
from reverie.quick import dataclass
from reverie.regular_files import read_head, read_regular
from reverie.runtime.background_log import BackgroundLog
from reverie.settings import Settings, load_settings
from reverie.storage.transcript.view import Entry
from reverie.types import JsonObject, Origin, TextBlock

OpenLearner: TypeAlias = Callable[[Settings, MemoryDirectory, Path], AbstractAsyncContextManager[Learner]]
_HEAD_BYTES = 262_144
_TIMESTAMP = re.compile(rb'"timestamp"\s*:\s*"(\d{4}-[0-9A-Z:.+-]+)"')
_OURS = (Origin.CODE, Origin.RECALLED)


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """A memory that a turn changed."""

    file: str
    verb: str
    transcript: str
    day: str


@dataclass(frozen=True, slots=True)
class UnreadTranscript:
    """A transcript that could not be read; the others are."""

    path: Path
    error: ReverieError


@dataclass(slots=True)
class ExtractionReport:
    """The result. `stopped`: why the rest was left for another time."""

    transcripts: int = 0
    turns: int = 0
    passed_over: int = 0
    not_yours: dict[str, int] = field(default_factory=dict[str, int])
    """Characters in messages of the user that the user did not write, by origin. Nothing is learnt from them."""
    changes: list[MemoryChange] = field(default_factory=list[MemoryChange])
    refused: list[str] = field(default_factory=list[str])
    failures: list[str] = field(default_factory=list[str])
    diffs: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    tokens: JsonObject = field(default_factory=dict[str, Any])
    cost_usd: float = 0.0
    stopped: str = ""
    exit_code: int = 0
    """That of the last failure: 4 if it could not be stored, 5 if the model could not answer."""

    def to_json(self) -> JsonObject:
        return asdict(self)

    def failed(self, what: str, error: ReverieError) -> None:
        """Adds a failure, which does not stop the rest."""
        self.failures.append(f"{what}: {error}")
        self.exit_code = error.exit_code

    def add(self, other: ExtractionReport) -> None:
        """Adds the result of another run."""
        self.transcripts += other.transcripts
        self.turns += other.turns
        self.passed_over += other.passed_over
        for origin, size in other.not_yours.items():
            self.not_yours[origin] = self.not_yours.get(origin, 0) + size
        self.tokens = _sum(self.tokens, other.tokens)
        self.changes += other.changes
        self.refused += other.refused
        self.failures += other.failures
        self.diffs |= other.diffs
        self.cost_usd = round(self.cost_usd + other.cost_usd, 6)
        self.stopped = other.stopped or self.stopped
        self.exit_code = other.exit_code or self.exit_code


def _sum(one: JsonObject, other: JsonObject) -> JsonObject:
    """Adds the counts of two usages, which may be nested."""
    return {
        name: _sum(one.get(name) or {}, other.get(name) or {})
        if isinstance(one.get(name, other.get(name)), dict)
        else (one.get(name) or 0) + (other.get(name) or 0)
        for name in one | other
    }


def transcripts_in(paths: Sequence[Path]) -> list[Path]:
    """Returns the transcripts, oldest first; of a folder those directly in it. `UserError` if one is missing."""
    found = dict[Path, str]()
    for path in paths:
        if not os.path.lexists(path):
            raise UserError(f"{path} is not there: give transcripts (.jsonl), or folders of them.")
        whole = os.path.isdir(path)  # noqa: PTH112  Path.is_dir raises without permission; reading says why
        for file in sorted(path.glob("*.jsonl")) if whole else [path]:
            if not file.name.startswith("agent-") and (not whole or os.path.isfile(file)):  # noqa: PTH113  as above
                found[file] = start_time(file)
    return sorted(found, key=lambda file: (found[file], file.name))


def start_time(file: Path) -> str:
    """Returns the first timestamp of a transcript; empty if there is none, or if the file cannot be read."""
    try:
        found = _TIMESTAMP.search(read_head(file, _HEAD_BYTES))
    except OSError:
        return ""  # reading the whole file says why
    return found[1].decode() if found else ""


async def extract_all(
    files: Sequence[Path],
    cwd: Path,
    open_learner: OpenLearner,
    *,
    dry_run: bool = False,
    again: bool = False,
    progress: Callable[[str], None] = lambda _text: None,
) -> ExtractionReport:
    """Learns from every file into the memory of `cwd`. A model that cannot answer ends it; finished turns stay.

    `open_learner` gets the settings, the directory to write to, and the path by which the model knows it.
    """
    settings = load_settings(cwd)
    places = Places.of(cwd, settings)
    memory = open_memory(settings, places, report=log_refusals(places))
    return await extract_recordings(
        map(_read_or_fail, files),
        memory,
        open_learner,
        count=len(files),
        dry_run=dry_run,
        again=again,
        progress=progress,
    )


def _read_or_fail(file: Path) -> Recording | UnreadTranscript:
    try:
        return read_recording(file)
    except ReverieError as error:
        return UnreadTranscript(file, error)


async def extract_recordings(
    recordings: Iterable[Recording | UnreadTranscript],
    memory: OpenedMemory,
    open_learner: OpenLearner,
    *,
    count: int = 1,
    dry_run: bool = False,
    again: bool = False,
    progress: Callable[[str], None] = lambda _text: None,
) -> ExtractionReport:
    """Learns from recordings into a memory, as `extract_all` does. `count` says how many there are."""
    memory.require_on("nothing can be learnt")
    places, log = memory.places, BackgroundLog(memory.places.background_log)
    report = ExtractionReport()
    with tempfile.TemporaryDirectory(prefix="reverie-extract-") as folder:
        directory = _copy_memory(memory, Path(folder) / "memory") if dry_run else memory.directory
        own = OwnWrites(memory.directory.root, places.cwd, memory.settings.places.user_home)
        opened = replace(memory, directory=directory)
        async with open_learner(memory.settings, directory, memory.directory.root) as learner:
            try:
                for number, talk in enumerate(recordings, 1):
                    name = f"{number} of {count}: {talk.path.name}"
                    if isinstance(talk, UnreadTranscript):
                        report.failed(talk.path.name, talk.error)
                        continue
                    state = ExtractionState(places, talk.path, talk.session, memory.directory.root, keep=not dry_run)
                    report.transcripts += 1
                    tell = _TranscriptReporter(
                        report, talk.path.name, lambda text, n=name: progress(f"{n}, {text}"), None if dry_run else log
                    )
                    async with state.learning():
                        await _learn_from(talk, state, learner, opened, own, tell, again=again)
            except ModelError as error:
                report.stopped, report.exit_code = str(error), error.exit_code
        if dry_run:
            report.diffs = _diffs(memory.directory.root, directory.root)
    report.tokens, report.cost_usd = learner.usage.wire(), round(learner.cost_usd, 6)
    return report


@dataclass(frozen=True, slots=True)
class _TranscriptReporter:
    """Reports the progress of one transcript: in the report, to the caller, and in the background log."""

    report: ExtractionReport
    name: str
    progress: Callable[[str], None]
    log: BackgroundLog | None

    def refused(self, kind: str, why: str) -> None:
        self.report.refused.append(f"{kind}: {why}")
        self._log(f"extraction_{kind}", reason=why)

    def not_yours(self, entries: Sequence[Entry]) -> None:
        counted = self.report.not_yours
        for block in (block for entry in entries if entry.message.role == "user" for block in entry.message.content):
            if isinstance(block, TextBlock) and not block.origin.is_users and block.origin not in _OURS:
                size = len(strip_tags(block.text).strip())
                counted[block.origin.value] = counted.get(block.origin.value, 0) + size

    def failed(self, turn: int, error: ReverieError) -> None:
        self.report.failed(f"{self.name}, turn {turn}", error)
        self._log("extraction_failed", turn=turn, error=str(error))

    def changed(self, turn: str, day: str, done: Mapping[str, Done]) -> None:
        for name, what in done.items():
            self.report.changes.append(MemoryChange(name, VERBS[what], self.name, day))
            self.progress(f"{turn}: {VERBS[what]} {name}")

    def learnt(self, turn: str, day: str, learnt: LearningResult) -> None:
        self.changed(turn, day, learnt.done)
        if learnt.done:
            self._log("extraction_done", files=list(learnt.done), ended=learnt.reason, **learnt.figures())

    def _log(self, kind: str, **fields: Any) -> None:
        if self.log is not None:
            self.log.write(kind, transcript=self.name, **fields)


async def _learn_from(
    talk: Recording,
    state: ExtractionState,
    learner: Learner,
    memory: OpenedMemory,
    own: OwnWrites,
    tell: _TranscriptReporter,
    *,
    again: bool,
) -> None:
    """Works through one transcript. The cursor moves on success only, so a failed turn is seen again with the next."""
    done = 0 if again else max(talk.place_of(talk.learnt), state.done(talk))
    turns = list(spans(talk, done))
    tell.not_yours(talk.entries[done:])
    tell.report.passed_over += len(talk.turns) - len(turns)
    start = turns[0][0] if turns else 0
    failures = len(tell.report.failures)
    for number, (_, end) in enumerate(turns, 1):
        span = MessageSpan(talk.entries[start:end])
        day = str(span.days()[0][0]) if span.days() else ""
        turn = f"turn {number} of {len(turns)} {day}"
        tell.progress(turn)
        tell.report.turns += 1

        def keep(span: MessageSpan = span, turn: str = turn, day: str = day) -> None:
            today = local_day(span.entries[-1].timestamp) or datetime.now().astimezone().date()
            tell.changed(turn, day, keep_requests(memory, span, talk.path.stem, today=today))

        if not span.wrote_memory(own.is_one):
            try:
                learnt = await learner.learn(talk.entries, start, end, report=tell.refused)
            except ModelError:
                keep()
                raise
            except ReverieError as error:
                keep()
                tell.failed(number, error)
                continue
            tell.learnt(turn, day, learnt)
        keep()
        state.reached(talk, end)
        start = end
    if talk.size and len(tell.report.failures) == failures:
        state.finished(talk)


def _copy_memory(memory: OpenedMemory, to: Path) -> MemoryDirectory:
    if memory.directory.root.is_dir():
        shutil.copytree(memory.directory.root, to, ignore=shutil.ignore_patterns(".*"), symlinks=True)
    gate = ProjectGate(replace(memory.place, directory=to), memory.places, memory.settings, None)
    return MemoryDirectory.open(to, gate=gate)


def _diffs(before: Path, after: Path) -> dict[str, list[str]]:
    old, new = _texts(before), _texts(after)
    return {
        name: list(
            difflib.unified_diff(
                old.get(name, "").splitlines(), new.get(name, "").splitlines(), "before", "after", lineterm="", n=1
            )
        )[2:]
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    }


def _texts(root: Path) -> dict[str, str]:
    found = sorted(root.rglob("*.md")) if root.is_dir() else []
    inside = [(path.relative_to(root), path) for path in found]
    return {
        name.as_posix(): decode(read_regular(path))
        for name, path in inside
        if not any(part.startswith(".") for part in name.parts) and path.is_file()
    }
