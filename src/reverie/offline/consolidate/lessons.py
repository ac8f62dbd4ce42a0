"""What to keep of a message of the user: what they state outright, and that something has changed.

Questions, tasks, suppositions, jokes and secrets are not kept. This module judges words alone; whether memory already
knows a lesson is checked elsewhere.
"""

from __future__ import annotations

import re
from datetime import date
from enum import StrEnum

from reverie.memory.secrets.scan import find_secrets
from reverie.memory.taxonomy import MemoryType
from reverie.offline.consolidate.gather import TypedText
from reverie.offline.consolidate.relative_dates import write_out_dates
from reverie.offline.language.marks import Marked, MarkedMessage
from reverie.offline.language.prose import without_lead
from reverie.offline.language.stating import kind_of
from reverie.quick import dataclass
from reverie.text.words import content_terms


class Kind(StrEnum):
    """What a lesson is."""

    RULE = "rule"
    """How to work."""
    NOTE = "note"
    """A fact that the user wants to keep."""
    CHANGE = "change"
    """Something has changed: counts if memory has the old state."""


class Source(StrEnum):
    """Where a lesson comes from, as the reason names it."""

    TYPED = "the user said"
    LOG = "the log noted"
    INDEX = "only the index said"


@dataclass(frozen=True, slots=True)
class Lesson:
    """One thing learned, in the words it was said in, with its dates written out."""

    text: str
    kind: Kind
    day: date
    source: Source


_INJECTED = re.compile(r"<(?P<tag>[a-z][\w-]*+)[^<>]*+>.*?(?:</(?P=tag)>|\Z)", re.DOTALL)
_FIRST_PERSON = re.compile(r"^I (?P<really>generally |usually |really |much )?(?P<verb>prefer|like|hate|want)\b")
_SECRET = re.compile(
    r"\b(?:password|passwort|passphrase|passwd|pwd|contraseña|secret|api[ _-]?key|private key|token|credentials?"
    r"|pin)\b.{0,40}?(?:\bis\b|:|=|\bist\b|\bes\b)\s*(?!in\b|stored|kept|at\b|on\b|with\b|not\b|no\b|required|managed"
    r"|rotated|under|the\b|a\b|an\b|from\b|changed|gone|wrong|im\b|bei\b|en\b)\S|(?:密码|暗証番号"
    r"|パスワード)[是はが:：]",
    re.IGNORECASE,
)


def find_lessons(said: TypedText) -> list[Lesson]:
    """Finds the lessons in a message that the user typed."""
    message = MarkedMessage(_INJECTED.sub("\n", said.text), said.day)
    if message.is_void or message.forgets:
        return []
    found = [(one, _kind(one)) for one in message.marked]
    return [
        Lesson(write_out_dates(strip_lead(one.text), said.day), kind, said.day, Source.TYPED)
        for one, kind in found
        if kind is not None and not holds_secret(one.text)
    ]


def _kind(one: Marked) -> Kind | None:
    match kind_of(one):
        case MemoryType.FEEDBACK:
            return Kind.RULE
        case None:
            is_news = one.has("changed") and one.is_plain and not one.leans and len(content_terms(one.text)) > 1
            return Kind.CHANGE if is_news else None
        case _:
            return Kind.NOTE


def strip_lead(text: str) -> str:
    """Removes the words that introduce a sentence."""
    said = without_lead(text)
    return _FIRST_PERSON.sub(r"The user \g<really>\g<verb>s", said[:1].upper() + said[1:]) or text.strip()


def holds_secret(text: str) -> bool:
    """Whether a text contains a password, key or token, or says that it does."""
    return bool(_SECRET.search(text) or find_secrets(text))
