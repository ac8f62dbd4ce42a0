"""How much a sentence speaks for each kind of memory: points for its marks, one function a kind, one threshold each.

The points are general: a standing formula, a correction, a day that binds, a place outside. No word of a trade or of a
project is in here. Precision before recall: a sentence that stays below its threshold is not kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from reverie.memory.taxonomy import MemoryType
from reverie.models.embedded.extract.marks import Marked
from reverie.models.embedded.extract.systems import ADDRESS, CODE_HOST, IN_REPOSITORY, ORDINARY, SYSTEM, TITLE

_FIRST_WORD: Final = re.compile(r"^(?:no,? |and |please |pls |so |but |ok,? |yes,? )*(?:always|never)\b", re.IGNORECASE)
_AT_LARGE: Final = re.compile(
    r"\b(?:don'?t|do not|never|no more|avoid) \w+(?:ing)? (?!the\b|this\b|that\b|it\b|them\b|these\b|those\b"
    r"|an?\b|any of|yet\b|now\b|my\b"
    r"|your\b|to\b|me\b|if\b|about\b|for\b|in\b|on\b|at\b)[a-z]{3,}",
    re.IGNORECASE,
)
"""Something is not wanted at large, not one thing at hand."""

_WE_ONLY: Final = re.compile(r"\bwe (?:only|always|never|exclusively|strictly) [a-z]+(?!ed\b)\b", re.IGNORECASE)

ENOUGH: Final[Mapping[MemoryType, float]] = MappingProxyType(
    {MemoryType.FEEDBACK: 3.0, MemoryType.USER: 2.5, MemoryType.PROJECT: 3.0, MemoryType.REFERENCE: 3.5}
)
"""The points from which a sentence is a memory of that kind."""


def points(one: Marked) -> dict[MemoryType, float]:
    """The points of a sentence for each kind; nothing for what is not meant."""
    if one.is_filler or one.has("quoted") or one.has("mocked") or one.has("supposed"):
        return {}
    return {kind: judge(one) for kind, judge in _JUDGES.items()}


def _feedback(one: Marked) -> float:
    shape = one.message.shape
    standing, habit = one.has("standing"), one.has("habit")
    stops = one.has("forbids")
    if one.is_asked and not (standing and stops):
        return 0.0
    near = [one, *one.message.after(one)]
    found = 3.0 * standing + (1.5 + 0.5 * shape.is_reply) * habit + 1.0 * stops
    found += 1.0 * bool(_FIRST_WORD.search(one.bare)) + 1.0 * bool(_AT_LARGE.search(one.bare))
    found += 1.0 * bool(_WE_ONLY.search(one.bare))
    found += 3.0 * (one.has("praises") and shape.is_reply) + 1.0 * (one.has("remember") and one.has("demands"))
    found += 1.0 * one.has("prefers") + 1.5 * one.has("permits") + 1.5 * one.has("our_way") + 2.5 * one.has("keep_on")
    found += 2.0 * one.has("remember")
    if not found or one.has("complains") or one.has("written"):
        return 0.0
    found += 0.5 * one.has("tells") + 1.0 * any(each.has("reason") or each.has("mishap") for each in near)
    found += 1.0 * (shape.is_displeased and shape.is_reply) + 1.0 * (shape.is_pleased and one.has("approves"))
    found += 1.0 * ("?" in one.message.said.answer[-200:] and habit)
    if one.has("once"):
        found -= 4.0
    if shape.is_task and not standing and not shape.is_displeased:
        found -= 2.5
    if one.is_request and not standing and not one.has("keep_on"):
        found -= 1.5
    if one.binds:
        found -= 2.0
    return found


def _user(one: Marked) -> float:
    if one.is_asked:
        return 0.0
    goal = one.has("goal")
    matches = len(list(one.message.words.person.finditer(one.bare)))
    if not matches and not goal:
        return 0.0
    return 2.5 * bool(matches) + 0.5 * (matches > 1) + 2.5 * goal + 0.5 * one.has("tells") - 3.0 * one.has("not_person")


def _project(one: Marked) -> float:
    if one.is_asked:
        return 0.0
    words, told, today = one.message.words, one.told, one.message.said.day
    if not told:
        return 0.0
    days = [day for day in one.days if not (day.moment.day == today and day.moment.grain == "day")]
    found = 1.5 * bool(days) + 0.5 * one.is_ahead
    found += 1.0 * bool(words.event.search(told)) + 1.0 * one.binds
    found += 2.0 * bool(words.on_hold.search(told)) + 2.5 * bool(words.decided.search(told))
    found += 2.5 * bool(words.owns.search(told)) + (1.5 + bool(days)) * bool(words.trouble.search(told))
    if not found:
        return 0.0
    found += 0.5 * one.has("tells") + 1.0 * one.has("remember")
    found += 0.5 * any(each.has("reason") for each in [one, *one.message.after(one)])
    if one.is_request and not one.is_ahead:
        found -= 2.0
    if one.has("once") and not one.has("on_hold"):
        found -= 2.0
    return found


def _reference(one: Marked) -> float:
    if one.is_asked:
        return 0.0
    text = one.told or ""
    systems = [name for name in SYSTEM.findall(text) if name.lower() not in ORDINARY or name[0].isupper()]
    addresses = [found for found in ADDRESS.findall(one.text) if not CODE_HOST.search(found)]
    place = one.has("place")
    if not systems and not addresses and not (place and TITLE.search(one.text)):
        return 0.0
    if not systems and not addresses and IN_REPOSITORY.search(one.text):
        return 0.0
    found = 2.0 * bool(systems) + 2.0 * bool(addresses) + 1.0 * place + 0.5 * bool(TITLE.search(one.text))
    found += 1.5 * one.has("located") + 0.5 * one.has("tells") + 1.0 * one.has("remember") + 0.5 * one.has("changed")
    if one.is_request:
        found -= 2.0
    if one.has("once"):
        found -= 2.0
    return found


_JUDGES: Final[Mapping[MemoryType, Callable[[Marked], float]]] = MappingProxyType(
    {
        MemoryType.REFERENCE: _reference,
        MemoryType.USER: _user,
        MemoryType.PROJECT: _project,
        MemoryType.FEEDBACK: _feedback,
    }
)
