"""Which memories a message asks to forget. This is always obeyed: every memory that it names is removed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from reverie.memory.gate.statement import EvidenceText
from reverie.offline.extract.matching import StoredMemory
from reverie.offline.language.marks import MarkedMessage
from reverie.text.words import content_terms

_ENOUGH = 0.5  # share of the named words: then a memory is about it
_BEHIND = 0.75  # share of the nearest memory's score: then it counts too
_ORDER = re.compile(
    r"\b(?:forget|delete|remove|erase|drop|wipe|clear|scrap|discard|throw|away|stop|remember\w*|notes?|memor(?:y|ies)"
    r"|rules?|entry|entries|thing|know|known|saved?|stored?|store|keep|kept|noted|written|wrote|want|need|longer"
    r"|everything|anything|whatever|vergiss|lösche?|notiz(?:en)?|regel|gedächtnis|weißt|alles|olvida|borra|elimina"
    r"|nota|regla|memoria|sabes|todo)\b|忘(?:掉|了|记)|删(?:掉|除)|记忆|笔记|忘れて|削除|メモ|記憶",
    re.IGNORECASE,
)
"""The words of the order itself: they do not name the memory."""


def find_forgotten(message: MarkedMessage, memories: Sequence[StoredMemory]) -> list[StoredMemory]:
    """Finds the memories that a message asks to forget. “That” can refer to what was said before it."""
    asked = message.forgets
    if not asked:
        return []
    others = " ".join(one.text for one in message.marked if one not in asked)
    for named in (" ".join(one.text for one in asked), others, f"{message.answer} {message.before}"):
        if found := _about(memories, content_terms(_ORDER.sub(" ", named))):
            return found
    return []


def _about(memories: Sequence[StoredMemory], terms: frozenset[str]) -> list[StoredMemory]:
    """The memories with most of the words, or whose subject is among them; otherwise the clearly nearest one."""
    ground = EvidenceText([" ".join(terms)])
    scored: list[tuple[float, bool, StoredMemory]] = []
    for one in memories:
        held, subject = EvidenceText([one.text]), one.subject
        named = sum(held.has(term) for term in terms) / len(terms) if terms else 0.0
        covered = sum(ground.has(term) for term in subject)
        is_clear = named >= _ENOUGH or covered >= max(2, _ENOUGH * len(subject))
        scored.append((max(named, covered / len(subject) if subject else 0.0), is_clear, one))
    best = max((score for score, _, _ in scored), default=0.0)
    near = [(is_clear, one) for score, is_clear, one in scored if score and score >= _BEHIND * best]
    return [one for is_clear, one in near if is_clear] or [one for _, one in near if len(near) == 1]
