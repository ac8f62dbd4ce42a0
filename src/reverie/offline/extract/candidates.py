"""What to keep of the new messages: per message one paragraph that states something outright, unchanged.

A sentence cut out of its paragraph loses its reason and the meaning of its pronouns. So the whole paragraph is kept,
without greetings, questions and tasks. What the user asks to keep begins with that sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from reverie.memory.secrets.scan import find_secrets
from reverie.memory.taxonomy import MemoryType
from reverie.offline.language.marks import Marked, MarkedMessage
from reverie.offline.language.stating import kind_of, moves_a_day
from reverie.quick import dataclass
from reverie.text.words import content_terms

_LANGUAGES = ("en", "de")
"""In other languages too much of what it kept was wrong (decision 0034): there it only removes on request."""
_SAYS_WHAT = 4
"""Content words of a sentence that says by itself what to keep: "remember this" does not."""
_STRENGTH = (MemoryType.USER, MemoryType.REFERENCE, MemoryType.FEEDBACK, MemoryType.PROJECT)
"""Of several kinds in one paragraph the first one counts."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something to keep: what was said, sentence by sentence."""

    type: MemoryType
    said: tuple[Marked, ...]
    only_updates: bool = False
    """Not a memory by itself: it corrects an existing one."""

    @property
    def message(self) -> MarkedMessage:
        return self.said[0].message

    @property
    def is_asked_for(self) -> bool:
        """The user asks to keep it."""
        return any(one.has("remember") for one in self.said)

    @property
    def turns(self) -> bool:
        """It mentions how something was before."""
        return any(one.has("changed") for one in self.message.marked)

    @property
    def is_change(self) -> bool:
        """It says that something has changed, or changes from now on."""
        return self.turns or any(one.has("standing") for one in self.message.marked)

    @property
    def terms(self) -> frozenset[str]:
        return content_terms(" ".join(one.text for one in self.said))


def find_candidates(messages: Sequence[MarkedMessage]) -> list[Candidate]:
    """Of all new messages, in order: none up to one that asks to forget, none beside one that is in doubt."""
    last = max((at for at, message in enumerate(messages) if message.forgets), default=-1)
    unmeant = {at + step for at, message in enumerate(messages) if message.is_play for step in (-1, 0, 1)}
    meant = [message for at, message in enumerate(messages) if at > last and at not in unmeant and not message.is_void]
    known = [message for message in meant if message.tongue in _LANGUAGES]
    found = [one for message in known if (one := next(_in_message(message), None)) is not None]
    return [one for one in found if not find_secrets(" ".join(each.text for each in one.said))]


def _in_message(message: MarkedMessage) -> Iterator[Candidate]:
    for _, group in groupby(message.marked, key=lambda one: one.paragraph):
        own = list(group)
        if any(one.is_in_doubt for one in own):
            continue
        kinds = {kind_of(one, is_led=any(each.is_plain for each in own[:at])) for at, one in enumerate(own)}
        if any(one.is_only_asking for one in own) and any(map(_is_kept, own)):
            kinds.add(MemoryType.PROJECT if any(one.is_ahead for one in own) else MemoryType.FEEDBACK)
        kind = next((kind for kind in _STRENGTH if kind in kinds), None)
        if kind is None and any(map(moves_a_day, own)):
            yield Candidate(MemoryType.PROJECT, tuple(filter(_is_kept, own)), only_updates=True)
        elif kind is not None:
            is_order = any(one.leans and one.has("standing") for one in own)
            said = [one for one in own if _is_kept(one) or (is_order and one.has("requests"))]
            asked = [one.text for one in own if one.is_asked]
            said = _asked_for(said) or said
            if not content_terms(" ".join(asked)) & content_terms(" ".join(one.text for one in said)):
                yield Candidate(kind, tuple(said))  # otherwise its subject may be in the question


def _asked_for(said: Sequence[Marked]) -> list[Marked]:
    """The sentence that the user asks to keep, and what follows it; nothing if it does not say by itself what."""
    for at, one in enumerate(said):
        if one.has("remember") and len(content_terms(one.text)) >= _SAYS_WHAT:
            return list(said[at:])
    return []


def _is_kept(one: Marked) -> bool:
    """It is not a greeting, a question or a task."""
    is_task = one.has("requests") and not one.has("reason") and kind_of(one) is None
    return one.is_plain and not is_task and not one.is_only_asking
