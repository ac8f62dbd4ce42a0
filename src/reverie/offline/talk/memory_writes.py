"""Remembers on request, in the form of the memory directory: a topic file, then its line in the index.

First checks whether a memory on the subject exists, and then changes that one. Everything goes through Write and Edit,
so the write gate judges it as usual. If memory is a daily log, it appends a line there.
"""

from __future__ import annotations

import posixpath
import re
from datetime import date
from pathlib import PurePath

from reverie.errors import UserError
from reverie.memory.note import Note, find_related, make_note, revise, title_of
from reverie.memory.secrets.scan import find_secrets
from reverie.memory.taxonomy import file_name
from reverie.memory.topic_file import TopicFile
from reverie.offline.conversation import Done
from reverie.offline.step import Answer, Step
from reverie.offline.talk.turn import Talk
from reverie.offline.terms import pattern, read_question
from reverie.text.dates.phrases import find_days
from reverie.text.patterns import late

_VALUE = late(
    r"\b\d[\d.,:/-]*\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:january|february|march|april|may|june"
    r"|july|august|september|october|november|december)\b|\b(?:montag|dienstag|mittwoch|donnerstag|freitag|samstag"
    r"|sonntag)s?\b|\b(?:lunes|martes|miércoles|jueves|viernes|sábado|domingo)s?\b|(?:周|星期)[一二三四五六日天]"
    r"|[月火水木金土日]曜日?",
    re.IGNORECASE,
)
"""What a correction changes: numbers, dates, days."""
_HEAD = ("name:", "description:", "type:", "trust:", "---")
_UNWRITTEN = late(r"\.md: (?:not written again|Kept for the user|These statements stay)")
_TEXT = 300


def keep(talk: Talk, text: str) -> Step:
    """The next step of remembering a text."""
    place = talk.place
    if not place.memory:
        return Answer(talk.word("memory_off"))
    found = find_secrets(text)
    if found:
        return Answer(talk.word("secret", kind=found[0].kind))
    today = place.day or date(1970, 1, 1)
    dated = _dated(text, today, talk) if place.day else text
    try:
        note = make_note(dated, today=today)
    except UserError as error:
        return Answer(talk.word("refused", why=str(error)))
    if place.log:
        return _append_to_log(talk, note.statement, today)
    if note.doubt:
        return Answer(talk.word("doubt", why=note.doubt))
    if not talk.can("Write", "Read", "Grep"):
        return Answer(talk.word("refused", why="there is no tool to write with here."))
    return _look_first(talk, note)


def _dated(text: str, today: date, talk: Talk) -> str:
    """The text with a date after every day that is counted from today; the user's own word stays in front of it."""
    for one in reversed(find_days(text, today, talk.tongue)):
        if not one.is_absolute:
            text = f"{text[: one.end]} ({one.moment.iso}){text[one.end :]}"
    return text


def _look_first(talk: Talk, note: Note) -> Step:
    """What is already known about it; then the file; then its line in the index."""
    root = talk.place.memory.rstrip("/")
    known = talk.result("Grep", path=root)
    if known is None:
        terms = pattern(read_question(note.statement)) or "\\S"
        look = {"pattern": terms, "path": root, "glob": "*.md", "output_mode": "content", "-i": True, "head_limit": 200}
        return talk.act("Let me see what I know about that.", "Grep", look)
    texts = _texts(talk, known)
    near = find_related(note.statement, texts)
    if near is not None and near.same:
        return Answer(talk.word("known", file=near.file, text=near.statement[:_TEXT]))
    if near is not None:
        return _change(talk, note, f"{root}/{near.file}", near.statement)
    other = _same_but_for_a_value(note, texts)
    return _change(talk, note, f"{root}/{other[0]}", other[1]) if other else _write_new(talk, note, root)


def _same_but_for_a_value(note: Note, texts: dict[str, str]) -> tuple[str, str] | None:
    """The statement that differs from the new one only in a number, a day or a date, with its file."""
    said = next((line for line in note.topic.body.splitlines() if line.strip()), note.statement)
    wanted = _frame(said)
    for file, text in texts.items():
        for line in text.splitlines():
            if _VALUE.search(said) and _frame(line) == wanted and line.strip() != said.strip():
                return file, line.strip()
    return None


def _frame(statement: str) -> str:
    """A statement with a gap for every value."""
    return " ".join(_VALUE.sub("_", statement).lower().strip(" .-*。").split())


def _texts(talk: Talk, known: Done) -> dict[str, str]:
    """The lines that a search of the memory found, by file; heads and indexes do not count."""
    found = dict[str, list[str]]()
    for hit in known.hits():
        name = below_memory(talk, hit.path)
        if PurePath(name).name != "MEMORY.md" and not name.startswith("logs/") and not hit.text.startswith(_HEAD):
            found.setdefault(name, []).append(hit.text)
    return {name: "\n".join(lines) for name, lines in found.items()}


def is_unwritten(wrote: Done) -> bool:
    """Whether nothing was stored: it was refused, is written down already, or waits for the user."""
    return wrote.failed or bool(_UNWRITTEN.search(wrote.text))


def below_memory(talk: Talk, path: str) -> str:
    """A memory's name from a path as a search shows it, which may lead up from the working folder first."""
    root = talk.place.memory.rstrip("/")
    whole = posixpath.normpath(posixpath.join(talk.place.folder or "/", path))
    return whole[len(root) + 1 :] if whole.startswith(root + "/") else PurePath(path).name


def _change(talk: Talk, note: Note, path: str, old: str) -> Step:
    """Changes the memory that says something else; the rest of it stays."""
    read = talk.result("Read", file_path=path)
    if read is None:
        return talk.act("I remember something like that; let me see.", "Read", {"file_path": path})
    wrote = talk.result("Write", file_path=path)
    root = talk.place.memory.rstrip("/")
    if wrote is None:
        topic = TopicFile.parse("\n".join(line.text for line in read.lines()) + "\n")
        now = _revised(topic, old, note)
        return talk.act("It has changed, so I change it there.", "Write", {"file_path": path, "content": now.text})
    if is_unwritten(wrote):
        return Answer(talk.word("refused", why=first_line(wrote.text)))
    name = path[len(root) + 1 :]
    return Answer(talk.word("updated", file=name, old=old.rstrip("."), text=note.statement))


def _revised(topic: TopicFile, old: str, note: Note) -> TopicFile:
    """The memory with the new statement instead of the old one; a new reason replaces the old reason."""
    now = revise(topic, old, note)
    said, *more = [part for part in note.topic.body.split("\n\n") if part.strip()]
    if not any(part.startswith("**Why:**") for part in more):
        return now
    kept = [part for part in topic.body.split("\n\n") if part.strip() and not part.startswith("**Why:**")]
    body = "\n\n".join([said, *more, *(part for part in kept if part.strip() != old)])
    named = note.topic.name if topic.name == title_of(old) else None
    return now.with_changes(name=named, description=note.topic.description, body=body)


def _write_new(talk: Talk, note: Note, root: str) -> Step:
    wrote = next(iter(talk.results("Write")), None)
    if wrote is None:
        path = f"{root}/{_free_name(talk, note)}"
        return talk.act("I write it down.", "Write", {"file_path": path, "content": note.topic.text})
    name = str(wrote.input.get("file_path", ""))[len(root) + 1 :]
    if is_unwritten(wrote):
        return Answer(talk.word("refused", why=first_line(wrote.text)))
    return Answer(talk.word("saved", file=name, text=note.statement))


def _free_name(talk: Talk, note: Note) -> str:
    """The name of the new file; if the language is not English, made of the most telling words."""
    taken = {pointer.file for pointer in talk.place.index}
    taken |= {name for done in talk.results("Grep") for name in _texts(talk, done)}
    name = note.file
    if talk.tongue in ("de", "es"):
        terms = [term for term in read_question(note.statement).terms if not _VALUE.fullmatch(term)]
        name = file_name(note.type, " ".join(terms[:5])) if terms else name
    stem, number = name.removesuffix(".md"), 2
    while name in taken:
        name, number = f"{stem}_{number}.md", number + 1
    return name


def _append_to_log(talk: Talk, statement: str, today: date) -> Step:
    path = talk.place.log.replace("YYYY-MM-DD", today.isoformat())
    path = path.replace("YYYY", f"{today:%Y}").replace("MM", f"{today:%m}")
    wrote = talk.result("Write", file_path=path) or talk.result("Edit", file_path=path)
    if wrote is not None:
        if is_unwritten(wrote):
            return Answer(talk.word("refused", why=first_line(wrote.text)))
        return Answer(talk.word("logged", file=PurePath(path).name, text=statement))
    if not talk.can("Write", "Edit", "Read"):
        return Answer(talk.word("refused", why="there is no tool to write with here."))
    read = talk.result("Read", file_path=path)
    if read is None:
        return talk.act("Let me open the daily log.", "Read", {"file_path": path})
    last = next((line.text for line in reversed(read.lines()) if line.text.strip()), "")
    line = f"- {statement}"
    if not last:
        return talk.act("I write it down.", "Write", {"file_path": path, "content": line + "\n"})
    change = {"file_path": path, "old_string": last, "new_string": f"{last}\n{line}"}
    return talk.act("I write it down.", "Edit", change)


def first_line(text: str) -> str:
    """The first line that says something, bounded."""
    return next((line.strip()[:_TEXT] for line in text.splitlines() if line.strip()), "")
