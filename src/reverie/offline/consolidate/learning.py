"""Puts a lesson where it belongs: into the statement it changes, the file it is about, or a file of its own.

What memory says already is not said again, so a second dream over the same words changes nothing. A file that is newer
than a lesson knows better and is not changed by it. What a person said stays in their own words, with its day.
"""

from __future__ import annotations

import re
from typing import Final

from reverie.memory.taxonomy import TEAM, MemoryType, file_name
from reverie.memory.topic_file import TopicFile
from reverie.offline.consolidate.desk import Desk
from reverie.offline.consolidate.keeping import facts_missing
from reverie.offline.consolidate.lessons import Kind, Lesson, Source
from reverie.offline.consolidate.statements import body_statements, replaced, with_lines
from reverie.text.cutting import ended, shortened
from reverie.text.sameness import REWORDED, contradicts, overlap, says
from reverie.text.sentences import Statement, finished
from reverie.text.values import hard_facts, values_of
from reverie.text.words import content_terms

_BELONGS: Final = 0.4
"""The weight of a lesson's words that a file must share to be the file it is about."""
_TITLE_WORDS: Final = 7
_DESCRIPTION: Final = 140
_WHERE = re.compile(
    r"https?://|\b[\w-]+(?:\.[\w-]+)+/\S|[\w.+-]+@[\w-]+\.\w+|\bcontact\b|#[a-z][\w-]{2,}", re.IGNORECASE
)
_BECAUSE = re.compile(r"[,;]?\s+(?:because(?: of)?|weil|porque)\s+(?P<why>.+)$", re.IGNORECASE)
_PAUSE = re.compile(r"[,;(–—]|:(?!\d)|\.\s| because | so that | since ")
_VERB = re.compile(
    r"\s(?:is|are|was|were|has|have|had|must|may|can|cannot|should|shall|will|would|goes?|runs?|needs?|uses?|takes?"
    r"|moves?"
    r"|moved|comes?|gets?|wants?|prefers?|likes?|ist|sind|hat|muss|darf|wird|es|son|tiene|debe)\s"
)
_ORDER = re.compile(
    r"(?:for|when|in|on|at|if|before|after|never|always|don'?t|do|use|stop|no|avoid|bei|für|nie|immer|para)\b", re.I
)
_LATER = re.compile(
    r"\b(?:from|as of|starting|effective|ab|a partir de|desde)\b.{0,60}?(?P<day>\d{4}-\d\d-\d\d)", re.IGNORECASE
)
_ARTICLE = re.compile(r"^(?:the|a|an|our|der|die|das|el|la|los|las)\s+", re.IGNORECASE)
_LOOSE_END = re.compile(
    r"(?:\s(?:a|an|the|of|to|in|on|at|by|for|with|its|their|our|and|or|from|below|above|over|than|as|is|are))+$",
    re.IGNORECASE,
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
        return  # of something that memory does not speak of
    name = _belongs_to(desk, lesson)
    if name is None:
        _new_file(desk, lesson)
    else:
        text = desk.texts[name]
        desk.write(name, with_lines(text, [finished(lesson.text)]), f"added what {_told(lesson)}")


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
    """Puts a lesson in the place of the one older statement it contradicts; whether there is one.

    A statement that says more than what gives way stays behind it, with the day until which it held.
    """
    hits = _contradicted(desk, lesson)
    if len(hits) != 1:
        return bool(hits)  # which one is meant is not plain: nothing is changed
    ((name, one),) = hits
    text = desk.texts[name]
    rest = f"{text[: one.start]} {text[one.end :]} {lesson.text}"
    said, description = finished(lesson.text), TopicFile.parse(text).description
    is_whole = len(facts_missing(one.text, rest)) <= 1
    text = replaced(text, one, said if is_whole else f"{said} Until {lesson.day.isoformat()}: {one.text}")
    desk.gave_way.append(one.text)
    if overlap(content_terms(description), one.terms) >= REWORDED:
        text = TopicFile.parse(text).updated(description=_described(lesson)).text
    desk.write(name, text, f"put right by what {_told(lesson)}; it said “{one.text}”")
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


def _belongs_to(desk: Desk, lesson: Lesson) -> str | None:
    """The file a lesson is about: of a fitting kind, with enough of its rarer words."""
    kinds = {MemoryType.FEEDBACK} if lesson.kind is Kind.RULE else {MemoryType.PROJECT, MemoryType.REFERENCE, None}
    terms = frozenset(term for term in content_terms(lesson.text) if not any(char.isdigit() for char in term))
    held = {name: content_terms(text) for name, text in desk.texts.items()}
    spread = {term: sum(term in own for own in held.values()) for term in terms}
    weights = {term: 1.0 / max(1, spread[term]) for term in terms}
    named = values_of(lesson.text).names
    best: tuple[float, str] | None = None
    for name in sorted(desk.texts):
        topic = TopicFile.parse(desk.texts[name])
        if not desk.may_change(name) or topic.type not in kinds or topic.problems or name.startswith(f"{TEAM}/"):
            continue
        shared = terms & held[name]
        about = terms & content_terms(f"{topic.name} {topic.description}")
        known = sum(weights[term] for term in terms if spread[term])
        weight = sum(weights[term] for term in shared) / known if known else 0.0
        is_rule = lesson.kind is Kind.RULE
        close = len(shared) >= 0.3 * len(terms) if is_rule else len(about) >= 2 or bool(about & named)
        fits = about and weight >= _BELONGS and close
        if fits and (best is None or weight > best[0]):
            best = (weight, name)
    return best[1] if best else None


def _new_file(desk: Desk, lesson: Lesson) -> None:
    if lesson.kind is Kind.RULE:
        kind = MemoryType.FEEDBACK
    else:
        kind = MemoryType.REFERENCE if _WHERE.search(lesson.text) else MemoryType.PROJECT
    because = _BECAUSE.search(lesson.text)
    body = finished(lesson.text[: because.start()] if because else lesson.text)
    if because:
        body = f"{body}\n\n**Why:** {finished(because['why'])}"
    title = _title(lesson.text, least=1 if kind is MemoryType.REFERENCE else 2)
    name = file_name(kind, title)
    number = 2
    while name in desk.texts or name in desk.base:
        name = file_name(kind, f"{title} {number}")
        number += 1
    made = TopicFile.new(name=title, description=_described(lesson), type=kind, body=f"{body}\n")
    desk.write(name, made.text, f"new: what {_told(lesson)} stood nowhere")


def _title(text: str, least: int) -> str:
    """What a lesson is about: the words before its verb, where they name something; else its first words."""
    first = next((part for part in _PAUSE.split(text) if len(part.split()) >= 2), text)
    subject = _ARTICLE.sub("", _VERB.split(first, maxsplit=1)[0])
    chosen = subject if len(subject.split()) >= least and not _ORDER.match(first) else first
    words = chosen.split()
    begun = ended(" ".join(words), len(" ".join(words[:_TITLE_WORDS])))
    title = _LOOSE_END.sub("", begun).strip(' .,;:!“”"')
    return title[:1].upper() + title[1:]


def _described(lesson: Lesson) -> str:
    return shortened(lesson.text.rstrip(" ."), _DESCRIPTION)
