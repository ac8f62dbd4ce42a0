"""What is worth keeping of the new messages: sentences of one kind together, with the reasons beside them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from reverie.memory.gate.evidence import is_assent
from reverie.memory.secrets.scan import find_secrets
from reverie.memory.taxonomy import MemoryType
from reverie.offline.extract.judging import ENOUGH, points
from reverie.offline.extract.marks import Marked, Message
from reverie.offline.extract.systems import IN_REPOSITORY
from reverie.offline.language.prose import sentences
from reverie.text.words import content_terms

_RATHER = re.compile(
    r"^(?:please |just |and )*(?:use|keep|put|write|return|prefer|ask|leave|say|stick|go with|take)\b", re.IGNORECASE
)
"""What to do instead, right after what not to do."""
_RULE = re.compile(
    r"(?:please |pls |and |but |so |also )*(?:don'?t|do not|never|always|stop \w+ing"
    r"|only (?:do|use|write|touch|change|run))"
    r" (?!know\b|think\b|have\b|worry\b|forget\b)\w+",
    re.IGNORECASE,
)
"""How a sentence opens that tells the agent what to do."""
_MYSELF = re.compile(r"(?:[\w ]+: )?(?:i\b|ich\b|soy\b|我|私)", re.IGNORECASE)
_FEW = 3  # content words: a sentence with fewer leans on the one before it
_REASONS = 2  # sentences of reasons that go along


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something to keep: what was said, and why."""

    type: MemoryType
    said: tuple[Marked, ...]
    why: tuple[Marked, ...] = ()
    confirmed: str = ""
    """What the agent had proposed, where the person said yes to it in few words."""
    points: float = 0.0
    terms: frozenset[str] = field(default=frozenset())

    @property
    def message(self) -> Message:
        return self.said[0].message

    @property
    def sentences(self) -> tuple[Marked, ...]:
        return (*self.said, *self.why)


def find_candidates(messages: Sequence[Message]) -> list[Candidate]:
    """Of all new messages, in order; what the person is comes together as one."""
    found: list[Candidate] = []
    for message in messages:
        if not message.shape.is_void:
            found += _in_message(message)
    persons = [one for one in found if one.type is MemoryType.USER]
    if len(persons) > 1:
        together = Candidate(
            MemoryType.USER,
            tuple(each for one in persons for each in one.said),
            tuple(each for one in persons for each in one.why),
            points=max(one.points for one in persons),
        )
        found = [one for one in found if one.type is not MemoryType.USER]
        found.insert(0, together)
    return [_with_terms(one) for one in found if _is_fit(one)]


def _in_message(message: Message) -> Iterator[Candidate]:
    kinds = _kinds(message)
    taken: set[int] = set()
    at = 0
    while at < len(kinds):
        kind = kinds[at]
        if kind is None:
            at += 1
            continue
        group = [at]
        step = at + 1
        while step < len(kinds) and (
            kinds[step] is kind
            or (step + 1 < len(kinds) and kinds[step + 1] is kind and _is_plain(message, step, kinds))
        ):
            group.append(step)
            step += 1
        taken.update(group)
        said = [message.marked[i] for i in group]
        why: list[Marked] = []
        for i in range(step, min(step + _REASONS + 1, len(kinds))):
            if kinds[i] is not None or message.marked[i].is_asked or len(said) + len(why) == len(group) + _REASONS:
                break
            if _goes_along(message, i, kinds, kind):
                one = message.marked[i]
                explains = (one.has("reason") or one.has("mishap")) and not _is_rule(one)
                (why if explains else said).append(one)
                taken.add(i)
        before = at - 1
        stands = before >= 0 and before not in taken and kinds[before] is None
        if stands and _leans(said, kind) and _may_be_leant_on(message, before, kinds, said[0].has("keep_on")):
            said.insert(0, message.marked[before])
            taken.add(before)
            further = before - 1
            if said[1].has("keep_on") and further >= 0 and further not in taken and _is_plain(message, further, kinds):
                said.insert(0, message.marked[further])
        elif (
            kind is MemoryType.FEEDBACK
            and before >= 0
            and before not in taken
            and _is_plain(message, before, kinds)
            and not why
            and not _is_rule(message.marked[before])
            and any(message.marked[before].has(mark) for mark in ("reason", "mishap", "displeased"))
        ):
            why.insert(0, message.marked[before])
        elif kind is MemoryType.PROJECT and stands and _bars_for_now(message.marked[before]):
            said.insert(0, message.marked[before])
            taken.add(before)
        best = max(points(message.marked[i]).get(kind, 0.0) for i in group)
        yield Candidate(kind, tuple(said), tuple(why), _confirmed(message, said, kind), best)
        at = max(step, at + 1)


def _kinds(message: Message) -> list[MemoryType | None]:
    """The kind each sentence is of: the one with the most points beyond what is enough."""
    found: list[MemoryType | None] = []
    for one in message.marked:
        scored = [(given - ENOUGH[kind], kind) for kind, given in points(one).items() if given >= ENOUGH[kind]]
        kind = max(scored, key=lambda each: each[0])[1] if scored else None
        if (
            kind is MemoryType.FEEDBACK
            and not one.has("standing")
            and any(each is MemoryType.USER for _, each in scored)
        ):
            kind = MemoryType.USER  # what follows from it is said with it
        if kind is MemoryType.PROJECT and not one.is_ahead and any(each is MemoryType.USER for _, each in scored):
            kind = MemoryType.USER  # when it began
        if (
            kind is MemoryType.REFERENCE
            and _MYSELF.match(one.bare)
            and any(each is MemoryType.USER for _, each in scored)
        ):
            kind = MemoryType.USER  # a tool somebody works with is no place
        ahead = [each for _, each in scored if each is not MemoryType.FEEDBACK]
        if kind is MemoryType.FEEDBACK and ahead and one.has("remember") and not one.has("standing"):
            kind = ahead[0]  # what shall be remembered is a fact
        if (
            kind is MemoryType.FEEDBACK
            and one.has("parked")
            and not one.has("standing")
            and MemoryType.PROJECT in ahead
        ):
            kind = MemoryType.PROJECT  # why work is put aside is no rule
        for_now = one.is_ahead and one.has("limit") and not one.has("standing") and not one.has("habit")
        if kind is MemoryType.FEEDBACK and for_now and MemoryType.PROJECT in ahead:
            kind = MemoryType.PROJECT  # what is barred until a day
        after_rule = bool(found) and found[-1] is MemoryType.FEEDBACK
        if kind is MemoryType.USER and after_rule and not one.bare.lower().startswith(("i'm", "i am", "im ")):
            kind = None  # why the rule is so, not who somebody is
        if kind is MemoryType.PROJECT and after_rule and not one.is_ahead and (one.has("mishap") or " it " in one.bare):
            kind = None  # what went wrong without the rule
        found.append(kind)
    for at, (kind, after) in enumerate(pairwise(found)):
        if (
            kind is MemoryType.FEEDBACK
            and after is MemoryType.PROJECT
            and len(content_terms(message.marked[at].bare)) < _FEW
        ):
            found[at] = None  # “No X.”, and then what was decided
    return found


def _is_plain(message: Message, at: int, kinds: Sequence[MemoryType | None]) -> bool:
    """A sentence that tells something and is nothing by itself."""
    one = message.marked[at]
    if kinds[at] is not None or one.is_asked or one.is_filler or one.is_request or one.has("quoted"):
        return False
    return not one.has("once")


def _may_be_leant_on(message: Message, at: int, kinds: Sequence[MemoryType | None], points_back: bool) -> bool:
    """A sentence that tells something; where the next one says “that is the rule”, also one that asks for something."""
    one = message.marked[at]
    return _is_plain(message, at, kinds) or (points_back and not one.is_asked and not one.is_filler)


def _goes_along(message: Message, at: int, kinds: Sequence[MemoryType | None], kind: MemoryType) -> bool:
    one = message.marked[at]
    if kinds[at] is not None or one.is_asked or one.is_filler or one.has("quoted"):
        return False
    explains = any(one.has(mark) for mark in ("reason", "mishap", "permits", "forbids", "excepts", "habit"))
    if kind is not MemoryType.FEEDBACK and _is_rule(one) and (one.has("reason") or one.has("mishap")):
        return False  # a rule with a reason of its own
    if kind is MemoryType.FEEDBACK:
        is_reason = one.has("reason") or one.has("mishap") or one.has("forbids") or bool(_RATHER.search(one.bare))
        return is_reason or (explains and not one.is_request) or _is_plain(message, at, kinds)
    return _is_plain(message, at, kinds) or (explains and not one.is_request)


def _is_rule(one: Marked) -> bool:
    """A sentence that opens by saying what to do or not to do: it may give its own reason, and is none for another."""
    return bool(_RULE.match(one.bare))


def _bars_for_now(one: Marked) -> bool:
    """What is not to be touched for a while: the sentence after it says why, and how long."""
    return one.has("forbids") and one.has("once") and not one.is_asked


def _leans(said: Sequence[Marked], kind: MemoryType) -> bool:
    """Whether what was said cannot be understood alone."""
    first = said[0]
    if kind is MemoryType.USER:
        return False
    return first.has("keep_on") or first.leans or len(content_terms(first.bare)) < _FEW


def _confirmed(message: Message, said: Sequence[Marked], kind: MemoryType) -> str:
    """The agent's proposal, if the person took it up without saying what it was."""
    if kind is not MemoryType.FEEDBACK or not message.shape.is_pleased or not is_assent(message.said.text):
        return ""
    own = [term for one in said for term in content_terms(one.bare)]
    if len(set(own)) > 2 * _FEW:
        return ""
    proposal = [one.text for one in sentences(message.said.answer) if len(content_terms(one.text)) >= _FEW]
    return proposal[0] if proposal else ""


def _is_fit(one: Candidate) -> bool:
    """Not what must never be kept: secrets, where code is, what was done in this session."""
    text = " ".join(each.text for each in one.sentences)
    if find_secrets(text) and one.type is not MemoryType.REFERENCE:
        return False
    if one.type is not MemoryType.REFERENCE and len(content_terms(text)) < 2:
        return False
    if any(each.has("remember") for each in one.said) and IN_REPOSITORY.search(text):
        return one.points >= ENOUGH[one.type] + 2
    return True


def _with_terms(one: Candidate) -> Candidate:
    said = " ".join(each.bare for each in one.sentences)
    return Candidate(one.type, one.said, one.why, one.confirmed, one.points, content_terms(said))


def all_terms(messages: Iterable[Message]) -> frozenset[str]:
    """The content words of everything a person said."""
    found = {term for message in messages for term in content_terms(message.said.text)}
    for message in messages:
        if any(
            one.has("forget") or one.has("excepts") for one in message.marked
        ):  # “that one”: what the agent has just spoken of
            found.update(content_terms(message.said.answer))
    return frozenset(found)
