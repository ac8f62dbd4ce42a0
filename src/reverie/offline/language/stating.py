"""What kind of memory a sentence states outright; nothing if that is not clear.

Silence is better than junk: a sentence counts only by an unmistakable formula, in the user's own name, with a subject
of its own. Hints are for a model that thinks.
"""

from __future__ import annotations

import re

from reverie.memory.taxonomy import MemoryType
from reverie.offline.language.marks import Marked
from reverie.offline.language.systems import ADDRESS, CODE_HOST, IN_REPOSITORY, ORDINARY, SYSTEM
from reverie.offline.language.words import VERB
from reverie.text.words import content_terms

_SELF = re.compile(r"^(?:\W|and |but |so |btw,? )*(?:i\b|i'm|im\b|let'?s|see you|ich\b|yo\b|我|私)", re.IGNORECASE)
_POINTS = re.compile(rf"(?:[:=]|->|→)\s*(?:the |our )?(?:{SYSTEM.pattern}|https?://|#[a-z])", re.IGNORECASE)
"""A name, a colon, and the place."""
_TASK = re.compile(
    rf"(?:[,;–—]|\bso) (?:(?:so|and|please|then|just) )*(?:please\b|hurry|go ahead|cancel|adapt|{VERB})"
    r"|[，,](?:先|帮|请|麻烦|看|把)",
    re.IGNORECASE,
)
"""A task about it: then it was only said for the task."""
_LEAST = 2  # content words
_GROUNDED = 6  # content words of a message that says what, when or why, and not only what was chosen


def kind_of(one: Marked, *, is_led: bool = False) -> MemoryType | None:
    """The kind of memory a sentence is; None for everything that is not said outright. `is_led`: a sentence before it
    explains “like that”.
    """
    if one.message.is_void or not one.is_plain or one.asks_to_forget:
        return None
    if one.leans or len(content_terms(one.text)) < _LEAST:
        return MemoryType.FEEDBACK if is_led and one.has("standing") and not one.is_ahead else None
    is_told = one.has("remember") or not one.has("requests")
    is_fact = is_told and (one.has("remember") or not _TASK.search(one.text))
    is_news = is_fact and not _SELF.match(one.text) and len(content_terms(one.message.said)) >= _GROUNDED
    if one.has("person") and is_fact and not one.is_ahead:
        return MemoryType.USER
    if one.has("decided") and is_news:
        return MemoryType.PROJECT
    if is_fact and _is_place(one):
        return MemoryType.REFERENCE
    if (one.has("standing") and (is_told or _holds_by_itself(one))) or (
        one.has("orders") and is_told and not one.is_after_request
    ):
        return None if one.is_ahead else MemoryType.FEEDBACK
    if IN_REPOSITORY.search(one.text):
        return None  # facts about code are read in the code
    if one.has("remember"):
        return MemoryType.PROJECT if one.is_ahead else MemoryType.FEEDBACK
    return MemoryType.PROJECT if is_news and one.is_ahead and one.has("event") else None


def _holds_by_itself(one: Marked) -> bool:
    """The “from now on” of an order is at its beginning or end: inside, it is part of a text to write."""
    found = one.message.words.standing.search(one.text)
    before, after = (one.text[: found.start()], one.text[found.end() :]) if found else ("", "")
    return not before.strip() or before.rstrip().endswith((",", ";")) or not after.strip() or after[0] in ",;.!"


def moves_a_day(one: Marked) -> bool:
    """It says on which day something is now: not a memory by itself, but it corrects one with the old day."""
    is_told = one.is_plain and not one.message.is_void and not one.has("requests") and not one.asks_to_forget
    return is_told and one.has("changed") and one.is_ahead


def _is_place(one: Marked) -> bool:
    """It says that something is kept in a system outside the code: a product, an address, a channel."""
    located = one.message.words.located.search(one.text)
    if located is None and not one.has("remember") and not _POINTS.search(one.text):
        return False
    is_ordered = one.message.tongue not in ("zh", "ja")  # in these languages the place can come first
    told = one.text[located.end() :] if located is not None and is_ordered else one.text
    if any(not CODE_HOST.search(found) for found in ADDRESS.findall(told)):
        return True
    return any(name.lower() not in ORDINARY or name[0].isupper() for name in SYSTEM.findall(told))
