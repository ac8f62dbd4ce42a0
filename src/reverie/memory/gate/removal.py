"""What disappears from a memory: which statements are lost, and whether they may be. A confirmed one needs words of the
user that speak of it. Texts in, answers out."""

from __future__ import annotations

from collections.abc import Sequence

from reverie.memory.changes import Writer
from reverie.memory.gate.requests import asks_to_forget, orders_removal, tells_change
from reverie.memory.gate.rule import CONFIRMED_SHARE, Case, Standing, Verdict, hold
from reverie.memory.gate.speech import UserMessage
from reverie.memory.gate.statement import EvidenceText, features, says_exactly
from reverie.memory.taxonomy import Trust
from reverie.text.sameness import REWORDED, StatementIndex, overlap, share
from reverie.text.sentences import sentences
from reverie.text.words import content_terms, is_negated
from reverie.types import Origin


def may_remove(case: Case, gone: Standing, about: str, stored: Sequence[Verdict]) -> bool:
    """Whether a statement may disappear. `about` is the title and name of its file; `stored` is what is new."""
    is_confirmed = gone.trust is Trust.CONFIRMED
    if case.writer is Writer.DREAM and not is_confirmed:
        return True  # a dream names what it drops, and loses nothing without
    for message in case.speech.said:
        if _replaces(message, gone, stored, case.speech.foreign):
            return True
        speaks = (_speaks_of(message, gone.text) or _speaks_of(message, about)) and not _affirms(message, gone.text)
        if not is_confirmed and any(one.is_anchored and not one.is_old for one in stored):
            return True  # the writer corrects its own conclusion by what the user says now
        is_order = orders_removal(message.text)
        if speaks and (is_order or not is_confirmed):
            return True
        if is_order and _orders_to_forget(message, gone.text, about):
            return True
        if speaks and message.block.origin is Origin.TYPED and _tells_change_of(message, gone.text):
            return True
        is_wish = is_order and case.writer is not Writer.DREAM and asks_to_forget(message.text)
        if is_wish and not case.means_another(message) and not case.speech.others_ask_to_forget:
            return True  # it names nothing by words: the writer has chosen what it means
    return False


def _orders_to_forget(message: UserMessage, text: str, about: str) -> bool:
    """Whether a sentence of the message orders it, whatever its other sentences say."""
    orders = [EvidenceText([part]) for part in sentences(message.text, is_chat=True) if orders_removal(part)]
    return any(_speaks_of(part, text) or _speaks_of(part, about) for part in orders)


def _speaks_of(message: EvidenceText, text: str) -> bool:
    one = features(text)
    found = message.count(one.terms)
    if found >= (1 if len(one.terms) <= 2 else max(2, -(-len(one.terms) // 3))):
        return True
    return sum(name in message.lower for name in one.names | one.dates) + sum(map(message.has_number, one.numbers)) >= 2


def _tells_change_of(message: UserMessage, text: str) -> bool:
    """Whether a sentence of the message, not a question, says that this has changed."""
    terms = content_terms(text)
    return any(
        tells_change(part) and EvidenceText([part]).count(terms) >= min(2, len(terms))
        for part in sentences(message.stated, is_chat=True)
    )


def _affirms(message: UserMessage, text: str) -> bool:
    """Whether a message says just this: then it is no reason to remove it."""
    one = features(text)
    same = message.denies(one.terms)
    return message.count(one.terms) >= CONFIRMED_SHARE * len(one.terms) and same in (None, is_negated(text))


def _replaces(message: UserMessage, gone: Standing, stored: Sequence[Verdict], foreign: EvidenceText) -> bool:
    """Whether a stored statement about the same says something new that this message has, and that is nobody else's."""
    was = features(gone.text)
    for one in stored:
        now = features(one.text)
        new = [term for term in now.terms if term not in was.terms]
        is_near = one.is_anchored and 3 * len(now.terms & was.terms) >= min(len(was.terms), len(now.terms))
        is_said = bool(new) and 2 * message.count(new) >= len(new)
        is_said = is_said and message.denies(frozenset(new)) in (None, is_negated(one.text))
        if is_near and is_said and not any(foreign.has(term) and not message.has(term) for term in new):
            return True
    return False


def find_lost(gone: Sequence[Standing], kept: Sequence[Standing]) -> list[Standing]:
    """The statements that no other statement says any more. What the user confirmed must be said just as surely."""
    index = StatementIndex(one.text for one in kept)
    return [
        one
        for one in gone
        if content_terms(one.text) and not (index.has(one.text) and any(_is_said(one, other) for other in kept))
    ]


def _is_said(one: Standing, other: Standing) -> bool:
    """Whether a statement says another with the same values and the same negation."""
    found = features(one.text)
    if share(found.terms, content_terms(other.text)) < REWORDED or is_negated(other.text) != is_negated(one.text):
        return False
    if one.trust is Trust.CONFIRMED:
        return other.trust is Trust.CONFIRMED and says_exactly(one.text, other.text)
    return all(map(EvidenceText([other.text]).has_number, found.numbers))


def wait_too(one: Verdict, lost: Sequence[Standing]) -> Verdict:
    """Holds a new statement that would replace one that stays."""
    terms = content_terms(one.text)
    if any(overlap(terms, content_terms(was.text)) >= 0.5 for was in lost):
        return hold(one, "it would change what you confirmed")
    return one
