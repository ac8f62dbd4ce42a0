"""Remembers on request, in the form of the memory directory: a topic file, then its line in the index.

First looks at what memory knows. The text becomes a memory of its own, unless one has exactly this text; the answer
names a memory that may be about the same. Everything goes through Write and Edit, so the write gate judges it as usual.
If memory is a daily log, it appends a line there.
"""

from __future__ import annotations

import posixpath
import re
from datetime import date
from pathlib import PurePath

from reverie.errors import UserError
from reverie.memory.note import Note, Related, find_related, make_note
from reverie.memory.secrets.scan import find_secrets
from reverie.memory.taxonomy import file_name, is_team
from reverie.offline.conversation import Done
from reverie.offline.step import Answer, Step
from reverie.offline.talk.turn import Talk
from reverie.offline.terms import pattern, read_question
from reverie.text.dates.phrases import find_days
from reverie.text.folding import fold_statement
from reverie.text.patterns import late
from reverie.text.sentences import capitalize_first

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
    dated = capitalize_first(_dated(text, today, talk) if place.day else text)
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
    said = {fold_statement(line) for line in note.topic.body.splitlines() if line.strip()}
    own = {file: set(map(fold_statement, text.splitlines())) for file, text in texts.items() if not is_team(file)}
    equal = next((file for file, lines in own.items() if said <= lines), None)
    if equal is not None and talk.result("Write") is None:
        return Answer(talk.word("known", file=equal, text=note.statement[:_TEXT]))
    return _write_new(talk, note, root, find_related(note.statement, texts))


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


def _write_new(talk: Talk, note: Note, root: str, near: Related | None) -> Step:
    wrote = next(iter(talk.results("Write")), None)
    if wrote is None:
        path = f"{root}/{_free_name(talk, note)}"
        return talk.act("I write it down.", "Write", {"file_path": path, "content": note.topic.text})
    name = str(wrote.input.get("file_path", ""))[len(root) + 1 :]
    if is_unwritten(wrote):
        return Answer(talk.word("refused", why=first_line(wrote.text)))
    saved = talk.word("saved", file=name, text=note.statement)
    if near is None:
        return Answer(saved)
    return Answer(f"{saved}\n{talk.word('beside', file=near.file, text=near.statement[:_TEXT])}")


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
