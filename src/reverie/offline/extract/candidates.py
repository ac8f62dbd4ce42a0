"""What is worth keeping of the new messages: sentences that state something outright, and what is told beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reverie.memory.secrets.scan import find_secrets
from reverie.memory.taxonomy import MemoryType
from reverie.offline.language.marks import Marked, Message
from reverie.offline.language.stating import kind_of, moves_a_day
from reverie.text.words import content_terms

_BESIDE = 2  # sentences that go along


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something to keep: what was said, and why."""

    type: MemoryType
    said: tuple[Marked, ...]
    why: tuple[Marked, ...] = ()
    only_updates: bool = False
    """It is nothing by itself: it puts a memory right, if there is one."""

    @property
    def message(self) -> Message:
        return self.said[0].message

    @property
    def is_change(self) -> bool:
        """It says that something is other than it was."""
        return any(one.has("changed") or one.has("standing") for one in self.message.marked)

    @property
    def terms(self) -> frozenset[str]:
        return content_terms(" ".join(one.text for one in (*self.said, *self.why)))


def find_candidates(messages: Sequence[Message]) -> list[Candidate]:
    """Of all new messages, in order: none up to one that asks to forget something, none that the next takes back."""
    last = max((at for at, message in enumerate(messages) if message.forgets), default=-1)
    taken_back = {at - 1 for at, message in enumerate(messages) if message.is_void}
    meant = [message for at, message in enumerate(messages) if at > last and at not in taken_back]
    found = [one for message in meant for one in _in_message(message)]
    persons = [one for one in found if one.type is MemoryType.USER]
    if len(persons) > 1:  # what the person is comes together as one
        found = [one for one in found if one.type is not MemoryType.USER]
        found.insert(0, Candidate(MemoryType.USER, tuple(each for one in persons for each in one.said)))
    return [one for one in found if not find_secrets(" ".join(each.text for each in (*one.said, *one.why)))]


def _in_message(message: Message) -> Iterator[Candidate]:
    stated = [kind_of(one) for one in message.marked]
    kinds = [
        kind or (MemoryType.PROJECT if moves_a_day(one) else None)
        for kind, one in zip(stated, message.marked, strict=True)
    ]
    at = 0
    while at < len(kinds):
        kind, end = kinds[at], at + 1
        while end < len(kinds) and kinds[end] is kind:
            end += 1
        if kind is not None:
            beside = message.marked[end : end + _BESIDE]
            told = [one for at, one in enumerate(beside) if all(_goes_along(each) for each in beside[: at + 1])]
            why = [one for one in told if one.has("reason")]
            said = [*message.marked[at:end], *(one for one in told if one not in why)]
            before = message.marked[at - 1] if at and kind is MemoryType.FEEDBACK else None
            if before is not None and kinds[at - 1] is None and _goes_along(before) and not told:
                why.insert(0, before)
            yield Candidate(kind, tuple(said), tuple(why), only_updates=not any(stated[at:end]))
        at = end


def _goes_along(one: Marked) -> bool:
    """Tells something, and is nothing by itself."""
    return one.is_plain and not one.has("requests") and not one.asks_to_forget and kind_of(one) is None
