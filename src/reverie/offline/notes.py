"""Updates the session's notes: code fills the sections from the conversation and merges them with the existing text.

Works from the directive alone: it names the file, shows the notes and their limits. One Edit per changed section, all
in one response. A line stays until something newer is said about the same thing, so that what left the window, and what
the user wrote into the notes, is not lost.
"""

from __future__ import annotations

import re
from dataclasses import replace

from reverie.layers.l3_session_notes.sections import NoteSection, is_intact, outline, split
from reverie.layers.l3_session_notes.writer import default_template
from reverie.layers.l4_compaction.by_code import Limits, without_secrets, write_notes
from reverie.layers.l4_compaction.by_code.limits import bounded
from reverie.models.base import Request
from reverie.models.tokens import PROSE_BYTES, encoded
from reverie.offline.notes_merging import merge_section
from reverie.offline.place import read_place
from reverie.offline.step import Act, Answer, PlannedCall, Step, offered_tools
from reverie.quick import dataclass
from reverie.storage.transcript.view import Entry
from reverie.types import Origin, TextBlock

_NOTES = re.compile(r"<notes>\n(.*)\n</notes>", re.DOTALL)
_PATH = re.compile(r"(?<![\w./])/[^\n]{0,400}?\.md(?![\w/-])")
_LIMITS = re.compile(r"about ([\d,]+) tokens\b.*?about ([\d,]+)", re.DOTALL)
_SECTION_TOKENS, _TOTAL_TOKENS = 2_000, 12_000
_KINDS: tuple[tuple[str, ...], ...] = (
    ("title", "name"),
    ("stand", "state", "status", "now", "current", "progress"),
    ("asked", "request", "goal", "task", "want", "purpose", "requirement"),
    ("file", "function", "code", "module"),
    ("command", "workflow", "run"),
    ("error", "correction", "mistake", "problem", "failure", "bug"),
    ("fit", "system", "architecture", "component", "overview", "glossary", "names"),
    ("lesson", "learn", "avoid", "insight"),
    ("result", "answer", "output", "deliverable"),
    ("log", "step", "history", "journal", "done"),
)
"""Words that identify the sections of the user's own template: our ten sections, in order."""


@dataclass(frozen=True, slots=True)
class _NotesTask:
    """What the directive says. `at`: the message that contains it."""

    path: str
    notes: str
    limits: Limits
    at: int


def next_step(request: Request) -> Step:
    """The edits; after them, or if the directive does not show any notes, a sentence that it is done."""
    asked = _asked(request)
    if asked is None:
        return Answer("There are no notes to update.")
    results = [result for message in request.messages[asked.at :] for result in message.tool_results]
    edited = {call.id for message in request.messages[asked.at :] for call in message.tool_uses}
    if edited:
        failed = next((one.text for one in results if one.is_error and one.tool_use_id in edited), "")
        return Answer(f"An edit failed: {failed[:200]}" if failed else "The notes are up to date.")
    edits = _edits(request, asked) if "Edit" in offered_tools(request) else ()
    return Act("I update the notes.", edits) if edits else Answer("The notes are up to date.")


def _asked(request: Request) -> _NotesTask | None:
    for at in range(len(request.messages) - 1, -1, -1):
        for block in reversed(request.messages[at].content):
            if not isinstance(block, TextBlock) or block.origin is not Origin.CODE:
                continue
            found = _NOTES.search(block.text)
            around = _NOTES.sub("", block.text)
            path = _PATH.search(around)
            if found and path:
                return _NotesTask(path[0], found[1], _limits(around), at)
    return None


def _limits(text: str) -> Limits:
    said = _LIMITS.search(text)
    section, total = (int(number.replace(",", "")) for number in said.groups()) if said else (0, 0)
    section, total = section or _SECTION_TOKENS, total or _TOTAL_TOKENS
    size = section * PROSE_BYTES
    return Limits(total=total * PROSE_BYTES, ledger=size, section=size)


def _said(request: Request, asked: _NotesTask) -> list[Entry]:
    """The conversation before the directive."""
    last = request.messages[asked.at]
    kept = tuple(b for b in last.content if not (isinstance(b, TextBlock) and f"<notes>\n{asked.notes}" in b.text))
    messages = (*request.messages[: asked.at], *([replace(last, content=kept)] if kept else []))
    return [Entry(message.id, message) for message in messages]


def _edits(request: Request, asked: _NotesTask) -> tuple[PlannedCall, ...]:
    is_ours = is_intact(asked.notes, default_template())
    sections = split(asked.notes, default_template() if is_ours else _own_template(asked.notes))
    said = _said(request, asked)
    text = write_notes(said, default_template(), asked.limits, cwd=read_place(request).folder)
    fresh = [section.body for section in split(without_secrets(text, said), default_template())]
    calls, room = list[PlannedCall](), asked.limits.total
    for at, section in enumerate(sections):
        kind = at if is_ours else _kind(section)
        body = section.body if kind is None else merge_section(kind, section.body, fresh[kind], asked.limits.section)
        body = bounded(body, max(0, room))
        room -= len(encoded(body))
        if body != section.body:
            calls.append(_edit(asked, section, body))
    return tuple(calls)


def _own_template(notes: str) -> str:
    """The headings of the user's own template: those with a hint below, if there are any; none inside a fence."""
    found = outline(re.sub(r"^```.*?^```", "", notes, flags=re.DOTALL | re.MULTILINE))
    hinted = [section for section in found if section.hint]
    return "\n".join(section.text for section in hinted or found)


def _kind(section: NoteSection) -> int | None:
    """Which of our sections a heading of the user's matches, by the words of the heading, then of its hint."""
    for text in (section.heading, section.hint):
        words = re.findall(r"[a-z]+", text.lower())
        for kind, known in enumerate(_KINDS):
            if any(word == one or word == one + "s" for word in words for one in known):
                return kind
    return None


def _edit(asked: _NotesTask, section: NoteSection, body: str) -> PlannedCall:
    head = f"{section.heading}\n{section.hint}" if section.hint else section.heading
    old = section.text.rstrip("\n")
    if old not in asked.notes or asked.notes.count(old) != 1:
        old = _exact_section(asked.notes, section)
    return PlannedCall(
        "Edit", {"file_path": asked.path, "old_string": old, "new_string": f"{head}\n\n{body}".rstrip("\n")}
    )


def _exact_section(notes: str, section: NoteSection) -> str:
    """The section exactly as the file has it, from its heading to the next one."""
    lines = notes.split("\n")
    start = next((at for at, line in enumerate(lines) if line.strip() == section.heading), 0)
    body = section.body.split("\n")[-1]
    end = next((at for at in range(len(lines) - 1, start, -1) if body and lines[at].rstrip() == body), start)
    if not section.body and section.hint:
        end = next((at for at in range(start, len(lines)) if lines[at].strip() == section.hint), start)
    return "\n".join(lines[start : end + 1])
