"""When a message is about a memory itself: it is to be forgotten, or what it says holds no longer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from reverie.memory.taxonomy import MemoryType
from reverie.offline.extract.candidates import Candidate
from reverie.offline.extract.marks import Marked, Message
from reverie.offline.extract.matching import Standing, about, overlap
from reverie.text.words import content_terms

_CLEAR = 1.5  # times nearer than the next: then it is meant
_CITES = re.compile(
    r"\bi have (?:a|this|that|the) (?:note|memory|rule|entry) (?:that|saying|about|to|from)\b"
    r"|\b(?:my|your) (?:notes?|memory|memories|rules?) (?:say|has|have|tell|mention)|\bi(?:'ve| have)? (?:noted"
    r"|remembered?)\b"
    r"|\byou(?:'ve| have)? (?:told|asked) me\b|\baccording to my (?:notes|memory)\b|\bas you (?:asked|said|wanted)\b",
    re.IGNORECASE,
)
"""The agent says what it remembers: then what the person answers is about that."""


_THAT_ONE = re.compile(
    r"\b(?:forget|delete|remove|drop|erase|discard|scrap) (?:about )?"
    r"(?:that|this|it|that one|this one|the (?:note|rule|memory))"
    r"(?= please| pls| then| now| again|[,.;!]|$)",
    re.IGNORECASE,
)
"""Something is to be forgotten that has just been spoken of."""


def forgotten(message: Message, memories: Sequence[Standing]) -> list[Standing]:
    """The memories a message asks to be forgotten: the one it names, never one it might mean."""
    if message.shape.is_void:
        return []
    asked = [one for one in message.marked if _asks_to_forget(one)]
    if not asked or _says_instead(message):
        return []
    terms = frozenset(term for one in asked for term in content_terms(one.bare))
    near = about(memories, " ".join(one.bare for one in asked))
    if not near:
        terms = content_terms(message.text)
        near = about(memories, message.said.text)
    if not near and _CITES.search(message.said.answer) and any(_THAT_ONE.search(one.bare) for one in asked):
        cited = f"{message.said.text}\n{message.said.answer}"  # what the agent has just said it remembers
        terms = content_terms(cited)
        near = about(memories, cited)
    if not near:
        return []
    shares = [overlap(one, terms) for one in near]
    return [near[0]] if len(near) == 1 or shares[0] >= _CLEAR * shares[1] else []


def retold(
    message: Message, memories: Sequence[Standing], candidates: Sequence[Candidate]
) -> Iterator[tuple[Standing, Candidate]]:
    """Memories that a message says are no longer so, each with what it says instead."""
    if message.shape.is_void or not _speaks_of_change(message):
        return
    terms = content_terms(message.text)
    harks_back = any(one.has("harks_back") for one in message.marked)
    cited = message.said.answer if _CITES.search(message.said.answer) else ""
    for memory in about(memories, f"{message.said.text}\n{cited}", harks_back=harks_back)[:1]:
        said = _news(message, memory)
        own = [one for one in candidates if one.message is message and one.type is memory.known.type]
        if own:
            sentences = {id(one) for one in own[0].sentences}
            more = tuple(one for one in said if id(one) not in sentences)
            first = sorted((*own[0].said, *more), key=message.marked.index)
            yield (
                memory,
                Candidate(own[0].type, tuple(first), own[0].why, own[0].confirmed, own[0].points, own[0].terms),
            )
        elif said and memory.known.type is not None and any(_says_so(one, memory.known.type) for one in said):
            yield memory, Candidate(memory.known.type, tuple(said), terms=terms)


def _news(message: Message, memory: Standing) -> list[Marked]:
    """The sentences that say what holds now, and what is told after them."""
    first = next((at for at, one in enumerate(message.marked) if _tells_news(one, memory)), None)
    if first is None:
        return []
    return [
        one
        for at, one in enumerate(message.marked)
        if _tells_news(one, memory)
        or (
            at > first
            and not (one.is_asked or one.is_request or one.is_filler or one.has("quoted") or one.has("harks_back"))
        )
    ]


def _asks_to_forget(one: Marked) -> bool:
    return one.has("forget") and not one.has("not_forget") and not one.is_asked and not one.has("quoted")


def _says_instead(message: Message) -> bool:
    """Whether something is to hold in its place: then it is changed, not forgotten."""
    asked = [one for one in message.marked if one.has("forget")]
    words = message.words
    clauses = [clause for one in asked for clause in one.bare.split(", ")[1:]]
    if any(words.manner.search(clause) and not words.forget.search(clause) for clause in clauses):
        return True
    others = [one for one in message.marked if one not in asked and not one.is_asked and not one.is_filler]
    return any(one.has("standing") or one.has("decided") or one.has("habit") for one in others)


def _speaks_of_change(message: Message) -> bool:
    return any((one.has("changed") or one.has("excepts")) and not one.is_asked for one in message.marked)


def _says_so(one: Marked, kind: MemoryType) -> bool:
    """A sentence that gives what a memory of that kind is about: a day or a person, a place, a rule."""
    match kind:
        case MemoryType.PROJECT:
            return one.is_ahead or one.has("owns") or one.has("on_hold") or one.has("decided")
        case MemoryType.REFERENCE:
            return one.has("located") and one.has("changed")
        case MemoryType.FEEDBACK:
            turned = one.has("changed") and any(each.has("harks_back") for each in one.message.marked)
            return turned or any(one.has(mark) for mark in ("excepts", "standing", "decided", "forget"))
        case MemoryType.USER:
            return one.has("person")


def _tells_news(one: Marked, memory: Standing) -> bool:
    """A sentence that says what holds now."""
    if one.is_filler or one.is_asked or one.has("quoted") or (one.has("forget") and not one.has("changed")):
        return False
    marks = ("changed", "excepts", "owns", "standing", "decided")
    if one.has("harks_back") and not one.has("excepts"):
        return False
    return any(one.has(mark) for mark in marks) or bool(one.days) or overlap(memory, content_terms(one.bare)) > 0.3
