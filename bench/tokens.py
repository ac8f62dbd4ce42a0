"""How well token growth is estimated, on recorded Claude Code sessions with the usage that the API reported.

Cuts the main chain of each session into stretches of at least 10,000 real tokens. Each is estimated by the fixed rule
and by a calibrator that has only seen the earlier responses of the session.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from statistics import fmean, median
from typing import Any

from reverie.errors import UserError
from reverie.lab.measurement import Result, Table, measurement, paths_argument, share
from reverie.lab.recordings import find_recordings
from reverie.models.calibration import Calibrator
from reverie.models.catalogue import Catalogue
from reverie.models.count import ContextMeter
from reverie.models.features import Features
from reverie.models.tokens import estimate_blocks
from reverie.quick import dataclass
from reverie.storage.transcript.file import read_records
from reverie.types import Block, Message, Record, Usage

STRETCH = 10_000
"""The least real tokens of a stretch."""
_WAYS = ("fixed", "recorded", "calibrated")


@dataclass(slots=True)
class Stretch:
    """One stretch: its real tokens and its estimates."""

    calibrator: Calibrator
    """The calibrator at the start of the stretch."""
    features: Features = field(default_factory=Features)
    real: int = 0
    fixed: int = 0
    recorded: int = 0
    """The fixed rule for input, and the recorded `output_tokens` for output."""

    @property
    def calibrated(self) -> float:
        return self.calibrator.estimate(self.features)

    def error(self, way: str) -> float:
        """The relative error of an estimate; below zero means too few."""
        return (getattr(self, way) - self.real) / self.real


@dataclass(frozen=True, slots=True)
class SessionErrors:
    """The figures of one session."""

    name: str
    models: tuple[str, ...]
    responses: int
    stretches: tuple[Stretch, ...]
    bad_lines: int = 0


def measure_folder(paths: Sequence[Path]) -> list[SessionErrors]:
    """Measures every session in `paths` (folders or .jsonl files). `UserError` if there is none."""
    files = find_recordings(paths)
    if not files:
        raise UserError(f"No *.jsonl under {', '.join(map(str, paths))}; name a folder of Claude Code transcripts.")
    catalogue = Catalogue.load()
    return [measure_session(path, catalogue) for path in files]


def measure_session(path: Path, catalogue: Catalogue) -> SessionErrors:
    """Cuts one session into stretches and estimates each."""
    walk = _SessionWalk(catalogue)
    loaded = read_records(path)
    for record in loaded.records:
        walk.take(record)
    return SessionErrors(path.stem, tuple(walk.models), len(walk.seen), tuple(walk.stretches), len(loaded.bad))


@dataclass(slots=True)
class _SessionWalk:
    """Goes through one session, with a meter per model and the current stretch."""

    catalogue: Catalogue
    stretches: list[Stretch] = field(default_factory=list[Stretch])
    models: list[str] = field(default_factory=list[str])
    seen: set[str] = field(default_factory=set[str])
    records: set[str] = field(default_factory=set[str])
    meters: dict[str, ContextMeter] = field(default_factory=dict[str, ContextMeter])
    model: str | None = None
    blocks: list[Block] = field(default_factory=list[Block])
    entered: list[Block] = field(default_factory=list[Block])
    output: int = 0
    open: Stretch | None = None

    def take(self, record: Record) -> None:
        if record.is_sidechain or (record.uuid is not None and record.uuid in self.records):
            return
        if record.uuid is not None:
            self.records.add(record.uuid)
        if record.type == "system" and "compact" in str(record.subtype):
            self._break()
            return
        message = record.message
        if message is None or record.data.get("isApiErrorMessage"):
            return
        if message.role == "assistant":
            self._answer(message, str(message.fields.get("model")))
        else:
            self.entered += message.content
        self.blocks += message.content
        if self.model is not None:
            self.meters[self.model].append(message)

    def _break(self) -> None:
        """Starts again after the context was rewritten, because sizes cannot be compared then."""
        for meter in self.meters.values():
            meter.reset()
        self.open = None

    def _answer(self, message: Message, model: str) -> None:
        usage = message.usage
        if usage is None or usage.prompt == 0 or message.id is None:
            return
        if message.id not in self.seen:
            self.seen.add(message.id)
            if model != self.model:
                self._switch(model)
            self._respond(self.meters[model], usage)
            self.output = 0
        # The records of one response report its output while it streams, so the largest number is the best one.
        self.output = max(self.output, usage.output_tokens)

    def _switch(self, model: str) -> None:
        """Takes the meter of another model, which has another tokenizer, and starts a new stretch."""
        self._break()
        self.model = model
        if model not in self.meters:
            self.models.append(model)
            self.meters[model] = ContextMeter(keeps_thinking=self.catalogue.facts(model).keeps_thinking)

    def _respond(self, meter: ContextMeter, usage: Usage) -> None:
        growth = meter.respond(usage)
        if growth is None or self.open is None:
            self.open = Stretch(meter.calibrator)
        else:
            stretch = self.open
            stretch.real += growth.tokens
            stretch.features = stretch.features + growth.features
            stretch.fixed += estimate_blocks(self.blocks)
            stretch.recorded += self.output + estimate_blocks(self.entered)
            if stretch.real >= STRETCH:
                self.stretches.append(stretch)
                self.open = Stretch(meter.calibrator)
        self.blocks, self.entered = [], []


@measurement("reverie lab tokens ~/.claude/projects/my-project")
@paths_argument
def tokens(paths: tuple[Path, ...]) -> Result:
    """Measure how well Reverie estimates the number of tokens, on Claude Code transcripts.

    Compares two estimates with the numbers that the API reported: a fixed rule (4 bytes per token, 2 for JSON), and an
    estimate that is corrected after each response. Each session is cut into parts of at least 10,000 tokens, and each
    part is estimated. PATH is a transcript, or a folder: then all transcripts in it and below it are measured.

    Exit codes: 0: done; 2: wrong usage, or there is nothing to measure.
    """
    return report(measure_folder(paths))


def report(sessions: Sequence[SessionErrors]) -> Result:
    """The errors over all stretches, and the mean absolute ones of each session, worst first."""
    stretches = tuple(stretch for session in sessions for stretch in session.stretches)
    if not stretches:
        raise UserError(f"No session has a stretch of {STRETCH:,} tokens between responses; measure longer ones.")
    whole = SessionErrors("all", (), sum(one.responses for one in sessions), stretches)
    rows: list[dict[str, Any]] = [{**_row(one), "model": ", ".join(one.models)} for one in sessions if one.stretches]
    rows.sort(key=lambda row: -row["calibrated"])
    figures = {
        "fixed": _figures([one.error("fixed") for one in stretches]),
        "recorded_output": _figures([one.error("recorded") for one in stretches]),
        "calibrated": _figures([one.error("calibrated") for one in stretches]),
        "stretches": len(stretches),
        "sessions": len(sessions),
    }
    columns = ("session", "responses", "stretches", *map(share, _WAYS), "model")
    bad = sum(session.bad_lines for session in sessions)
    return Result(
        figures,
        (
            Table([*rows, {**_row(whole), "model": ""}], columns),
            f"Mean absolute error of the growth over stretches of at least {STRETCH:,} tokens.",
            "fixed: bytes/4, JSON bytes/2. recorded: the same, with recorded output tokens. calibrated: online.",
            *([f"{bad} unreadable lines were left out."] if bad else []),
        ),
    )


def _figures(errors: Sequence[float]) -> dict[str, float]:
    size = [abs(error) for error in errors]
    return {"mean_abs_error": fmean(size), "median_abs_error": median(size), "bias": fmean(errors)}


def _row(one: SessionErrors) -> dict[str, Any]:
    errors = {way: fmean(abs(stretch.error(way)) for stretch in one.stretches) for way in _WAYS}
    return {"session": one.name, "responses": one.responses, "stretches": len(one.stretches), **errors}
