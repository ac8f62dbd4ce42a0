"""How writes of agents to an index and to a daily log end. Index lines are built from the files that they name; entries
of a log are the agent's notes, and what comes from somebody else waits. Texts in, decisions out."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from reverie.memory.changes import Decision, Mark, ProposedWrite, Writer
from reverie.memory.gate.head import is_own
from reverie.memory.gate.lines import body_parts, put_in_place, take_out
from reverie.memory.gate.rule import Case, End, Verdict, judge
from reverie.memory.gate.speech import Speech, foreign_names
from reverie.memory.gate.statement import EvidenceText, features
from reverie.memory.index import IndexEntry, entries, index_line
from reverie.memory.taxonomy import Trust
from reverie.memory.topic_file import TopicFile, statements_of
from reverie.text.folding import visible
from reverie.text.patterns import late
from reverie.text.words import content_terms

_HEADING_WORDS: Final = 6
_LOG_TIME: Final = late(r"^\d{1,2}:\d\d\b[\s:—–-]*")


def decide_index(write: ProposedWrite, text: str, read: Callable[[str], str]) -> Decision:
    """Lines for files are built from the files; other new lines must be the user's. Lines that were there stay while
    their file does; only a consolidation may prune them."""
    folder = write.name.rpartition("/")[0]

    def content(entry: IndexEntry) -> str:
        name = f"{folder}/{entry.file}" if folder else entry.file
        return (write.together[name] or "") if name in write.together else read(name)

    text = visible(text)
    before = _lines(write.before or "")
    listed = {entry.line: entry for entry in entries(text)}
    case = Case(write.writer, Speech(write.evidence), ())
    lines: list[str] = []
    left: list[str] = []
    places: dict[str, int] = {}
    for number, line in enumerate(_lines(text), 1):
        entry = listed.get(number)
        if line in before or not any(char.isalnum() for char in line):
            pass
        elif entry is not None and (held := content(entry)):
            topic = TopicFile.parse(held)
            if not is_own(f"{entry.title} {entry.hook}", case, [*statements_of(held), topic.name]):
                line = index_line(topic.name or entry.file, entry.file, topic.description)
        elif entry is not None or not _is_users(line, case):
            left.append(line.strip("#*- "))
            continue
        place = places.get(entry.file) if entry is not None else None
        if place is not None and (line not in before or line == lines[place]):  # one line per file: the new one
            lines[place] = line
        elif place is None or lines[place] in before:
            lines.append(line)
        if entry is not None:
            places.setdefault(entry.file, len(lines) - 1)
    if write.writer is not Writer.DREAM:
        now = {entry.file for entry in entries("\n".join(lines))}
        was = {before[entry.line - 1]: entry for entry in entries(write.before or "")}
        kept = [
            line
            for line in before
            if line.strip() and line not in lines and (line not in was or _stays(was[line], now, content))
        ]
        lines = put_in_place(before, lines, kept)
    note = f"{write.name}: lines that are not about a file were left out." if left else ""
    return Decision("\n".join(lines) + "\n" if lines else "", held=tuple(left), note=note)


def _is_users(line: str, case: Case) -> bool:
    """Whether a line that is not about a file is a heading, or what the user said."""
    said = line.strip("#*- \r")
    if line.startswith("#"):
        return is_own(said, case, []) and len(content_terms(said)) <= _HEADING_WORDS
    return judge(case, [said])[0].is_anchored


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _stays(entry: IndexEntry, listed: Collection[str], content: Callable[[IndexEntry], str]) -> bool:
    return entry.file not in listed and bool(content(entry))


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
        is_foreign = case.speech.foreign_addresses(found, near) or case.speech.is_quoted(found, near)
        if one.end is End.HELD and (is_foreign or foreign_names(found, near, case.speech.foreign)):
            held.append(Verdict(bare, End.HELD, why=one.why))
        else:
            marks[bare] = one.mark or Mark(Trust.INFERRED)
    kept = take_out(added, {one.text for one in held}) if held else added
    return (text[: len(before)] if text.startswith(before) else "") + kept, marks, held
