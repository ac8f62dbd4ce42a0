"""The rule of trust: how each new statement of a memory ends: confirmed, inferred or held, by who said its words
(docs/decisions/0035-trust-by-origin.md; `removal` judges what disappears). Likeness of words decides how far a
statement is trusted; nothing here refuses a write. Texts in, verdicts out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import date
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import Final

from reverie.memory.changes import Evidence, Mark, Writer
from reverie.memory.gate.lines import body_parts
from reverie.memory.gate.requests import points_at_text
from reverie.memory.gate.speech import Speech, UserMessage, foreign_names, has_mixed_word, is_other_language
from reverie.memory.gate.statement import EvidenceText, Features, features, says_exactly, size_of
from reverie.memory.taxonomy import Trust
from reverie.quick import dataclass
from reverie.text.dates.phrases import find_days
from reverie.text.folding import fold_statement, fold_text
from reverie.text.sameness import contradicts, is_in_order, relations_of, share
from reverie.text.sentences import sentences
from reverie.text.tongue import language_of
from reverie.text.words import content_terms, is_negated

CONFIRMED_SHARE: Final = 0.75
"""The share of a statement's content words that one typed message must have."""
_ADOPTED: Final = 0.5
"""The share that a text must have for a statement to be taken from it."""
_LEAST_OWN: Final = 2
"""Words of the user that a memory without an anchored statement must have."""
_LEAST_SAID: Final = 0.5
"""A message of the user says at least so much of what the first statement says: a nod says nothing."""
_FOREIGN_WORDS: Final = 2
_FOREIGN_SHARE: Final = 0.28
_TRANSLATED_SHARE: Final = 0.5
"""A statement is somebody else's if a sentence of theirs has so much of it that the user never used (more, if the user
speaks another language), and more of it than any message of the user."""
_SOME_DAY: Final = date(2026, 1, 15)
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
    def is_shared(self) -> bool:
        """Whether it is a file of the team: others wrote it."""
        return self.file.startswith("team/")

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
    is_old: bool = False
    """Memory said it before, perhaps in other words."""
    why: str = ""
    """For the inbox: why it is held."""
    contradicts: Standing | None = None


@dataclass(frozen=True)
class Case:
    """Everything the rule looks at for one file. `own` is what the file said before, `others` what memory says
    elsewhere (for a consolidation also what it removes)."""

    writer: Writer
    speech: Speech
    own: Sequence[Standing]
    others: Sequence[Standing] = ()
    confirmed: Callable[[frozenset[str]], Iterable[Standing]] = field(default=lambda _terms: ())
    """Confirmed statements, and those of the team, that share words with a statement."""
    session: str = ""
    stays: frozenset[str] = frozenset()
    """The statements of the file that the new text has too, folded."""
    means_another: Callable[[UserMessage], bool] = field(default=lambda _message: False)
    """Whether a request to forget that has no word of this memory means another one."""

    @cached_property
    def exact(self) -> Mapping[str, Standing]:
        lent = (one for one in (*self.others, *self.own) if self.is_own(one) or not one.is_shared)
        return {fold_statement(one.text): one for one in lent}

    @cached_property
    def _holding(self) -> Mapping[str, Sequence[Standing]]:
        found: dict[str, list[Standing]] = {}
        for one in (*self.own, *self.others):
            for term in content_terms(one.text):
                found.setdefault(term, []).append(one)
        return found

    def near(self, terms: frozenset[str]) -> list[Standing]:
        """The statements of memory that share words with a statement."""
        return list({id(one): one for term in terms for one in self._holding.get(term, ())}.values())

    @cached_property
    def _own_ids(self) -> frozenset[int]:
        return frozenset(map(id, self.own))

    def is_own(self, one: Standing) -> bool:
        """Whether a statement is in the file itself."""
        return id(one) in self._own_ids

    def lends(self, one: Standing) -> bool:
        """Whether a statement may anchor a change of it: not one that is only inferred, or that is the team's."""
        is_near = self.is_own(one) or (self.writer is Writer.DREAM and not one.is_shared)
        return is_near and one.trust is not Trust.INFERRED

    @cached_property
    def known(self) -> EvidenceText:
        return EvidenceText(one.text for one in (*self.own, *self.others) if self.lends(one))

    @cached_property
    def heard(self) -> EvidenceText:
        """What the user wrote or answered, and what the file says."""
        return EvidenceText([self.speech.own.text, self.speech.asked.text, *(one.text for one in self.own)])


def judge(case: Case, statements: Sequence[str]) -> list[Verdict]:
    """Judges the new statements of a file, in order. If nothing in it rests on the user's words, all of it is held."""
    found = [judge_one(case, one) for one in statements]
    is_based = any(one.is_anchored and (case.writer is Writer.DREAM or not one.is_old) for one in found)
    new = [one.text for one in found if one.end is not End.HELD and not one.is_old]
    least = _LEAST_OWN if found and found[0].end is End.HELD else 1
    if not is_based and not _is_users(case, new, least):
        return [one if one.end is End.HELD or one.is_old else hold(one, "you did not say it") for one in found]
    near = EvidenceText([case.speech.new.text, case.known.text, *(one.text for one in found if one.is_anchored)])
    return [one if one.is_anchored or one.end is End.HELD else _judge_line(case, one, near) for one in found]


def _is_users(case: Case, statements: Sequence[str], least: int) -> bool:
    """Whether a memory without an anchored statement is still what the user said, in the writer's own words: it has so
    many words of the user, and the model did not say more of it."""
    if not statements or not case.speech.said:
        return False
    whole = case.speech.features(" ".join(statements))
    own = case.speech.new.count(whole.terms)
    said = (case.speech.asked.text, *(message.stated for message in case.speech.said))
    if max(map(size_of, said)) < _LEAST_SAID * size_of(statements[0]):
        return False
    is_sure = own >= _LEAST_OWN or _is_translated(case, whole.text)
    return is_sure or least <= own >= case.speech.model_share(whole) - _FOREIGN_WORDS


def _is_translated(case: Case, text: str) -> bool:
    """Whether a text is in another language than what the user said, so that shared words cannot be expected. A writer
    uses the user's language or English."""
    said = case.speech.new.text
    return language_of(said) != "en" and is_other_language(text, said)


def _prior(case: Case, one: Features) -> EvidenceText:
    """The statement of memory that this one changes: only what is new in it needs an anchor. Empty if there is none."""
    best, most = "", 0
    for known in case.near(one.terms):
        if not case.lends(known):
            continue
        theirs = content_terms(known.text)
        both = len(one.terms & theirs)
        if both > most and 2 * both >= min(len(one.terms), len(theirs)):
            best, most = known.text, both
    return EvidenceText([best])


def _is_foreign(case: Case, one: Features, prior: EvidenceText, *, is_anchored: bool) -> bool:
    """Whether a sentence of somebody else explains a statement better than the user's words do."""
    is_translated = _is_translated(case, one.text)
    if is_translated and foreign_names(one, case.heard, case.speech.foreign):
        return True  # names and numbers are all that can be compared
    share = _TRANSLATED_SHARE if is_translated else _FOREIGN_SHARE
    least = max(_FOREIGN_WORDS, share * len(one.terms)) + is_anchored
    if _foreign_words(case, one) < least:
        return False
    own = max((EvidenceText([message.stated]).count(one.terms) for message in case.speech.said), default=0)
    return case.speech.foreign_share(one)[1] > own + prior.count(one.terms)


def _foreign_words(case: Case, one: Features) -> float:
    """How many words of a statement come from one sentence of somebody else; names count twice."""
    return case.speech.foreign_share(one)[0] + len(foreign_names(one, case.heard, case.speech.foreign))


def judge_one(case: Case, statement: str) -> Verdict:
    """Judges a statement on its own: by memory, by the user's messages, by whose words it has."""
    one = case.speech.features(statement)
    stood = case.exact.get(fold_statement(statement))
    if stood is not None:
        return Verdict(statement, stood.end, stood.mark, is_anchored=stood.end is not End.INFERRED, is_old=True)
    if has_mixed_word(statement):
        return Verdict(statement, End.HELD, why="letters of two alphabets are mixed in a word")
    if not one.terms and not one.addresses:
        is_order = is_negated(statement) and fold_text(statement) not in fold_text(case.speech.own.text)
        end = End.HELD if is_order else End.INFERRED
        return Verdict(statement, end, None if is_order else Mark(Trust.INFERRED), why="you did not say it")
    if (adopted := _adopt(case, one)) is not None:
        return adopted
    if addresses := case.speech.foreign_addresses(one, case.known):
        return Verdict(statement, End.HELD, why=f"you did not write {', '.join(addresses[:3])}")
    reworded = _reworded(case, one)
    if reworded is not None:
        return reworded
    if case.speech.is_quoted(one, case.known):
        return Verdict(statement, End.HELD, why="these are somebody else's words")
    prior = _prior(case, one)
    wanted = frozenset(term for term in one.terms if not prior.has(term))
    message = case.speech.anchor(one, wanted or one.terms)
    if numbers := case.speech.foreign_numbers(one, case.known):
        return Verdict(statement, End.HELD, why=f"{', '.join(numbers[:3])} is somebody else's number")
    if _is_foreign(case, one, prior, is_anchored=message is not None):
        return Verdict(statement, End.HELD, why="somebody else said it")
    if message is None:
        # A consolidation rewords freely: half of the words of a statement of memory, and no name or number of its own.
        is_old = case.writer is Writer.DREAM and 2 * prior.count(one.terms) >= len(one.terms) > 0
        is_old = is_old and not _is_invented(case, one)
        return Verdict(statement, End.INFERRED, Mark(Trust.INFERRED), is_old=is_old)
    trust = Trust.CONFIRMED if _is_confirmed(case, one, message) else Trust.INFERRED
    verdict = Verdict(statement, End(trust.value), _mark(trust, one, message, case.session), is_anchored=True)
    return ask_if_against(case, verdict, one)


def _judge_line(case: Case, one: Verdict, near: EvidenceText) -> Verdict:
    """A line without an anchor of its own in a memory that has one: the writer's note, if it is about the same."""
    found = case.speech.features(one.text)
    is_new = fold_statement(one.text) not in case.exact and bool(found.terms)
    is_claim = bool(found.names or found.numbers) or _foreign_words(case, found) >= _FOREIGN_WORDS
    is_near = near.count(found.terms) > 0 or any(name in near.lower for name in found.names)
    is_apart = is_claim and not is_near and not _is_translated(case, one.text)
    if is_new and (is_apart or (case.writer is Writer.DREAM and _is_invented(case, found))):
        return hold(one, "you did not say it")
    return ask_if_against(case, one, found)


def _is_invented(case: Case, one: Features) -> bool:
    """Whether a statement has a name or number that neither the user nor a memory has. A consolidation has no other
    sources, except for dates."""
    known = EvidenceText([case.speech.own.text, *(held.text for held in (*case.own, *case.others))])
    return any(value not in known.lower for value in one.names) or not all(map(known.has_number, one.numbers))


def hold(one: Verdict, why: str) -> Verdict:
    return replace(one, end=End.HELD, mark=None, why=why)


def hold_rest(body: str, verdicts: list[Verdict]) -> list[Verdict]:
    """Holds the rest of a sentence whose first part is held: after a semicolon, it depends on it."""
    held = {one.text: one.why for one in verdicts if one.end is End.HELD}
    parts = body_parts(body)
    for (_, before), (one, bare) in pairwise(parts):
        if before in held and body[: one.start].rstrip().endswith((";", "；")) and bare not in held:
            held[bare] = held[before]
    return [hold(one, held[one.text]) if one.text in held and one.end is not End.HELD else one for one in verdicts]


def _is_confirmed(case: Case, one: Features, message: UserMessage) -> bool:
    """Whether one message of the user says all of it: most words in the same order, every number, name and date, the
    same negation and the same relations (before, only, unless)."""
    if not message.can_confirm:
        return False
    prior = [known.text for known in case.own if known.trust is Trust.CONFIRMED]
    near = [text for text in prior if share(one.terms, content_terms(text)) >= 0.5]
    said = EvidenceText([message.stated, *near])
    missing = one.terms - said.terms
    if len(missing) > (1 - CONFIRMED_SHARE) * len(one.terms) or any(map(case.speech.foreign.has, missing)):
        return False
    if not all(map(said.has_number, one.numbers)) or any(name not in said.lower for name in one.names):
        return False
    if any(value not in message.dates and value not in said.lower for value in one.dates):
        return False
    denied = message.denies(one.terms)
    if is_negated(one.text) != (is_negated(said.text) if denied is None else denied):
        return False
    return relations_of(one.text) <= relations_of(said.text) and is_in_order(one.text, said.text)


def _reworded(case: Case, one: Features) -> Verdict | None:
    """A statement that memory has in other words: it keeps the lowest trust of what it is made of. It stays confirmed
    only if it adds nothing and turns nothing round."""
    sources = [
        known
        for known in case.near(one.terms)
        if _shares(one.terms, content_terms(known.text)) and (case.is_own(known) or not known.is_shared)
    ]
    if not sources:
        return None
    nearest = max(sources, key=lambda known: len(one.terms & content_terms(known.text)))
    dated = {term for value in one.dates for term in content_terms(value)}
    terms = one.terms - dated
    if 4 * EvidenceText([nearest.text]).count(terms) >= 3 * len(terms):
        sources = [nearest]
    said = EvidenceText(known.text for known in sources)
    missing = [term for term in terms if not said.has(term)]
    if 4 * len(missing) > len(terms) or any(case.speech.foreign.has(term) for term in missing):
        return None
    if not all(map(said.has_number, one.numbers)):
        return None
    if not one.dates <= features(said.text).dates and not find_days(said.text, _SOME_DAY):
        return None  # a date may take the place of “next Monday”
    if is_negated(one.text) != is_negated(nearest.text):
        return None
    lowest = max((known.end for known in sources), key=[End.CONFIRMED, End.UNMARKED, End.INFERRED].index)
    if lowest is End.CONFIRMED and not says_exactly(one.text, said.text):
        return None
    trust = None if lowest is End.UNMARKED else Trust(lowest.value)
    mark = None if trust is None else replace(nearest.mark or Mark(trust), trust=trust)
    return Verdict(one.text, lowest, mark, is_anchored=lowest is not End.INFERRED, is_old=True)


def _shares(terms: frozenset[str], others: frozenset[str]) -> bool:
    both = len(terms & others)
    return (both >= 2 and (3 * both >= len(terms) or 2 * both >= len(others))) or (both == 1 and len(terms) <= 2)


def ask_if_against(case: Case, one: Verdict, found: Features) -> Verdict:
    """A conclusion against what the user confirmed becomes a question; against the team's it is only marked."""
    own = [known for known in case.own if known.trust is Trust.CONFIRMED and fold_statement(known.text) in case.stays]
    for standing in (*own, *case.confirmed(found.terms)):
        if not contradicts(one.text, standing.text):
            continue
        if standing.trust is Trust.CONFIRMED and one.end is not End.CONFIRMED:
            return replace(hold(one, f"{standing.file} says something else"), contradicts=standing)
        if one.mark is not None and standing.file.startswith("team/"):
            one = replace(one, mark=replace(one.mark, contradicts=standing.file))
    return one


# Text of others that the user asked to keep.


def _adopt(case: Case, one: Features) -> Verdict | None:
    for message in case.speech.said:
        if message.how in ("yes", "adopted") or not points_at_text(message.text):
            continue
        if message.count(one.terms) >= max(min(2, len(one.terms)), len(one.terms) // 2):
            continue  # the user said it in the same breath
        block = _pointed_at(case.speech, message, one)
        if block is not None:
            mark = replace(_mark(Trust.INFERRED, one, message, case.session), how="adopted", source=block.origin.value)
            return Verdict(one.text, End.INFERRED, mark, is_anchored=True)
    return None


def _pointed_at(speech: Speech, message: UserMessage, one: Features) -> Evidence | None:
    """The text of others that the message points at: the nearest one before it that has most of the statement's words
    and every address, name and number of it."""
    bare = [term for term in one.terms if not any(term in value for value in one.dates)]
    for block in reversed(speech.before(message)[-_NEAR_BLOCKS:]):
        text = EvidenceText([block.text, message.text])
        has_facts = all(map(text.has_fact, (*one.addresses, *one.names, *one.numbers)))
        if has_facts and text.count(bare) >= _ADOPTED * len(bare):
            return block
    return None


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
        source="pasted" if message.how == "adopted" else "",
    )
