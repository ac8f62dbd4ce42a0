"""Moves what is only in an index into topic files: the rest of long lines, loose statements, whole sections.

A section of prose is moved only if the index is over its limits, and then unchanged, into a file of its own. This
module does not remove anything from the index: that follows when the topic files are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from reverie.memory.taxonomy import INDEX, TEAM, MemoryType, file_name
from reverie.memory.topic_file import TopicFile
from reverie.offline.consolidate.desk import Desk
from reverie.offline.consolidate.index_rows import Row, RowKind, is_over, longest_line, read_rows
from reverie.offline.consolidate.learning import learn
from reverie.offline.consolidate.lessons import Kind, Lesson, Source, holds_secret, strip_lead
from reverie.offline.consolidate.statements import with_lines
from reverie.text.cutting import shorten
from reverie.text.sentences import statements_in
from reverie.text.values import hard_facts
from reverie.text.words import content_terms

INDEXES = (INDEX, f"{TEAM}/{INDEX}")
_RULE = re.compile(r"\b(?:wants?|prefers?|likes?|always|never|must)\b", re.IGNORECASE)
_LEAST_TERMS = 3


def keep_detail(desk: Desk) -> None:
    """Copies into topic files what only an index says."""
    for index in INDEXES:
        text = desk.seen.texts.get(index)
        if text is not None:
            _keep_detail_of(desk, index, text)


def _keep_detail_of(desk: Desk, index: str, text: str) -> None:
    longest = longest_line(text)
    found = read_rows(text)
    for row in found:
        match row.part:
            case RowKind.ENTRY if row.entry is not None and len(row.entry.text) > longest:
                _into_file(desk, name_in(index, row.entry.file), split_hook(row.entry.hook))
            case RowKind.BELOW if row.entry is not None and row.states:
                _into_file(desk, name_in(index, row.entry.file), [row.states])
            case RowKind.LOOSE if row.states and index == INDEX and not holds_secret(row.states):
                kind = Kind.RULE if _RULE.search(row.states) else Kind.NOTE
                learn(desk, Lesson(strip_lead(row.states), kind, desk.seen.brief.today, Source.INDEX))
            case _:
                pass
    if is_over(text) and index == INDEX:
        for section in sorted({row.section for row in found if row.part is RowKind.DOCUMENT}):
            _section_file(desk, [row for row in found if row.section == section and row.part is RowKind.DOCUMENT])


def _section_file(desk: Desk, section: list[Row]) -> None:
    """A section of prose as a file of its own."""
    title = section[0].line.strip().lstrip("#").strip() if section[0].line.startswith("#") else "Notes from the index"
    body = section_body(section)
    name = file_name(MemoryType.PROJECT, title)
    if not body.strip() or holds_secret(body) or name in desk.texts:
        return
    first = next((one.text for one in statements_in(body)), title)
    made = TopicFile.new(name=title, description=shorten(first, 140), type=MemoryType.PROJECT, body=body)
    desk.write(name, made.text, "new: a section from the index, which was too long")


def section_body(section: list[Row]) -> str:
    """The text below a section's heading."""
    lines = [row.line for row in section]
    return "".join(lines[1:] if lines and lines[0].startswith("#") else lines).strip("\n") + "\n"


def _into_file(desk: Desk, name: str, said: Iterable[str]) -> None:
    """Adds to a file what it does not say yet."""
    if not desk.may_change(name):
        return
    new = [piece for piece in said if not is_covered(piece, desk.texts[name]) and not holds_secret(piece)]
    if new:
        lines = [piece if piece.endswith((".", "!", "?", "。")) else f"{piece}." for piece in new]
        desk.write(name, with_lines(desk.texts[name], lines), "has the detail that was only in the index")


def split_hook(hook: str) -> list[str]:
    """Splits a hook into statements."""
    found = [one.text for one in statements_in(hook.replace("; ", ";\n").replace(" - ", "\n- "))]
    return [strip_lead(piece).rstrip(" ;") for piece in found]


def is_covered(piece: str, file_text: str) -> bool:
    """Whether a file says it: every number and nearly all the words; the last word may be cut off."""
    terms = content_terms(piece)
    whole = content_terms(file_text)
    lower = re.sub(r"\\(.)", r"\1", file_text.lower())
    missing = [term for term in terms if term not in whole and term not in lower]
    facts = [fact for fact in hard_facts(piece) if fact.lower() not in lower]
    words = piece.split()
    if words and not piece.endswith((".", "!", "?", "。", ")", "`")):  # perhaps cut: the beginning of a word counts
        tail = words[-1].lower().strip("`*(\"'")
        missing = [term for term in missing if not tail.startswith(term[:3])] if tail and tail in lower else missing
        facts = [fact for fact in facts if not words[-1].startswith(fact)]
    return not facts and len(missing) <= (0 if len(terms) < _LEAST_TERMS else 0.2 * len(terms))


def name_in(index: str, file: str) -> str:
    """The file that a line of an index means, relative to the memory directory."""
    return f"{TEAM}/{file}" if index.startswith(f"{TEAM}/") else file
