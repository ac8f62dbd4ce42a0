"""The extraction task of the offline mind: read what may change, write what is new, report what was done.

A pure function of the request, computed again in each round. It reads at most once and writes at most once, through the
same tools and permissions as any model.
"""

from __future__ import annotations

from reverie.memory.gate.statement import EvidenceText
from reverie.memory.taxonomy import is_team
from reverie.models.base import Request
from reverie.offline.extract.candidates import Candidate, find_candidates
from reverie.offline.extract.composing import Memory, compose, statement_lines
from reverie.offline.extract.forgetting import find_forgotten
from reverie.offline.extract.matching import StoredMemory, find_nearest, find_related, is_said_already, speaks_of
from reverie.offline.extract.reading import ExtractionTask, read_extraction_task
from reverie.offline.extract.updating import update_memory
from reverie.offline.language.marks import MarkedMessage
from reverie.offline.step import Act, Answer, PlannedCall, Step, offered_tools
from reverie.text.words import content_terms

_NOTHING = "nothing"


def next_step(request: Request) -> Step:
    """The next step of an extraction: reads, writes, or the end."""
    brief = read_extraction_task(request)
    if brief is None or brief.wrote:
        return Answer(_NOTHING if brief is None else "done")
    offered = offered_tools(request)
    messages = [MarkedMessage(said.text, said.day, said.answer, said.before) for said in brief.said]
    candidates = find_candidates(messages)
    forgets = any(message.forgets for message in messages)
    if not brief.looked and brief.known and "Read" in offered and (candidates or forgets):
        said = " ".join(f"{one.text} {one.answer} {one.before}" if forgets else one.text for one in brief.said)
        if near := [one for one in find_related(brief.known, content_terms(said)) if one.file not in brief.texts]:
            reads = tuple(PlannedCall("Read", {"file_path": f"{brief.directory}/{one.file}"}) for one in near)
            return Act("These may have to change.", reads)
    found = plan_writes(brief, messages, candidates)
    if not found or "Write" not in offered:
        return Answer(_NOTHING)
    calls = (PlannedCall("Write", {"file_path": f"{brief.directory}/{one.file}", "content": one.text}) for one in found)
    return Act("I keep this.", tuple(calls))


def plan_writes(brief: ExtractionTask, messages: list[MarkedMessage], candidates: list[Candidate]) -> list[Memory]:
    """Plans all writes, each file once. What the user says to the agent changes no file that a team shares."""
    known = [one for one in brief.known if one.file in brief.texts and not is_team(one.file)]
    memories = [StoredMemory(one, brief.texts[one.file]) for one in known]
    found: dict[str, Memory] = {}
    for message in messages:
        for memory in find_forgotten(message, memories):
            found[memory.known.file] = Memory(memory.known.file, "")
    for candidate in candidates:
        lines = statement_lines(candidate)
        if is_said_already(lines, memories):
            continue
        open_still = [one for one in memories if one.known.type is candidate.type and one.known.file not in found]
        same = find_nearest(open_still, candidate.message.text, candidate.terms, is_change=candidate.is_change)
        if same is not None:
            found[same.known.file] = Memory(same.known.file, update_memory(same.text, candidate))
            continue
        ground = EvidenceText([candidate.message.text])
        is_near = any(speaks_of(ground, one.text) for one in open_still) or (candidate.turns and bool(memories))
        if candidate.only_updates or (is_near and not candidate.is_asked_for):
            continue  # it may be about one of them, and it is not clear which
        new = compose(candidate, [*(one.file for one in brief.known), *found])
        found[new.file] = new
    return list(found.values())
