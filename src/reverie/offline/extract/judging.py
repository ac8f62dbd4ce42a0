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
from reverie.offline.extract.marks import Marked
from reverie.offline.extract.systems import (
    ADDRESS,
    CODE_HOST,
    IN_REPOSITORY,
    LABELLED,
    NAMED_PLACE,
    ORDINARY,
    POINTS_TO,
    SYSTEM,
    TITLE,
)
from reverie.text.words import content_terms

ENOUGH: Final[Mapping[MemoryType, float]] = MappingProxyType(
    {MemoryType.FEEDBACK: 3.0, MemoryType.USER: 2.5, MemoryType.PROJECT: 3.0, MemoryType.REFERENCE: 3.5}
)
"""The points from which a sentence is a memory of that kind."""

_FIRST_WORD: Final = re.compile(r"^(?:no,? |and |please |pls |so |but |ok,? |yes,? )*(?:always|never)\b", re.IGNORECASE)
_AT_LARGE: Final = re.compile(
    r"\b(?:don'?t|do not|never|no more|avoid) \w+(?:ing)? (?!the\b|this\b|that\b|it\b|them\b|these\b|those\b|an?\b"
    r"|any of|yet\b|now\b|my\b|your\b|to\b|me\b|if\b|about\b|for\b|in\b|on\b|at\b|so\b|too\b|much\b"
    r"|anything\b|inside\b|outside\b|when\b|while\b"
    r"|within\b|before\b|after\b|until\b|with\b|from\b|into\b|again\b)[a-z]{3,}",
    re.IGNORECASE,
)
"""Something is not wanted at large, not one thing at hand."""
_AT_HAND: Final = re.compile(
    r"\b(?:don'?t|do not|never|stop|no more) \w+(?: \w+)? (?:it|this|that|them|these|those|yet|anything|here)\b"
    r"|\b(?:don'?t|do not) (?!ask\b)\w+(?: yet)?[,.!]?\s*$",
    re.IGNORECASE,
)
"""One thing at hand is not wanted."""
_SPECIFIED: Final = re.compile(
    r"\b(?:i|we) (?:want|need|would like|'d like) (?:the|this|that|it|them|a|an) [\w -]*?\bto\b", re.IGNORECASE
)
"""What something at hand shall do."""
_WE_ONLY: Final = re.compile(r"\bwe (?:only|always|never|exclusively|strictly) [a-z]+(?!ed\b)\b", re.IGNORECASE)
_UNIVERSAL: Final = re.compile(
    r"\b(?:every|each|all|any|anything|everything|everyone|jede[rsnm]?|alle[nrms]?|cada|tod[oa]s)\b|每|所有|都|全部|すべて|全て",
    re.IGNORECASE,
)
_THROUGHOUT: Final = re.compile(
    r"\b(?:for|in|on|with) (?:all|every|each|any)(?: of)? (?:my|our|your)\b|\b(?:everything|all (?:changes|code"
    r"|prs|of it)|every [\w-]+) (?:goes|needs|gets|has to|must)\b",
    re.IGNORECASE,
)
"""It holds for all of a kind."""
_DESCRIBES_ALL: Final = re.compile(
    r"(?:^|[.;:] )(?:no,? )?(?:whatever|anything|everything|what(?= (?:goes|leaves)))(?: that| which)? (?!it\b|he\b"
    r"|she\b|they\b)"
    r"(?:we |you )?[a-z]+s? [\w' -]{2,30}?\b(?:is|are|has|gets|stays|goes|comes|carries)\b"
    r"(?! (?:\w+ )?(?:wrong|broken|slow|empty|missing|gone|down|failing|crashing|stuck|off|late|red)\b)"
    r"|^(?!.*\b(?:fail|fails|failing|broken|crash(?:es)?|missing|slow|empty|gone|down)\b).*\b\w+s\b.*, (?:in|on|for"
    r"|with)"
    r" (?:every|all|any|each) (?:[\w-]+ ){1,4}(?:we|you|i) \w+[.!]?$",
    re.IGNORECASE,
)
"""What holds for all of a kind, told as it is: “whatever leaves this tool is metric”."""
_INSTEAD: Final = re.compile(
    r"^(?:and |also )?you (?:keep|always) \w+ing\b.*?[,;:–—-] ?(?:please |just )?(?:(?:use|write|keep|put|stick|give"
    r"|answer|say|ask"
    r"|leave|work|show|stay|wait|stop)\b (?!it\b|this\b|that\b)\w+"
    r"|(?!i\b|it\b|the\b|this\b|that\b|we\b|they\b|and\b|but\b|which\b|so\b|even\b|or\b|you\b|my\b|our\b|a\b|an\b"
    r"|why\b|what\b"
    r"|with\b|in\b|on\b|for\b|\w+(?:ing|ed|ly)\b)[a-z]+ (?:in|on|with|the|an?|your|my|only|to|from|me) )"
    r"|^you (?:keep \w+ing|always \w+)\b.*, [\w' -]{3,40} (?:please|pls)[.!]?$",
    re.IGNORECASE,
)
"""What the agent does too often, and what it shall do."""
_OWN_CLAUSE: Final = re.compile(
    r"[,;:–—] (?:please |so |and |but )?(?:always|never) (?!was\b|is\b|had\b)[a-z]+\b", re.IGNORECASE
)
"""A rule in a clause of its own, behind something else."""
_HISTORY: Final = re.compile(
    r"\b(?:commit|branch|merged?|cherry-pick|rebased?|pull request|diff|revert(?:ed)?|tag|stash)\b|\bPR #?\d+",
    re.IGNORECASE,
)
"""What git knows."""
_CONTRAST: Final = re.compile(
    r"(?:, (?:and )?|\band )not (?!it\b|that\b|this\b|what\b|sure\b|just\b|only\b|yet\b|really\b|so\b|be\b|been\b"
    r"|to\b)\w+"
    r"|\brather than\b|\binstead\b",
    re.IGNORECASE,
)
_STYLE: Final = re.compile(
    r"^(?:please |pls |and |so |ok,? )*(?:use|write|keep|put|format|name|spell|label|sort|round|quote|cite|prefix"
    r"|start|end|answer|reply"
    r"|phrase|mark|wrap|indent|call|leave|show|give|say|list)\b.*\b(?:in|for|on|with|to|of) (?:the |our |my |all "
    r"|every |any |each )?(?!this\b|its\b|as\b|was\b|is\b|us\b)[a-z]+s\b",
    re.IGNORECASE,
)
"""How something is to be written, in things of a kind."""
_EACH: Final = re.compile(
    r"^(?:please |pls |and |so |ok,? |no,? )*(?:keep|write|start|end|label|name|round|format|spell|begin"
    r"|sign) (?:every|each) \w+",
    re.IGNORECASE,
)
"""How each of a kind is to be written."""
_NORM: Final = re.compile(
    r"^(?:no,? |and |but |so |ok,? )*(?:[\w'-]+ ){0,2}[\w-]+s (?:always |only |never )?(?:go|stay|need|get|belong"
    r"|come|land|live) (?!and )",
    re.IGNORECASE,
)
"""What becomes of things of a kind."""
_IN_CASE: Final = re.compile(
    r"(?:^|[,.;:!] ?|\band |\bbut )(?:if|when) an? [\w -]{3,30} (?:is|isn'?t|can'?t|cannot|has|hasn'?t|doesn'?t"
    r"|does not) [^.;:]{3,50}?(?:\b(?:leave|keep|mark|skip|put|write|ask|tell|show|use|say) (?:it|them|me|the|an?)\b"
    r"|\bthe [\w-]+ (?:says|stays|is|gets|reads)\b)",
    re.IGNORECASE,
)
"""What becomes of any such thing in such a case; a rule where it answers something that was not wanted."""
_WISH: Final = re.compile(
    r"\bi(?:'d| would)? (?:strongly |really |much )?prefer (?!the\b|this\b|that\b|it\b|to\b|if\b|you\b|option|\d"
    r"|a\b|an\b|your\b|version)[a-z]+",
    re.I,
)
"""A liking for things of a kind."""
_COMPARED: Final = re.compile(
    r"\brather\b.*\bthan\b|\bprefer\b.*\b(?:over|to|than)\b|\bbetter than\b|\bnot just\b", re.IGNORECASE
)
_BY_THE_WAY: Final = re.compile(
    r", (?:the|our|my|we|they|its?|it's|people|nobody|no one|everyone|everybody|he|she|that's|thats|otherwise"
    r"|(?-i:[A-Z]\w+)) [^,]{6,}$",
    re.I,
)
"""A clause at the end that says why: “…, our wiki renders it”."""
_IDENTIFIER: Final = re.compile(r"\b[a-z]{2,}[A-Z][a-z]\w*|\b\w+_\w+|\w\(\)|\w+\.\w+\(")
"""A name from code: then it is about this code."""
_PRIVATE: Final = re.compile(
    r"^(?:\W|ok |so |and |but )*(?:i\b|i'm|i'll|im\b|let'?s|lets|see you|talk|remind|we can (?:pick|continue)"
    r"|back\b|wir sehen)|\bsee you\b|\btalk (?:to you|later|soon)\b",
    re.IGNORECASE,
)


def points(one: Marked) -> dict[MemoryType, float]:
    """The points of a sentence for each kind; nothing for what is not meant."""
    if one.points is None:
        is_meant = not (one.is_filler or one.has("quoted") or one.has("mocked") or one.has("supposed"))
        one.points = {kind: judge(one) for kind, judge in _JUDGES.items()} if is_meant else {}
    return one.points


def _feedback(one: Marked) -> float:
    shape = one.message.shape
    standing, habit, stops = one.has("standing"), one.has("habit"), one.has("forbids")
    if one.is_asked and not (standing and stops):
        return 0.0
    instead = bool(_INSTEAD.search(one.bare))
    if (one.has("complains") and not instead) or one.has("written") or one.has("solved"):
        return 0.0
    if any(each.leans and each.has("written") for each in one.message.after(one, 2)):
        return 0.0  # “…, always. That's in the file you read”
    led_in = one.message.before(one)
    if led_in is not None and led_in.has("written") and len(content_terms(one.bare)) <= 1:
        return 0.0  # “That's in the file you read. Always.”
    found = 3.0 * standing + (1.5 + 0.5 * shape.is_reply) * habit + 1.0 * stops
    own_clause = habit and one.has("tells") and bool(_OWN_CLAUSE.search(one.bare))
    found += 3.0 * instead + 2.0 * (shape.is_reply and bool(_DESCRIBES_ALL.search(one.bare)))
    found += 1.0 * (own_clause or bool(_FIRST_WORD.search(one.bare))) + 1.0 * bool(_AT_LARGE.search(one.bare))
    found += 1.0 * bool(_WE_ONLY.search(one.bare)) + 1.5 * one.has("our_way")
    justified = _grounds(one)
    asked_for = (
        stops
        or one.has("manner")
        or one.has("our_way")
        or bool(_THROUGHOUT.search(one.bare))
        or bool(_CONTRAST.search(one.bare))
    )
    touches = asked_for and any(each.has("people") for each in [one, *one.message.after(one, 2)])
    found += (2.5 if one.has("manner") else 2.0) * touches + 0.5 * one.has("manner")
    found += 2.0 * bool(_WISH.search(one.bare))
    found += 1.0 * (one.has("prefers") and bool(_COMPARED.search(one.bare))) + 1.0 * (
        shape.is_reply and bool(_NORM.search(one.bare))
    )
    found += 2.0 * (shape.is_displeased and justified > 0 and bool(_IN_CASE.search(one.bare)))
    found += 0.5 * (stops and shape.is_reply and one.has("mishap"))
    style = justified >= 1.0 and bool(_STYLE.search(one.bare) or (shape.is_reply and _EACH.search(one.bare)))
    found += 2.0 * style
    found += 1.0 * one.has("prefers") + 1.5 * one.has("permits") + 2.5 * one.has("keep_on")
    found += 3.0 * (one.has("praises") and shape.is_reply)
    found += 3.0 * (one.has("remember") and not IN_REPOSITORY.search(one.bare))
    found += 1.5 * ((shape.is_reply or one.has("remember")) and bool(_THROUGHOUT.search(one.bare)))
    if not found:
        return 0.0
    contrast = bool(_CONTRAST.search(one.bare))
    found += justified + 1.0 * (contrast and (shape.is_reply or stops))
    found += 0.5 * (shape.is_reply and stops and one is one.message.first)
    found += 1.0 * shape.is_displeased + 1.0 * (shape.is_pleased and one.has("approves"))
    found += 0.5 * bool(_UNIVERSAL.search(one.bare)) + 0.5 * one.has("tells")
    found += 1.0 * ("?" in one.message.said.answer[-200:] and habit)
    if shape.is_reply and not one.is_request and (stops or contrast or habit or one.has("permits")):
        found += 1.0 * bool(content_terms(one.bare) & content_terms(one.message.said.answer))
    if one.has("once"):
        found -= 4.0
    if not standing and _SPECIFIED.search(one.bare):
        found -= 3.0
    if not standing and bool(_AT_HAND.search(one.bare)):
        found -= 2.0
    if one.message.is_after_request(one) and not standing and not shape.is_displeased and not one.has("keep_on"):
        found -= 2.5
    meant = (
        style or touches or own_clause or one.has("keep_on") or one.has("permits") or (habit and shape.is_displeased)
    )
    if one.is_request and not standing and not meant:
        found -= 1.5
    if one.binds or (one.days and not standing):
        found -= 2.0
    if not standing and not habit and _IDENTIFIER.search(one.bare):
        found -= 1.0
    return found


def _grounds(one: Marked) -> float:
    """What a reason is worth: said outright, or told right after by somebody who answers."""
    follows = one.message.after(one)
    before = one.message.before(one)
    if before is not None and before.has("mishap") and one.message.shape.is_reply:
        return 1.0
    if any(each.has("reason") or each.has("mishap") for each in [one, *follows]) or _BY_THE_WAY.search(one.bare):
        return 1.0
    told = [each for each in follows if not each.is_asked and not each.is_request and not each.is_filler]
    return 0.5 * (bool(told) and one.message.shape.is_reply)


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
    if not told or one.has("solved"):
        return 0.0
    days = [day for day in one.days if not (day.moment.day == today and day.moment.grain == "day")]
    named = [term for term in content_terms(told) if term.isalpha()]
    states = one.is_ahead and not one.is_request and not _PRIVATE.search(one.bare) and len(named) > 2
    found = 1.5 * bool(days) + 0.5 * one.is_ahead
    found += 1.0 * (bool(words.event.search(told)) or states) + 1.0 * one.binds
    found += 3.0 * bool(words.parked.search(told)) or 2.0 * bool(words.on_hold.search(told))
    found += 3.0 * bool(words.decided.search(told)) + 2.5 * bool(words.bound_by.search(told))
    found += 1.0 * (bool(days) and not one.is_ahead and any(one.has(mark) for mark in ("reason", "mishap", "people")))
    found += 3.0 * bool(words.owns.search(told)) + (1.5 + bool(days)) * bool(words.trouble.search(told))
    if not found:
        return 0.0
    found += 0.5 * one.has("tells") + 1.0 * one.has("remember")
    found += 0.5 * bool(_grounds(one))
    outright = words.parked.search(told) or words.decided.search(told) or words.owns.search(told)
    if _PRIVATE.search(one.bare) and not one.is_ahead and not outright:
        return 0.0
    if one.is_request and not one.is_ahead and not outright:
        found -= 2.0
    if one.has("once") and not one.has("on_hold"):
        found -= 2.0
    if not one.is_ahead and _HISTORY.search(one.bare):
        found -= 2.0
    return found


def _reference(one: Marked) -> float:
    if one.is_asked:
        return 0.0
    text = one.told if one.is_request else one.bare
    systems = [name for name in SYSTEM.findall(text) if name.lower() not in ORDINARY or name[0].isupper()]
    addresses = [found for found in ADDRESS.findall(one.text) if not CODE_HOST.search(found)]
    place, title = one.has("place"), bool(TITLE.search(one.text))
    labelled = bool(LABELLED.search(one.bare))
    named = labelled or bool(NAMED_PLACE.search(one.bare))
    if not systems and not addresses and not (named and place) and not ((place or named) and title):
        return 0.0
    if not systems and not addresses and IN_REPOSITORY.search(one.text):
        return 0.0
    found = 2.0 * bool(systems) + 2.0 * bool(addresses) + 1.0 * place + 0.5 * title
    found += 1.5 * (named and not systems and not addresses)
    found += 1.5 * (labelled or one.has("located") or bool(POINTS_TO.search(one.text)))
    found += 0.5 * one.has("tells") + 1.0 * one.has("remember") + 0.5 * one.has("changed")
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
