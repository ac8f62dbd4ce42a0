"""Adds a lesson where it belongs: to the statement it changes, the file it is about, or a file of its own.

What memory already says is not added again, so a second dream over the same words changes nothing. A lesson never
changes a file that is newer. What the user said stays in their own words, with its day.
"""

from __future__ import annotations

import re
from typing import Final

from reverie.memory.note import title_of
from reverie.memory.taxonomy import MemoryType, file_name
from reverie.memory.topic_file import TopicFile
from reverie.offline.consolidate.desk import Desk
from reverie.offline.consolidate.lessons import Kind, Lesson, Source
from reverie.offline.consolidate.losses import find_missing_facts
from reverie.offline.consolidate.statements import body_statements, replace_statement
from reverie.text.cutting import shorten
from reverie.text.sameness import REWORDED, contradicts, overlap, says
from reverie.text.sentences import Statement, end_sentence
from reverie.text.values import hard_facts
from reverie.text.words import content_terms

_DESCRIPTION: Final = 140
_WHERE = re.compile(
    r"https?://|\b[\w-]+(?:\.[\w-]+)+/\S|[\w.+-]+@[\w-]+\.\w+|\bcontact\b|#[a-z][\w-]{2,}", re.IGNORECASE
)
_PAUSE = re.compile(r"[,;(–—]|:(?!\d)")
_LATER = re.compile(
    r"\b(?:from|as of|starting|effective|ab|a partir de|desde)\b.{0,60}?(?P<day>\d{4}-\d\d-\d\d)", re.IGNORECASE
)


def learn(desk: Desk, lesson: Lesson) -> None:
    """Makes one lesson part of the memory, if it is new."""
    if _is_known(desk, lesson.text):
        return
    later = _LATER.search(lesson.text)
    is_later = later is not None and later["day"] > lesson.day.isoformat()  # what memory says is still true
    if not is_later and _put_right(desk, lesson):
        return
    if lesson.kind is Kind.CHANGE:
        return  # about something that memory does not mention
    _new_file(desk, lesson)


def _is_known(desk: Desk, text: str) -> bool:
    """Whether one statement says it, or one file holds all its words and numbers."""
    terms = content_terms(text)
    for file_text in desk.texts.values():
        whole = content_terms(file_text)
        if len(terms & whole) < 0.8 * len(terms):
            continue
        if text.rstrip(".!") in file_text or any(says(text, one.text) for one in body_statements(file_text)):
            return True
        lower = file_text.lower()
        if terms <= whole and all(fact.lower() in lower for fact in hard_facts(text)) and len(terms) >= 6:
            return True
    return False


def _put_right(desk: Desk, lesson: Lesson) -> bool:
    """Replaces the one older statement that a lesson contradicts; returns whether there is one.

    A statement that says more than what is replaced stays behind the lesson, with the day until which it was true.
    """
    hits = _contradicted(desk, lesson)
    if len(hits) != 1:
        return bool(hits)  # it is not clear which one: nothing is changed
    ((name, one),) = hits
    text = desk.texts[name]
    rest = f"{text[: one.start]} {text[one.end :]} {lesson.text}"
    said, description = end_sentence(lesson.text), TopicFile.parse(text).description
    is_whole = len(find_missing_facts(one.text, rest)) <= 1
    text = replace_statement(text, one, said if is_whole else f"{said} Until {lesson.day.isoformat()}: {one.text}")
    desk.gave_way.append(one.text)
    if overlap(content_terms(description), one.terms) >= REWORDED:
        text = TopicFile.parse(text).with_changes(description=_described(lesson)).text
    desk.write(name, text, f"corrected by what {_told(lesson)}; it said “{one.text}”")
    return True


def _contradicted(desk: Desk, lesson: Lesson) -> list[tuple[str, Statement]]:
    """The statements of files that are not newer and that a lesson contradicts."""
    found: list[tuple[str, Statement]] = []
    for name in sorted(desk.texts):
        day = desk.days.get(name)
        if desk.may_change(name) and name in desk.base and (day is None or day <= lesson.day):
            own = body_statements(desk.texts[name])
            found += [(name, one) for one in own if not one.label and contradicts(lesson.text, one.text)]
    return found


def _told(lesson: Lesson) -> str:
    when = "" if lesson.source is Source.INDEX else f" on {lesson.day.isoformat()}"
    return f"{lesson.source.value}{when}"


def _new_file(desk: Desk, lesson: Lesson) -> None:
    if lesson.kind is Kind.RULE:
        kind = MemoryType.FEEDBACK
    else:
        kind = MemoryType.REFERENCE if _WHERE.search(lesson.text) else MemoryType.PROJECT
    title = title_of(_PAUSE.split(lesson.text, maxsplit=1)[0])
    name = file_name(kind, title)
    number = 2
    while name in desk.texts or name in desk.base:
        name = file_name(kind, f"{title} {number}")
        number += 1
    made = TopicFile.new(name=title, description=_described(lesson), type=kind, body=f"{end_sentence(lesson.text)}\n")
    desk.write(name, made.text, f"new: what {_told(lesson)} was not in any memory")


def _described(lesson: Lesson) -> str:
    return shorten(lesson.text.rstrip(" ."), _DESCRIPTION)
