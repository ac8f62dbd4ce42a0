"""One job of the service, in a process of its own: `python -m reverie.daemon.work`, the job as JSON on standard input.

It updates our copy of the transcript, learns from the turns that are new, writes the notes and the digest, and dreams
at the end of a session if the gates are open. Its report is one JSON object; an error is one sentence. A step that
fails does not stop the next ones.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from reverie.daemon.digest import Digests, file_mark
from reverie.daemon.jobs import Job, read_job
from reverie.daemon.model_state import note_model
from reverie.daemon.told import ToldBook
from reverie.errors import ReverieError, UserError
from reverie.flags import Flags
from reverie.layers.l3_session_notes.sections import is_empty, repair_notes
from reverie.layers.l3_session_notes.trigger import WRITER as NOTES
from reverie.layers.l3_session_notes.writer import TEMPLATE, template_or_default
from reverie.layers.l4_compaction.by_code import Limits, without_secrets, write_notes
from reverie.layers.l5_extraction.gates import WRITER
from reverie.layers.l5_extraction.recordings import Recording, read_recording
from reverie.layers.l5_extraction.transcripts import ExtractionReport
from reverie.layers.l6_dreaming.gates import changed_transcripts, transcript_folders
from reverie.layers.l6_dreaming.lock import ConsolidationLock
from reverie.memory.opening import open_memory
from reverie.memory.secrets.scan import redact
from reverie.memory.upkeep.followed_sessions import open_follower
from reverie.models.registry import EMBEDDED
from reverie.models.tokens import PROSE_BYTES
from reverie.paths import Places, make_private
from reverie.paths.places import hooks_folder
from reverie.plugins import guarded
from reverie.quick import dataclass
from reverie.regular_files import read_regular_text
from reverie.runtime.background_log import BackgroundLog
from reverie.runtime.heartbeat import Heartbeat
from reverie.session.learning_followed import learn_from_session
from reverie.settings import Settings, load_settings
from reverie.settings.sections import HookSettings
from reverie.storage.atomic import write_atomic
from reverie.storage.following import Outcome
from reverie.storage.transcript.sessions import expire_sessions
from reverie.types import JsonObject, Purpose

_FLUSH_S: Final = 3.0
"""How long the job waits for an answer that the agent has not written to its transcript yet."""
_MOST_JOB: Final = 1_000_000


async def work(job: Job) -> JsonObject:
    """Does one job and returns its report."""
    cwd = Path(job.cwd)
    if not cwd.is_absolute():
        raise UserError("the job names no working folder")
    settings = load_settings(cwd)
    places = Places.of(cwd, settings)
    log = BackgroundLog(places.background_log, job.session)
    report: JsonObject = {}

    def failed(step: str, error: ReverieError) -> None:
        said = redact(str(error))
        report.setdefault("problems", f"{step}: {said}")
        log.write("hook_work_failed", step=step, error=said)

    def attempt(step: str, act: Callable[[], None]) -> None:
        try:
            with guarded(f"the step `{step}`"):
                act()
        except ReverieError as error:
            failed(step, error)

    found = await _follow(job, settings, report)
    if found is not None and found.talk.entries:
        attempt("notes", lambda: _sum_up(places, settings, job, found))
        try:
            with guarded("learning"):
                await _learn(job, cwd, settings, places, found.copy, report)
        except ReverieError as error:
            failed("learn", error)
            Heartbeat(places.heartbeat(WRITER)).failure(redact(str(error)))
    if job.ended:
        attempt("old files", ToldBook(hooks_folder(places.home)).forget_old)
        attempt("old copies", lambda: _expire(places, settings))
        try:
            with guarded("dreaming"):
                report["dream"] = await _dream(cwd, settings, places)
        except ReverieError as error:
            failed("dream", error)
    attempt("memory server", lambda: _sync(settings, places, report))
    return report


def _sync(settings: Settings, places: Places, report: JsonObject) -> None:
    """Exchanges memories with the memory server, if there is one and it is not known to be down."""
    memory = open_memory(settings, places)
    if not settings.memory.store or not memory.switch.on:
        return
    from reverie.memory.sharing.store.background import is_paused
    from reverie.memory.sharing.store.sync import sync_store

    if not is_paused(memory):
        done = sync_store(memory)
        report |= {"received": len(done.received), "sent": len(done.sent)}


@dataclass(frozen=True, slots=True)
class _Found:
    """Our copy of a session, what is said in it, and the mark of the file that it was copied from."""

    copy: Path
    talk: Recording
    mark: list[int]


async def _follow(job: Job, settings: Settings, report: JsonObject) -> _Found | None:
    """Updates the copy, if it can until the last answer is in it."""
    if not job.transcript:
        return None
    source, until = Path(job.transcript), time.monotonic() + _FLUSH_S
    while True:
        mark = file_mark(source)
        followed = open_follower(settings).follow_file(source)
        copy = followed.target
        report["copy"] = followed.outcome.value
        if followed.outcome is Outcome.FAILED or copy is None or not copy.is_file():
            report["copy_problem"] = followed.reason
            return None
        talk = read_recording(copy)
        if talk.is_answered or time.monotonic() > until:
            return _Found(copy, talk, mark)
        await asyncio.sleep(0.25)


def _expire(places: Places, settings: Settings) -> None:
    """Deletes old sessions of this project, if the settings allow it."""
    told = ToldBook(hooks_folder(places.home))
    for session in expire_sessions(places.project, settings.transcript.expire_days):
        told.forget(session)


def _sum_up(places: Places, settings: Settings, job: Job, found: _Found) -> None:
    """Writes the notes and the digest. Notes that a model or the user has written stay."""
    digests = Digests(places.home)
    notes = digests.stored(job.session).notes
    flags = Flags.open(places, settings)
    try:
        if flags.on("session_notes"):
            notes = _write_notes(places, settings, found.copy.stem, found.talk, notes)
            Heartbeat(places.heartbeat(NOTES)).success()
    finally:
        flags.close()
    digests.make(job.session, Path(job.transcript), places.cwd, (found.talk.entries, found.mark), notes=notes)
    digests.close()


def _write_notes(places: Places, settings: Settings, session: str, talk: Recording, written: str) -> str:
    """Returns the hash of what is there now if code has written it; `written` is the last such hash."""
    path, given = places.session_notes(session), settings.notes
    template, _ = template_or_default(_read(places.notes_config / TEMPLATE))
    now = _read(path)
    if now is not None and not is_empty(now, template) and _hash(now) != written:
        return written
    limits = Limits(total=given.total_tokens * PROSE_BYTES, ledger=given.section_tokens * PROSE_BYTES)
    text = repair_notes(write_notes(talk.entries, template, limits, cwd=str(places.cwd)), template)
    text = without_secrets(text, talk.entries)
    make_private(path.parent)
    write_atomic(path, text.encode("utf-8", "replace"))
    return _hash(text)


def _read(path: Path) -> str | None:
    try:
        return read_regular_text(path, errors="replace")
    except OSError:
        return None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


async def _learn(job: Job, cwd: Path, settings: Settings, places: Places, copy: Path, report: JsonObject) -> None:
    if not settings.connect.learn or not open_memory(settings, places).switch.on:
        return
    model = _model(settings)
    learnt = await _ask(model, job, cwd, copy)
    problem = learnt.stopped if learnt.exit_code else ""
    if model != EMBEDDED:
        note_model(places, model, turns=learnt.turns, problem=problem)
    if problem and settings.background.fallback and model != EMBEDDED:
        # As in a session: if the model is down or its budget is spent, the offline mind does this work.
        BackgroundLog(places.background_log, job.session).write("hook_work_fallback", model=model, error=problem)
        report["instead"] = problem
        learnt = await _ask(EMBEDDED, job, cwd, copy)
    report |= {"turns": learnt.turns, "memories": len({change.file for change in learnt.changes})}
    if learnt.stopped:
        report["stopped"] = learnt.stopped
        Heartbeat(places.heartbeat(WRITER)).stop(learnt.stopped)
    elif learnt.failures:
        raise UserError(learnt.failures[-1])
    elif learnt.turns:
        Heartbeat(places.heartbeat(WRITER)).success(turns=learnt.turns, memories=report["memories"], **learnt.tokens)


def _model(settings: Settings) -> str:
    """The model of all work here. An empty name must not become the default of a session, which may cost money."""
    return settings.connect.model.strip() or EMBEDDED


async def _ask(model: str, job: Job, cwd: Path, copy: Path) -> ExtractionReport:
    try:
        report = await learn_from_session(copy, cwd, model=model, in_background=True, leave_open_turn=not job.ended)
    except ReverieError as error:  # the model cannot be opened, for example without its key
        report = ExtractionReport(stopped=str(error), exit_code=error.exit_code)
    report.stopped = redact(report.stopped)  # what a model says about its failure is logged and shown
    return report


async def _dream(cwd: Path, settings: Settings, places: Places) -> str:
    """Dreams if it is time, with the model of the settings; returns the result.

    The cheapest gates come first here too: most jobs end before a session is opened.
    """
    memory = open_memory(settings, places)
    root = memory.directory.root
    if not settings.connect.learn or not memory.switch.on or not root.is_dir():
        return "off"
    last = ConsolidationLock(root).mtime()
    if last is not None and 0 <= time.time() - last < settings.dream.hours * 3_600:
        return "not yet"
    others = changed_transcripts(transcript_folders(places), last, without="")
    if len(others) < settings.dream.transcripts:
        return "too few sessions since the last"
    from reverie.session.session import Session

    own = replace(settings, hooks=HookSettings())  # nobody begins or ends a session here
    async with await Session.open(cwd=cwd, model=_model(settings), settings=own) as session:
        if session.dreaming is None:
            return "off"
        closed = session.dreaming.after_turn()
        if closed is not None:
            return closed.reason
        await session.tasks.settle(Purpose.DREAM, settings.dream.run_minutes * 60)
    return "dreamt"


def main() -> int:
    """Reads one job, does it, prints the report."""
    try:
        with guarded("the job"):
            report = asyncio.run(work(read_job(sys.stdin.buffer.read(_MOST_JOB))))
    except ReverieError as error:
        print(redact(str(error)), file=sys.stderr)
        return error.exit_code
    with suppress(BrokenPipeError):
        print(json.dumps(report, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
