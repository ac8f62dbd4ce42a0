"""Learns from followed sessions: each into the memory of its own project, with the settings of that project.

The same state as that of `reverie extract` says what was learnt before, so no turn is learnt twice.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from reverie.errors import ReverieError
from reverie.flags import Flags
from reverie.layers.l5_extraction.extraction_state import ExtractionState, is_learnt
from reverie.layers.l5_extraction.gates import ExtractionGate
from reverie.layers.l5_extraction.recordings import read_recording, spans
from reverie.layers.l5_extraction.transcripts import ExtractionReport, extract_recordings, start_time
from reverie.memory.opening import log_refusals, open_memory
from reverie.models.base import Model
from reverie.models.registry import EMBEDDED
from reverie.paths import Places
from reverie.session.learner import open_learner
from reverie.settings import Settings, load_settings
from reverie.storage.following import followed_copies

Progress = Callable[[str], None]


async def learn_from_session(
    transcript: Path,
    cwd: Path,
    *,
    model: str | Model | None = None,
    dry_run: bool = False,
    in_background: bool = False,
    leave_open_turn: bool = False,
    progress: Progress = lambda _text: None,
) -> ExtractionReport:
    """Learns what is new in one session of the project of `cwd`; the folder does not have to exist.

    `in_background`: nobody waits for it. It is booked in the day book, unless the offline mind does it for nothing, and
    ends with the reason in `stopped` if the day's budget is spent or the flag `extraction` is off. The next call
    continues there. `leave_open_turn`: a last turn without an answer is left for the next call.
    """
    settings = load_settings(cwd)
    places = Places.of(cwd, settings)
    memory = open_memory(settings, places, report=log_refusals(places))
    if is_learnt(places, transcript, memory.directory.root):
        return ExtractionReport()
    if in_background and (closed := _closed_gate(places, settings)) is not None:
        return ExtractionReport(stopped=f"{closed}.")
    talk = read_recording(transcript)
    return await extract_recordings(
        [talk.without_open_turn() if leave_open_turn else talk],
        memory,
        lambda given, directory, known_as: open_learner(
            cwd, given, directory, model=model, addressed=known_as, in_background=in_background and model != EMBEDDED
        ),
        dry_run=dry_run,
        progress=progress,
    )


async def learn_from_followed(
    settings: Settings,
    *,
    model: str | Model | None = None,
    dry_run: bool = False,
    in_background: bool = False,
    progress: Progress = lambda _text: None,
) -> ExtractionReport:
    """Learns from all followed sessions, oldest first. A model that cannot answer, or a spent budget, ends it.

    Without `model`, it is that of the background work: a key in the environment is never a reason to spend.
    """
    model = model or followed_model(settings)
    whole = ExtractionReport()
    found = sorted((start_time(path), path, cwd) for path, cwd in followed_copies(settings))
    for number, (_, path, cwd) in enumerate(found, 1):
        try:
            report = await learn_from_session(
                path,
                cwd,
                model=model,
                dry_run=dry_run,
                in_background=in_background,
                progress=lambda text, n=number: progress(f"{n} of {len(found)}, {text.partition(': ')[2] or text}"),
            )
        except ReverieError as error:  # the memory of this project is off, or cannot be opened
            whole.failed(path.name, error)
            continue
        report.diffs = {f"{cwd}: {name}": lines for name, lines in report.diffs.items()}
        whole.add(report)
        if report.stopped:
            break
    return whole


def followed_model(settings: Settings) -> str:
    """The model that learns from followed sessions if nobody names one."""
    return settings.connect.model.strip() or EMBEDDED


def count_new(settings: Settings) -> tuple[int, int]:
    """Returns how many followed sessions have something new, and how many turns that is."""
    sessions = turns = 0
    for path, cwd in followed_copies(settings):
        with suppress(ReverieError):  # the run itself reports what cannot be read
            own = load_settings(cwd)
            places = Places.of(cwd, own)
            root = open_memory(own, places).directory.root
            if is_learnt(places, path, root):
                continue
            talk = read_recording(path)
            state = ExtractionState(places, path, talk.session, root, keep=False)
            found = len(list(spans(talk, max(talk.place_of(talk.learnt), state.done(talk)))))
            sessions, turns = sessions + bool(found), turns + found
    return sessions, turns


def _closed_gate(places: Places, settings: Settings) -> ExtractionGate | None:
    flags = Flags.open(places, settings)
    try:
        return None if flags.on("extraction") else ExtractionGate.FLAG
    finally:
        flags.close()
