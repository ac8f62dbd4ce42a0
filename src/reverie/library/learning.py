"""Layers 5 and 6 for a program: learning from a conversation that it holds, and dreams by hand. If its model fails, the
embedded model does the work."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reverie.errors import ReverieError
from reverie.layers.l5_extraction.transcripts import ExtractionReport, extract_recordings
from reverie.layers.l6_dreaming.reporter import describe_outcome
from reverie.library.asking import open_ask
from reverie.library.recording import make_recording
from reverie.library.results import Dreamt, Extracted
from reverie.memory.opening import OpenedMemory
from reverie.models.base import Model
from reverie.models.registry import EMBEDDED
from reverie.session.learner import open_learner
from reverie.settings.schema import with_values
from reverie.types import JsonObject


async def extract(
    memory: OpenedMemory, open_model: Callable[[], Model], messages: Sequence[JsonObject], origin: str | None
) -> Extracted:
    """Learns from the turns of a conversation that are new."""
    talk = make_recording(messages, memory.places, origin)
    background = memory.settings.background
    models: list[Callable[[], Model]] = [open_model]
    if background.fallback:
        models.append(lambda: open_ask(None, memory.settings))
    reports = list[ExtractionReport]()
    for make in models:
        model = make()
        report = await extract_recordings(
            [talk],
            memory,
            lambda settings, directory, known_as, model=model: open_learner(
                memory.places.cwd, settings, directory, model=model, addressed=known_as
            ),
        )
        reports.append(report)
        if not report.stopped or model.name == EMBEDDED:
            break
    return Extracted(
        changes={change.file: change.verb for report in reports for change in report.changes},
        turns=reports[-1].turns + sum(report.turns - 1 for report in reports[:-1]),
        skipped=reports[0].passed_over,
        refused=tuple(one for report in reports for one in report.refused),
        problems=tuple(one for report in reports for one in (*report.failures, *filter(None, [report.stopped]))),
        cost_usd=sum(report.cost_usd for report in reports),
    )


async def dream(
    memory: OpenedMemory,
    open_model: Callable[[], Model],
    *,
    review: bool = False,
    guidance: str = "",
    confined: bool = False,
) -> Dreamt:
    """Dreams now, by hand: only the lock of the directory can stop it."""
    from reverie.session.session import Session

    memory.require_on("there are no dreams")
    settings = with_values(memory.settings, {"dream.mode": "ask"}) if review else memory.settings
    async with await Session.open(cwd=memory.places.cwd, model=open_model(), settings=settings) as session:
        dreaming = session.dreaming
        assert dreaming is not None, "memory is on"
        task = dreaming.start(guidance=guidance, confined=confined)
        info = await task.wait()
    dreamt = task.result
    if dreamt is None:
        why = info.error or f"The dream was {info.state.value}; nothing was changed."
        raise ReverieError(f"{why} {dreaming.reporter.among}".rstrip())
    landed = dreamt.landed.version if dreamt.landed is not None else None
    return Dreamt(
        outcome="landed" if dreamt.outcome == "landed" else "proposed" if dreamt.outcome == "proposed" else "unchanged",
        summary=describe_outcome(dreamt),
        names=tuple(dreamt.proposal.files) if dreamt.proposal is not None else (),
        waiting=dreamt.proposal.id if dreamt.proposal is not None and dreamt.outcome == "proposed" else "",
        undo=landed.short if landed is not None else "",
        cost_usd=dreamt.cost_usd,
    )
