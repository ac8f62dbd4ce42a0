"""The extraction task of the embedded model: read what may have to change, write what is new, say what was done.

A pure function of the request, each round anew. It reads at most once and writes at most once, through the same tools
and permissions as any model.
"""

from __future__ import annotations

from dataclasses import dataclass

from reverie.models.base import Request
from reverie.offline.extract.candidates import Candidate, all_terms, find_candidates
from reverie.offline.extract.changing import forgotten, retold
from reverie.offline.extract.composing import compose, statement_lines
from reverie.offline.extract.marks import Message
from reverie.offline.extract.matching import Standing, about, is_said_already, same_subject, worth_reading
from reverie.offline.extract.reading import Brief, read_brief
from reverie.offline.extract.updating import updated
from reverie.offline.step import Act, Call, Say, Step, offered_tools
from reverie.text.words import content_terms

_NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Write:
    """What is to stand in a file; empty: it is forgotten."""

    file: str
    text: str


def next_step(request: Request) -> Step:
    """The next reply of a run: reads, writes, or the end."""
    brief = read_brief(request)
    if brief is None or brief.wrote:
        return Say(_NOTHING if brief is None else "done")
    offered = offered_tools(request)
    messages = [Message(said) for said in brief.said]
    candidates = find_candidates(messages)
    if not brief.looked and brief.known and "Read" in offered:
        near = worth_reading(brief.known, all_terms(messages)) if candidates or _touches_memory(messages) else []
        if near:
            reads = tuple(Call("Read", {"file_path": f"{brief.directory}/{one.file}"}) for one in near)
            return Act("These may have to change.", reads)
    found = writes(brief, messages, candidates)
    if not found or "Write" not in offered:
        return Say(_NOTHING)
    calls = (Call("Write", {"file_path": f"{brief.directory}/{one.file}", "content": one.text}) for one in found)
    return Act("To be kept.", tuple(calls))


def writes(brief: Brief, messages: list[Message], candidates: list[Candidate]) -> list[Write]:
    """Everything to be written, one file once."""
    memories = [Standing(one, brief.texts[one.file]) for one in brief.known if one.file in brief.texts]
    found: dict[str, Write] = {}
    used: set[int] = set()
    dropping: set[int] = set()
    for message in messages:
        for memory in forgotten(message, memories):
            found[memory.known.file] = Write(memory.known.file, "")
            dropping.add(id(message))
    for message in messages:
        for memory, candidate in retold(message, memories, candidates):
            if memory.known.file in found:
                continue
            text = updated(memory.text, candidate)
            if text != memory.text and not is_said_already(statement_lines(candidate), [memory]):
                found[memory.known.file] = Write(memory.known.file, text)
            used |= {id(one) for one in candidate.sentences}
    for candidate in candidates:
        if any(id(one) in used for one in candidate.said):
            continue
        if id(candidate.message) in dropping and any(one.has("forget") or one.leans for one in candidate.said):
            continue  # it is how, and why, something is forgotten
        lines = statement_lines(candidate)
        if not content_terms(lines[0]) or is_said_already(lines, memories):
            continue
        near = about(memories, candidate.message.said.text)
        same = [
            one
            for one in near
            if one.known.type is candidate.type
            and one.known.file not in found
            and same_subject(one, candidate.message, candidate.terms)
        ]
        if same:
            found[same[0].known.file] = Write(same[0].known.file, updated(same[0].text, candidate))
            continue
        gone = {one.file for one in found.values() if not one.text}
        if gone and any(one.known.file in gone for one in near):
            continue  # it is why something is forgotten
        memory = compose(candidate, [*(one.file for one in brief.known), *found])
        found[memory.file] = Write(memory.file, memory.text)
    return list(found.values())


def _touches_memory(messages: list[Message]) -> bool:
    """Whether somebody speaks of a change or of forgetting, so that the memories must be looked at."""
    return any(
        one.has("forget") or one.has("changed") or one.has("excepts") for message in messages for one in message.marked
    )
