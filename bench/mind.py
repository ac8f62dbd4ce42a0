"""How fast the offline mind writes notes and a summary of recorded sessions, and whether they equal those by code.

`reverie lab survival` measures what the texts by code keep. So if the texts are equal, its figures hold here too.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import process_time

from reverie.errors import ReverieError
from reverie.lab.measurement import Result, Table, at_option, measurement, paths_argument, whole
from reverie.lab.survival.moments import SIMULATED_AT, CompactionMoment, load_moments
from reverie.layers.base import EffectResult
from reverie.layers.l3_session_notes.sections import split
from reverie.layers.l3_session_notes.trigger import NoteNumbers
from reverie.layers.l3_session_notes.writer import default_template
from reverie.layers.l3_session_notes.writer import directive as notes_directive
from reverie.layers.l4_compaction.by_code import Limits, write_notes, write_summary
from reverie.layers.l4_compaction.setup import CompactionNumbers
from reverie.layers.l4_compaction.summary import check_summary
from reverie.layers.l4_compaction.summary import directive as summary_directive
from reverie.models.base import Request
from reverie.models.tokens import PROSE_BYTES, estimate_message, estimate_text
from reverie.offline.step import Act, Answer, Step
from reverie.offline.tasks import next_step
from reverie.quick import dataclass
from reverie.types import JsonObject, Message, Origin, Purpose, TextBlock

_FILE = Path("/session/session-memory/summary.md")
_EDIT: JsonObject = {"name": "Edit", "input_schema": {}}


@dataclass(frozen=True, slots=True)
class WrittenTexts:
    """One session up to a cut: its size, the time for each text, and whether the texts equal those by code."""

    session: str
    tokens: int
    notes_ms: float
    summary_ms: float
    notes_same: bool
    summary_same: bool


def measure(paths: Sequence[Path], at: int = SIMULATED_AT) -> list[WrittenTexts]:
    """Measures every compaction of these sessions, and every long session cut at `at` tokens."""
    return [_measure(moment) for moment in load_moments(paths, at)]


def _measure(moment: CompactionMoment) -> WrittenTexts:
    messages = tuple(entry.message for entry in moment.before)
    template, numbers = default_template(), NoteNumbers()
    prompt = notes_directive(template, _FILE, template, numbers)
    notes, notes_ms = _time(_request(moment, messages, prompt, Purpose.NOTES))
    most = CompactionNumbers().summary_tokens
    text, summary_ms = _time(_request(moment, messages, summary_directive("whole", ""), Purpose.COMPACTION, most))
    limits = Limits(total=numbers.total_tokens * PROSE_BYTES, ledger=numbers.section_tokens * PROSE_BYTES)
    by_code = write_notes(moment.before, template, limits, cwd=moment.cwd)
    found, _ = check_summary(
        EffectResult(ok=True, text=text.text if isinstance(text, Answer) else ""), 10**9, estimate_text
    )
    summary = write_summary(moment.before, Limits.for_tokens(most), cwd=moment.cwd, alone=False)
    return WrittenTexts(
        moment.session,
        sum(map(estimate_message, messages)),
        notes_ms,
        summary_ms,
        _bodies(_apply_edits(template, notes), template) == _bodies(by_code, template),
        found == summary.strip(),
    )


def _request(
    moment: CompactionMoment, messages: tuple[Message, ...], prompt: str, purpose: Purpose, max_tokens: int = 8_000
) -> Request:
    directive = Message("user", (TextBlock(prompt, Origin.CODE),))
    system = (f"- Working folder: {moment.cwd}",) if moment.cwd else ()
    return Request("embedded", system, (_EDIT,), (*messages, directive), max_tokens, purpose=purpose)


def _time(request: Request) -> tuple[Step, float]:
    """The answer and its processor time in milliseconds."""
    began = process_time()
    step = next_step(request)
    return step, round(1000 * (process_time() - began), 1)


def _apply_edits(notes: str, step: Step) -> str:
    for call in step.calls if isinstance(step, Act) else ():
        if notes.count(call.input["old_string"]) != 1:
            raise ReverieError("an edit of the notes does not fit its file exactly once")
        notes = notes.replace(call.input["old_string"], call.input["new_string"])
    return notes


def _bodies(notes: str, template: str) -> list[str]:
    return [section.body for section in split(notes, template)]


@measurement("reverie lab mind ~/.claude/projects/my-project/*.jsonl")
@paths_argument
@at_option
def mind(paths: tuple[Path, ...], at: int) -> Result:
    """Measure the notes and summaries of the offline mind, on recorded sessions.

    The offline mind is the built-in rules that answer without a model. Layers 3 and 4 ask it for notes and a summary as
    they ask a model. They can also write both texts themselves, without asking a model or the offline mind (`reverie
    lab survival` measures these texts). For each compaction, the command shows how long the offline mind takes, and
    whether its notes and summary equal those that the layers write themselves. PATH is a transcript, or a folder: then
    all transcripts in it and below it are measured.
    """
    written = measure(paths, at)
    notes, summaries = [one.notes_ms for one in written], [one.summary_ms for one in written]
    figures = {
        "sessions": len(written),
        "tokens": round(median(one.tokens for one in written)),
        "notes_ms": {"median": median(notes), "most": max(notes)},
        "summary_ms": {"median": median(summaries), "most": max(summaries)},
        "notes_same": sum(one.notes_same for one in written),
        "summary_same": sum(one.summary_same for one in written),
        "each": written,
    }
    columns = ("session", "tokens", whole("notes_ms"), whole("summary_ms"), "notes_same", "summary_same")
    times = f"notes: {median(notes):.0f} ms, at most {max(notes):.0f} ms; same: as the layers write them themselves"
    return Result(figures, (Table(written, columns), times))
