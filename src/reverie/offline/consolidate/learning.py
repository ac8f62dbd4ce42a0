"""Puts a lesson where it belongs: into the statement it changes, the file it is about, or a file of its own.

What memory says already is not said again, so a second dream over the same words changes nothing. A file that is newer
than a lesson knows better and is not changed by it. What a person said stays in their own words, with its day.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from reverie.memory.taxonomy import TEAM, MemoryType, file_name
from reverie.memory.topic_file import TopicFile
from reverie.offline.consolidate.changing import is_for_later, swaps, takes_the_place
from reverie.offline.consolidate.desk import Desk
from reverie.offline.consolidate.keeping import facts_missing, identifiers
from reverie.offline.consolidate.lessons import Kind, Lesson, Source
from reverie.offline.consolidate.statements import body_statements, replaced, with_lines
from reverie.offline.consolidate.swapping import Swap, applied, besides, is_named, is_sound, names_it
from reverie.text.cutting import cut_at, shorten
from reverie.text.sameness import REWORDED, contradicts, overlap, says
from reverie.text.sentences import Statement, end_sentence
from reverie.text.values import hard_facts, subject_of, values_of
from reverie.text.words import content_terms

_WORDS_OF: Final = "In the user's words"
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
_ARTICLE = re.compile(r"^(?:the|a|an|our|der|die|das|el|la|los|las)\s+", re.IGNORECASE)
_LOOSE_END = re.compile(
    r"(?:\s(?:a|an|the|of|to|in|on|at|by|for|with|its|their|our|and|or|from|below|above|over|than|as|is|are))+$",
    re.IGNORECASE,
)


def learn(desk: Desk, lesson: Lesson) -> None:
    """Makes one lesson part of the memory, if it is new."""
    if _is_known(desk, lesson.text):
        return
    is_later = is_for_later(lesson.text, lesson.day)
    if not is_later and _changes(desk, lesson):
        return
    if lesson.kind is Kind.CHANGE:
        return  # of something that memory does not speak of
    name = (_will_change(desk, lesson) if is_later else None) or _belongs_to(desk, lesson)
    if name is None:
        _new_file(desk, lesson)
    else:
        text = desk.texts[name]
        desk.write(name, with_lines(text, [end_sentence(lesson.text)]), f"added what {_told(lesson)}")


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


@dataclass(frozen=True, slots=True)
class _Hit:
    """A statement that a lesson changes. Without `swaps` the lesson takes its place, or stands beside it."""

    file: str
    statement: Statement
    swaps: tuple[Swap, ...]
    is_first: bool
    is_about: bool
    """They speak of the same thing, and do not only share the value that gives way."""
    is_beside: bool = False
    """The statement says more than what gives way: it stays as it is."""


def _changes(desk: Desk, lesson: Lesson) -> bool:
    """Carries out what a lesson changes in older files; whether it changed anything."""
    hits = _hits(desk, lesson)
    about = [hit for hit in hits if hit.is_about]
    # A name that was given up may stand in many places: without a word in common only what heads a file is about it.
    chosen = about or [hit for hit in hits if hit.is_first] or hits[:1]
    for name in sorted({hit.file for hit in chosen}):
        _put_right(desk, name, [hit for hit in chosen if hit.file == name], lesson)
    return bool(chosen)


def _will_change(desk: Desk, lesson: Lesson) -> str | None:
    """The one file with a statement that a lesson changes on a later day: it is told there, beside what holds now."""
    names = {hit.file for hit in _hits(desk, lesson) if hit.is_about and not hit.file.startswith(f"{TEAM}/")}
    return names.pop() if len(names) == 1 else None


def _hits(desk: Desk, lesson: Lesson) -> list[_Hit]:
    kinds = _kinds(desk)
    found: list[_Hit] = []
    for name in sorted(desk.texts):
        day = desk.days.get(name)
        if not desk.may_change(name) or name not in desk.base or (day is not None and day > lesson.day):
            continue
        text = desk.texts[name]
        topic = TopicFile.parse(text)
        about = content_terms(f"{topic.name} {topic.description}")
        for number, one in enumerate(body_statements(text)):
            if one.label or one.text.startswith(_WORDS_OF) or lesson.text.rstrip(".!") in one.text:
                continue
            changes = swaps(one.text, lesson.text, about, lambda kind: kinds[kind] == 1)
            is_changed = bool(changes) and is_sound(one.text, lesson.text, changes)
            is_whole = not is_changed and names_it(lesson.text, one.text, changes)
            is_rival = not changes and lesson.kind is not Kind.NOTE and _gives_way(one.text, lesson.text)
            is_close = bool(subject_of(one.text) & subject_of(lesson.text))
            is_doubtful = bool(changes) and not is_changed and (is_close or is_named(lesson.text, changes))
            if is_changed or is_whole or is_rival or is_doubtful:
                is_about = is_whole or is_rival or is_close
                is_beside = not is_changed and (not (is_whole or is_rival) or _says_more(text, one, changes, lesson))
                found.append(_Hit(name, one, tuple(changes) if is_changed else (), number == 0, is_about, is_beside))
    return found


def _says_more(text: str, one: Statement, changes: Sequence[Swap], lesson: Lesson) -> bool:
    """Whether a statement holds facts that would be lost with it and that the lesson does not speak of."""
    rest = f"{text[: one.start]} {text[one.end :]} {lesson.text}"
    if one.text.count("(") != one.text.count(")"):
        return True  # not the whole of it
    if identifiers(one.text) & facts_missing(one.text, rest) and not identifiers(lesson.text):
        return not any(one.old.lower() in identifiers(one.old) for one in changes)
    return bool(changes) and any(facts_missing(part, rest) for part in besides(one.text, changes))


def _gives_way(statement: str, said: str) -> bool:
    return contradicts(said, statement) or takes_the_place(said, statement)


def _put_right(desk: Desk, name: str, hits: list[_Hit], lesson: Lesson) -> None:
    text = desk.texts[name]
    description = TopicFile.parse(text).description
    changes = [swap for hit in hits for swap in hit.swaps]
    for hit in reversed(hits):
        if hit.is_beside:
            continue
        new = applied(hit.statement.text, hit.swaps) if hit.swaps else _as_said(lesson)
        text = replaced(text, hit.statement, new)
        desk.gave_way.append(hit.statement.text)
    text = with_lines(text, [_in_their_words(lesson)]) if changes or all(hit.is_beside for hit in hits) else text
    is_replaced = any(
        hit.is_first and not hit.swaps and not hit.is_beside and _heads(description, hit.statement) for hit in hits
    )
    if (changed := _described(lesson) if is_replaced else applied(description, changes)) != description:
        text = TopicFile.parse(text).with_changes(description=changed).text
    was = " ".join(f"“{hit.statement.text}”" for hit in hits)
    desk.write(name, text, f"put right by what {_told(lesson)}; it said {was}")


def _heads(description: str, one: Statement) -> bool:
    """Whether a description says what a statement says, and so falls with it."""
    return overlap(content_terms(description), one.terms) >= REWORDED


def _kinds(desk: Desk) -> Counter[str]:
    """In how many statements of the memory each kind of value stands."""
    return Counter(
        kind for text in desk.texts.values() for one in body_statements(text) for kind in values_of(one.text).kinds
    )


def _in_their_words(lesson: Lesson) -> str:
    if lesson.source is Source.TYPED:
        return f"{_WORDS_OF} on {lesson.day.isoformat()}: “{lesson.text.strip()}”"
    return end_sentence(lesson.text)


def _as_said(lesson: Lesson) -> str:
    """What was said, to stand where something else stood; a change with its day."""
    if lesson.source is not Source.TYPED or lesson.kind is not Kind.CHANGE:
        return end_sentence(lesson.text)
    return f"{lesson.text.strip().rstrip('.!')} (said on {lesson.day.isoformat()})."


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
    body = end_sentence(lesson.text[: because.start()] if because else lesson.text)
    if because:
        body = f"{body}\n\n**Why:** {end_sentence(because['why'])}"
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
    begun = cut_at(" ".join(words), len(" ".join(words[:_TITLE_WORDS])))
    title = _LOOSE_END.sub("", begun).strip(' .,;:!“”"')
    return title[:1].upper() + title[1:]


def _described(lesson: Lesson) -> str:
    return shorten(lesson.text.rstrip(" ."), _DESCRIPTION)
