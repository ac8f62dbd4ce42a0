"""How writes of agents to an index and to a daily log end. Index lines are built from the files that they name; entries
of a log are the agent's notes, and what comes from somebody else waits. Texts in, decisions out."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from reverie.memory.changes import Decision, Mark, ProposedWrite, Writer
from reverie.memory.gate.head import is_own
from reverie.memory.gate.lines import body_parts, take_out
from reverie.memory.gate.rule import Case, End, Verdict, judge
from reverie.memory.gate.speech import EvidenceText, Speech, features, foreign_names
from reverie.memory.index import entries, index_line
from reverie.memory.taxonomy import Trust
from reverie.memory.topic_file import TopicFile, statements_of
from reverie.text.folding import visible
from reverie.text.words import content_terms

_LOG_TIME: Final = re.compile(r"^\d{1,2}:\d\d\b[\s:—–-]*")


def decide_index(write: ProposedWrite, text: str, read: Callable[[str], str]) -> Decision:
    """Lines for files are built from the files; other new lines must be the user's; the user's own lines stay."""
    folder = write.name.rpartition("/")[0]
    before = (write.before or "").splitlines()
    listed = {entry.line: entry for entry in entries(text)}
    case = Case(write.writer, Speech(write.evidence), ())
    lines: list[str] = []
    held: list[Verdict] = []
    for number, line in enumerate(visible(text).splitlines(), 1):
        entry = listed.get(number)
        if line in before or not any(char.isalnum() for char in line):
            lines.append(line)
        elif entry is not None:
            name = f"{folder}/{entry.file}" if folder else entry.file
            held_text = write.together.get(name, None) or read(name)
            topic = TopicFile.parse(held_text)
            if held_text and not is_own(f"{entry.title} {entry.hook}", case, [*statements_of(held_text), topic.name]):
                line = index_line(topic.name or entry.file, entry.file, topic.description)
            lines.append(line)
        elif is_own(line.strip("#*- "), case, []) and len(content_terms(line)) <= 6:
            lines.append(line)
        else:
            held.append(Verdict(line.strip("#*- "), End.HELD, why="an index has one line per file"))
    kept = set(lines)
    own = {entry.text for entry in entries(write.before or "")}
    if write.writer is Writer.DREAM:  # it prunes the index, and loses nothing that tells something
        before = []
    lines += [line for line in before if line.strip() and line not in own and line not in kept]
    note = f"{write.name}: lines that are not about a file were left out." if held else ""
    return Decision("\n".join(lines) + "\n" if lines else "", held=tuple(one.text for one in held), note=note)


def split_log(write: ProposedWrite, text: str) -> tuple[str, dict[str, Mark], list[Verdict]]:
    """The log with its new entries, their marks, and the entries that wait: those that come from somebody else."""
    before = write.before or ""
    added = visible(text[len(before) :] if text.startswith(before) else text)
    case = Case(write.writer, Speech(write.evidence), ())
    held: list[Verdict] = []
    marks: dict[str, Mark] = {}
    near = EvidenceText([case.speech.own.text])
    for _, bare in body_parts(added):
        said = _LOG_TIME.sub("", bare)
        one = judge(case, [said])[0]
        found = features(said)
        is_foreign = case.speech.foreign_addresses(found, near) or case.speech.is_quoted(found)
        if one.end is End.HELD and (is_foreign or foreign_names(found, near, case.speech.foreign)):
            held.append(Verdict(bare, End.HELD, why=one.why))
        else:
            marks[bare] = one.mark or Mark(Trust.INFERRED)
    kept = take_out(added, {one.text for one in held}) if held else added
    return (text[: len(before)] if text.startswith(before) else "") + kept, marks, held
