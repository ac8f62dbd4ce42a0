"""Which memories a message asks to be forgotten. That is always obeyed: what it names goes, all of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from reverie.memory.gate.evidence import Ground
from reverie.offline.extract.matching import Standing
from reverie.offline.language.marks import Message
from reverie.text.words import content_terms

_ENOUGH = 0.5  # of what is named: then a memory is about it
_BEHIND = 0.75  # of the nearest: then it is meant as well
_ORDER = re.compile(
    r"\b(?:forget|delete|remove|erase|drop|wipe|clear|scrap|discard|throw|away|stop|remember\w*|notes?|memor(?:y|ies)"
    r"|rules?|entry|entries|thing|know|known|saved?|stored?|store|keep|kept|noted|written|wrote|want|need|longer|everything"
    r"|anything|whatever|vergiss|lösche?|notiz(?:en)?|regel|gedächtnis|weißt|alles|olvida|borra|elimina|nota|regla|memoria"
    r"|sabes|todo)\b|忘(?:掉|了|记)|删(?:掉|除)|记忆|笔记|忘れて|削除|メモ|記憶",
    re.IGNORECASE,
)
"""The words of the order itself: they say nothing of what is to go."""


def forgotten(message: Message, before: str, memories: Sequence[Standing]) -> list[Standing]:
    """The memories a message asks to be forgotten. `before`: what the person had typed, which “that” may stand for."""
    asked = message.forgets
    if not asked:
        return []
    others = " ".join(one.text for one in message.marked if one not in asked)
    for named in (" ".join(one.text for one in asked), others, f"{message.answer} {before}"):
        if found := _about(memories, content_terms(_ORDER.sub(" ", named))):
            return found
    return []


def _about(memories: Sequence[Standing], terms: frozenset[str]) -> list[Standing]:
    """The memories that hold most of the words, or whose subject is among them."""
    scored: list[tuple[float, Standing]] = []
    ground = Ground([" ".join(terms)])
    for one in memories:
        held = Ground([one.text])
        named = sum(held.has(term) for term in terms) / len(terms) if terms else 0.0
        subject = one.subject
        covered = sum(ground.has(term) for term in subject)
        if named >= _ENOUGH or covered >= max(2, _ENOUGH * len(subject)):
            scored.append((max(named, covered / len(subject) if subject else 0.0), one))
    best = max((score for score, _ in scored), default=0.0)
    return [one for score, one in scored if score >= _BEHIND * best]
