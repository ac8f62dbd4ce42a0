"""The rule of trust: how each new statement of a memory ends, and each one that disappears. Confirmed, inferred or held,
by who said its words (docs/decisions/0035-trust-by-origin.md). Likeness of words decides how far a statement is
trusted; nothing here refuses a write. Texts in, verdicts out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Final

from reverie.memory.changes import Evidence, Mark, Writer
from reverie.memory.gate.requests import asks_to_forget, asks_to_remove, points_at_text
from reverie.memory.gate.speech import (
    EvidenceText,
    Features,
    Speech,
    UserMessage,
    features,
    foreign_names,
    is_other_language,
)
from reverie.memory.taxonomy import Trust
from reverie.text.folding import fold_text
from reverie.text.sameness import REWORDED, StatementIndex, contradicts, share
from reverie.text.sentences import sentences
from reverie.text.words import content_terms, is_negated
from reverie.types import Origin

_CONFIRMED: Final = 0.75
"""The share of a statement's content words that one typed message must have."""
_ADOPTED: Final = 0.5
"""The share that a text must have for a statement to be taken from it."""
_LEAST_OWN: Final = 2
"""Words of the user that a memory without an anchored statement must have."""
_FOREIGN_WORDS: Final = 2
_FOREIGN_SHARE: Final = 0.3
"""A statement is somebody else's if one sentence of theirs has this much of it, and more than the user's words."""
_SAME_RULE: Final = 0.8
_NEAR_BLOCKS: Final = 8
"""Texts of others before a request to keep something that it can point at."""


class End(StrEnum):
    """How a statement ends."""

    CONFIRMED = "confirmed"
    INFERRED = "inferred"
    UNMARKED = "unmarked"
    """It was in memory before, without a mark."""
    HELD = "held"


@dataclass(frozen=True, slots=True)
class Standing:
    """A statement that memory has."""

    text: str
    file: str
    trust: Trust | None
    mark: Mark | None = None

    @property
    def end(self) -> End:
        return End(self.trust.value) if self.trust else End.UNMARKED


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one statement ends, and why."""

    text: str
    end: End
    mark: Mark | None = None
    is_anchored: bool = False
    why: str = ""
    """For the inbox: why it is held."""
    contradicts: Standing | None = None


@dataclass(frozen=True)
class Case:
    """Everything the rule looks at for one file. `own` is what the file said before, `others` what memory says elsewhere
    (for a consolidation also what it removes)."""

    writer: Writer
    speech: Speech
    own: Sequence[Standing]
    others: Sequence[Standing] = ()
    confirmed: Callable[[frozenset[str]], Iterable[Standing]] = field(default=lambda _terms: ())
    """Confirmed statements, and those of the team, that share words with a statement."""
    session: str = ""
    dropped: tuple[str, ...] = ()
    means_another: Callable[[UserMessage], bool] = field(default=lambda _message: False)
    """Whether a request to forget that has no word of this memory means another one."""

    @cached_property
    def exact(self) -> Mapping[str, Standing]:
        return {fold_text(one.text): one for one in (*self.others, *self.own)}

    @cached_property
    def lending(self) -> Sequence[Standing]:
        """Statements that may anchor a change of them: not those that are only inferred."""
        near = self.others if self.writer is Writer.DREAM else ()
        return [one for one in (*self.own, *near) if one.trust is not Trust.INFERRED]

    @cached_property
    def known(self) -> EvidenceText:
        return EvidenceText(one.text for one in self.lending)


def judge(case: Case, statements: Sequence[str]) -> list[Verdict]:
    """Judges the new statements of a file, in order. If nothing in it rests on the user's words, all of it is held."""
    found = [_judge(case, one) for one in statements]
    is_based = bool(case.own) or any(one.is_anchored for one in found)
    if not is_based and not _is_users(case, [one.text for one in found if one.end is not End.HELD]):
        return [one if one.end is End.HELD else _hold(one, "you did not say it") for one in found]
    near = EvidenceText([case.speech.new.text, case.known.text, *(one.text for one in found if one.is_anchored)])
    return [one if one.is_anchored or one.end is End.HELD else _judge_line(case, one, near) for one in found]


def _is_users(case: Case, statements: Sequence[str]) -> bool:
    """Whether a memory without an anchored statement is still what the user said, in the writer's own words: it has words
    of the user, and no text of others explains it better."""
    if not statements:
        return False
    whole = features(" ".join(statements))
    own = case.speech.new.count(whole.terms)
    if own >= _LEAST_OWN:
        return True
    if _foreign_words(case, whole) > _FOREIGN_WORDS or case.speech.model_share(whole) > own + _FOREIGN_WORDS:
        return False
    return own > 0 or _is_translated(case, whole.text)


def _is_translated(case: Case, text: str) -> bool:
    """Whether a text is in another language than all that the user said, so that shared words cannot be expected."""
    return bool(case.speech.said) and all(is_other_language(text, message.text) for message in case.speech.said)


def _is_foreign(case: Case, one: Features, *, is_anchored: bool) -> bool:
    """Whether a sentence of somebody else explains a statement better than the user's words do."""
    foreign, own = _foreign_words(case, one), case.speech.own.count(one.terms) + case.known.count(one.terms)
    least = max(_FOREIGN_WORDS, _FOREIGN_SHARE * len(one.terms))
    return foreign > own and foreign >= (least + 1 if is_anchored else least)


def _foreign_words(case: Case, one: Features) -> int:
    """How many words of a statement come from one sentence of somebody else; names count twice."""
    own = EvidenceText([case.speech.own.text, case.speech.asked.text, *(known.text for known in case.own)])
    return case.speech.foreign_share(one) + len(foreign_names(one, own, case.speech.foreign))


def _judge(case: Case, statement: str) -> Verdict:
    """Judges a statement on its own: by memory, by the user's messages, by whose words it has."""
    one = features(statement)
    stood = case.exact.get(fold_text(statement))
    if stood is not None:
        return Verdict(statement, stood.end, stood.mark, is_anchored=stood.end is not End.INFERRED)
    if not one.terms and not one.addresses:
        return Verdict(statement, End.INFERRED, Mark(Trust.INFERRED))
    if (adopted := _adopt(case, one)) is not None:
        return adopted
    if addresses := case.speech.foreign_addresses(one, case.known):
        return Verdict(statement, End.HELD, why=f"you did not write {', '.join(addresses[:3])}")
    reworded = _reworded(case, one)
    if reworded is not None:
        return reworded
    if case.speech.is_quoted(one):
        return Verdict(statement, End.HELD, why="these are somebody else's words")
    wanted = frozenset(term for term in one.terms if not case.known.has(term)) if case.lending else one.terms
    message = case.speech.anchor(one, wanted or one.terms)
    if numbers := case.speech.foreign_numbers(one, case.known):
        return Verdict(statement, End.HELD, why=f"{', '.join(numbers[:3])} is somebody else's number")
    if _is_foreign(case, one, is_anchored=message is not None):
        return Verdict(statement, End.HELD, why="somebody else said it")
    if message is None:
        return Verdict(statement, End.INFERRED, Mark(Trust.INFERRED))
    trust = Trust.CONFIRMED if _is_confirmed(case, one, message) else Trust.INFERRED
    verdict = Verdict(statement, End(trust.value), _mark(trust, one, message, case.session), is_anchored=True)
    return _question(case, verdict, one)


def _judge_line(case: Case, one: Verdict, near: EvidenceText) -> Verdict:
    """A line without an anchor of its own in a memory that has one: the writer's note, if it is about the same."""
    found = features(one.text)
    is_new = fold_text(one.text) not in case.exact and bool(found.terms)
    if is_new and not near.count(found.terms) and not _is_translated(case, one.text):
        return _hold(one, "you did not say it")
    return _question(case, one, found)


def _hold(one: Verdict, why: str) -> Verdict:
    return replace(one, end=End.HELD, mark=None, why=why)


def _is_confirmed(case: Case, one: Features, message: UserMessage) -> bool:
    """Whether one message of the user says all of it: most words, every number, name, date and negation."""
    if not message.can_confirm:
        return False
    prior = [
        known
        for known in case.own
        if known.trust is Trust.CONFIRMED and share(one.terms, content_terms(known.text)) >= 0.5
    ]
    said = EvidenceText([message.text, *(known.text for known in prior)])
    dated = {term for value in one.dates for term in content_terms(value)}
    missing = [term for term in one.terms if not said.has(term) and term not in dated]
    if len(missing) > (1 - _CONFIRMED) * len(one.terms) or any(map(case.speech.foreign.has, missing)):
        return False
    if any(not said.has_number(number) for number in one.numbers) or any(name not in said.lower for name in one.names):
        return False
    if any(value not in message.dates and value not in said.lower for value in one.dates):
        return False
    denied = message.denies(one.terms)
    return is_negated(one.text) == (is_negated(message.text) if denied is None else denied)


def _reworded(case: Case, one: Features) -> Verdict | None:
    """A statement that memory has in other words: it keeps the lowest trust of what it is made of."""
    sources = [known for known in (*case.own, *case.others) if _shares(one.terms, content_terms(known.text))]
    if not sources:
        return None
    said = EvidenceText(known.text for known in sources)
    missing = [term for term in one.terms if not said.has(term)]
    if 4 * len(missing) > len(one.terms) or any(case.speech.foreign.has(term) for term in missing):
        return None
    if any(not said.has_number(number) for number in one.numbers) or not one.dates <= set(said.text.split()) | _dates(
        said
    ):
        return None
    nearest = max(sources, key=lambda known: len(one.terms & content_terms(known.text)))
    if is_negated(one.text) != is_negated(nearest.text) or contradicts(one.text, nearest.text):
        return None
    was = content_terms(nearest.text)
    is_part = EvidenceText([one.text]).count(was) < _SAME_RULE * len(was)
    if is_part and missing:
        return None  # another value, not other words
    lowest = max((known.end for known in sources), key=[End.CONFIRMED, End.UNMARKED, End.INFERRED].index)
    if is_part and lowest is End.CONFIRMED:
        lowest = End.INFERRED  # a part of a rule says more than the rule
    mark = (
        None
        if lowest is End.UNMARKED
        else replace(nearest.mark or Mark(Trust(lowest.value)), trust=Trust(lowest.value))
    )
    return Verdict(one.text, lowest, mark, is_anchored=lowest is not End.INFERRED)


def _dates(text: EvidenceText) -> set[str]:
    return set(features(text.text).dates)


def _shares(terms: frozenset[str], others: frozenset[str]) -> bool:
    both = len(terms & others)
    return (both >= 2 and (3 * both >= len(terms) or 2 * both >= len(others))) or (both == 1 and len(terms) <= 2)


def _question(case: Case, one: Verdict, found: Features) -> Verdict:
    """A conclusion against what the user confirmed becomes a question; against the team's it is only marked."""
    for standing in case.confirmed(found.terms):
        if not contradicts(one.text, standing.text):
            continue
        if standing.trust is Trust.CONFIRMED and one.end is not End.CONFIRMED:
            return replace(_hold(one, f"{standing.file} says something else"), contradicts=standing)
        if one.mark is not None and standing.file.startswith("team/"):
            one = replace(one, mark=replace(one.mark, contradicts=standing.file))
    return one


# Text of others that the user asked to keep.


def _adopt(case: Case, one: Features) -> Verdict | None:
    for message in case.speech.said:
        if message.how in ("yes", "adopted") or not points_at_text(message.text):
            continue
        if message.count(one.terms) >= max(2, len(one.terms) // 2):
            continue  # the user said it in the same breath
        block = _pointed_at(case.speech, message, one)
        if block is not None:
            mark = replace(_mark(Trust.INFERRED, one, message, case.session), how="adopted", source=block.origin.value)
            return Verdict(one.text, End.INFERRED, mark, is_anchored=True)
    return None


def _pointed_at(speech: Speech, message: UserMessage, one: Features) -> Evidence | None:
    near = [block for block in speech.blocks if block.is_new and block.origin is not Origin.CODE]
    for block in reversed(near[-_NEAR_BLOCKS:]):
        bare = [term for term in one.terms if not any(term in value for value in one.dates)]
        if EvidenceText([block.text]).count(bare) >= _ADOPTED * len(bare):
            return block
    return None


# What disappears.


def may_remove(case: Case, gone: Standing, about: str, stored: Sequence[Verdict]) -> bool:
    """Whether a statement may disappear. `about` is the title and name of its file; `stored` is what stays or is new."""
    if case.writer is Writer.DREAM and gone.trust is not Trust.CONFIRMED:
        return True  # a dream names what it drops, and loses nothing without
    for message in case.speech.said:
        if (
            gone.trust is Trust.CONFIRMED
            and message.block.origin is not Origin.TYPED
            and not asks_to_remove(message.text)
        ):
            if not _replaces(message, gone, stored):
                continue
        if (_speaks_of(message, gone.text) and not _affirms(message, gone.text)) or _replaces(message, gone, stored):
            return True
        if asks_to_remove(message.text) and message.count(content_terms(f"{about} {gone.text}")):
            return True
        if asks_to_forget(message.text) and not case.means_another(message):
            return True  # it names nothing by words: the writer has chosen what it means
    return False


def _speaks_of(message: UserMessage, text: str) -> bool:
    one = features(text)
    found = message.count(one.terms)
    if found >= (1 if len(one.terms) <= 2 else max(2, -(-len(one.terms) // 3))):
        return True
    return sum(name in message.lower for name in one.names | one.dates) + sum(map(message.has_number, one.numbers)) >= 2


def _affirms(message: UserMessage, text: str) -> bool:
    """Whether a message says just this: then it is no reason to remove it."""
    one = features(text)
    same = message.denies(one.terms)
    return message.count(one.terms) >= _CONFIRMED * len(one.terms) and same in (None, is_negated(text))


def _replaces(message: UserMessage, gone: Standing, stored: Sequence[Verdict]) -> bool:
    """Whether a stored statement says the same with another value that this message has."""
    was = features(gone.text)
    for one in stored:
        now = features(one.text)
        new = [term for term in now.terms if term not in was.terms]
        if (
            one.is_anchored
            and 2 * len(now.terms & was.terms) >= len(was.terms)
            and new
            and message.count(new) == len(new)
        ):
            return True
    return False


def find_lost(gone: Sequence[Standing], kept: Iterable[str]) -> list[Standing]:
    """The statements that no other statement says any more."""
    texts = list(kept)
    index = StatementIndex(texts)
    return [one for one in gone if content_terms(one.text) and not (index.has(one.text) and _is_said(one, texts))]


def _is_said(gone: Standing, kept: Sequence[str]) -> bool:
    """Whether one of the statements says it with the same values and the same negation. Of a confirmed statement it
    must have nearly every word: a shorter rule is another rule."""
    one = features(gone.text)
    least = _SAME_RULE * len(one.terms) if gone.trust is Trust.CONFIRMED else 0
    return any(
        share(one.terms, content_terms(other)) >= REWORDED
        and is_negated(other) == is_negated(gone.text)
        and all(map(EvidenceText([other]).has_number, one.numbers))
        and EvidenceText([other]).count(one.terms) >= least
        for other in kept
    )


# The mark.


def _mark(trust: Trust, one: Features, message: UserMessage, session: str) -> Mark:
    """The mark of a statement that rests on a message, with the sentence that it rests on."""
    text = message.text
    parts = sentences(text, is_chat=True) or [text.strip()]
    quote = max(parts, key=lambda part: len(one.terms & content_terms(part)))
    start = max(0, text.find(quote))
    return Mark(
        trust,
        how=message.how,
        quote=quote,
        at=message.block.at,
        session=session,
        message=message.block.message,
        span=(start, start + len(quote)),
        source=message.block.origin.value if message.how == "adopted" else "",
    )
