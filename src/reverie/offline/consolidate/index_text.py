"""Rewrites an index for the topic files that exist: one short line each, no dead links, no doubles.

A line is removed or shortened only if a topic file has its content, so nothing is lost if a file could not be written.
An index that is right keeps its bytes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import date

from reverie.memory.index import LINE_CHARACTERS, MAX_BYTES, MAX_LINES, IndexEntry, entries, index_line, with_entry
from reverie.memory.taxonomy import index_of, pointer_of
from reverie.memory.topic_file import TopicFile
from reverie.offline.consolidate.index_detail import is_covered, name_in, section_body, split_hook
from reverie.offline.consolidate.index_rows import Row, RowKind, is_over, longest_line, read_rows
from reverie.offline.consolidate.relative_dates import write_out_dates
from reverie.text.sentences import statements_in

_CLAUSE = re.compile(r"(?:[.;](?=\s)|\s[—–-](?=\s)|\s\()")


def tidy_index(
    index: str,
    text: str,
    topics: Mapping[str, str],
    days: Mapping[str, date],
    before: Mapping[str, str],
    logs: Collection[str] = (),
) -> str:
    """The planned index. `topics`: all files that exist; `before`: those that were read, as they were."""
    others = {*topics, *logs}
    own = {name: TopicFile.parse(body) for name, body in topics.items() if index_of(name) == index}
    longest = longest_line(text)
    found = read_rows(text)
    moved = _moved_sections(found, topics) if is_over(text) else set[int]()
    kept: list[str] = []
    listed: set[str] = set()
    for row in found:
        match row.part:
            case RowKind.ENTRY if row.entry is not None:
                name = name_in(index, row.entry.file)
                if name in own and name not in listed:
                    listed.add(name)
                    kept.append(_line_for(row, own[name], days.get(name), before.get(name), longest))
                elif name not in own and name in others:
                    kept.append(row.line)
            case RowKind.BELOW if row.entry is not None:
                name = name_in(index, row.entry.file)
                if name in own and row.states and not is_covered(row.states, own[name].text):
                    kept.append(row.line)
            case RowKind.LOOSE if row.states and any(is_covered(row.states, body) for body in topics.values()):
                pass
            case RowKind.DOCUMENT if row.section in moved:
                pass
            case _:
                kept.append(row.line)
    result = "".join(kept)
    for name in sorted(set(own) - listed, key=lambda one: (days.get(one, date.max), one)):
        title = own[name].name or name.rpartition("/")[2].removesuffix(".md").replace("_", " ")
        result = with_entry(result, pointer_of(name), title, _hook(own[name]))
    return _within_limits(result)


def _moved_sections(found: list[Row], topics: Mapping[str, str]) -> set[int]:
    """The sections of prose that have become topic files."""
    moved: set[int] = set()
    for section in {row.section for row in found if row.part is RowKind.DOCUMENT}:
        body = section_body([row for row in found if row.section == section and row.part is RowKind.DOCUMENT]).strip()
        if body and any(body in text for text in topics.values()):
            moved.add(section)
    return moved


def _line_for(row: Row, topic: TopicFile, day: date | None, before: str | None, longest: int) -> str:
    """An entry's line: unchanged if it is short and true."""
    entry = row.entry
    assert entry is not None
    hook = write_out_dates(entry.hook, day) if day is not None else entry.hook
    if before is not None and topic.description and TopicFile.parse(before).description != topic.description:
        hook = topic.description
    if len(entry.text) > longest and all(is_covered(piece, topic.text) for piece in split_hook(entry.hook)):
        hook = _shorter(entry, topic.description or hook)
    elif hook == entry.hook:
        return row.line
    lead = row.line[: len(row.line) - len(row.line.lstrip())]
    end = row.line[len(row.line.rstrip("\r\n")) :]
    return lead + index_line(entry.title, entry.file, hook) + end


def _shorter(entry: IndexEntry, description: str) -> str:
    """A hook that fits completely: the description, or as much of the old hook as makes sense alone."""
    fits = LINE_CHARACTERS - len(index_line(entry.title, entry.file, "")) - len(" — ")
    if len(description) <= fits:
        return description
    clauses = [entry.hook[: match.start()] for match in _CLAUSE.finditer(entry.hook)]
    return next((clause for clause in reversed(clauses) if 20 <= len(clause) <= fits), description)


def _hook(topic: TopicFile) -> str:
    if topic.description:
        return topic.description
    return next((one.text for one in statements_in(topic.body)), "")


def _within_limits(text: str) -> str:
    """Brings the index within its lines and bytes: blank lines go first, then hooks get shorter."""
    lines = text.splitlines(keepends=True)
    if len(lines) > MAX_LINES:
        lines = [line for line in lines if line.strip()]
    limit = LINE_CHARACTERS
    while len("".join(lines).encode("utf-8", "replace")) > MAX_BYTES and limit > 60:
        limit -= 10
        listed = {entry.line: entry for entry in entries("".join(lines))}
        lines = [
            _cut(listed[number], limit) if number in listed and len(line) > limit else line
            for number, line in enumerate(lines, 1)
        ]
    return "".join(lines)


def _cut(entry: IndexEntry, limit: int) -> str:
    room = limit - len(index_line(entry.title, entry.file, "")) - 4
    hook = entry.hook[: max(0, room)].rpartition(" ")[0].rstrip(" ,;:—-…")
    return index_line(entry.title, entry.file, f"{hook}…" if hook else "") + "\n"
