"""What is worth keeping of the new messages: each sentence that states something outright, with the reason behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reverie.memory.secrets.scan import find_secrets
from reverie.memory.taxonomy import MemoryType
from reverie.offline.language.marks import Marked, Message
from reverie.offline.language.stating import kind_of
from reverie.text.words import content_terms


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something to keep: what was said, and why."""

    type: MemoryType
    said: tuple[Marked, ...]
    why: tuple[Marked, ...] = ()

    @property
    def message(self) -> Message:
        return self.said[0].message

    @property
    def terms(self) -> frozenset[str]:
        return content_terms(" ".join(one.text for one in (*self.said, *self.why)))


def find_candidates(messages: Sequence[Message]) -> list[Candidate]:
    """Of all new messages, in order. A message that asks to forget something, and all before it, adds nothing."""
    last = max((at for at, message in enumerate(messages) if message.forgets), default=-1)
    found = [one for message in messages[last + 1 :] for one in _in_message(message)]
    persons = [one for one in found if one.type is MemoryType.USER]
    if len(persons) > 1:  # what the person is comes together as one
        found = [one for one in found if one.type is not MemoryType.USER]
        found.insert(0, Candidate(MemoryType.USER, tuple(each for one in persons for each in one.said)))
    return [one for one in found if not find_secrets(" ".join(each.text for each in (*one.said, *one.why)))]


def _in_message(message: Message) -> Iterator[Candidate]:
    kinds = [kind_of(one) for one in message.marked]
    at = 0
    while at < len(kinds):
        kind, end = kinds[at], at + 1
        while end < len(kinds) and kinds[end] is kind:
            end += 1
        if kind is not None:
            after = message.marked[end] if end < len(kinds) else None
            explains = after is not None and kinds[end] is None and after.is_plain and _is_reason(after)
            yield Candidate(kind, tuple(message.marked[at:end]), (after,) if explains and after else ())
        at = end


def _is_reason(one: Marked) -> bool:
    return (one.has("reason") or one.leans) and not one.has("requests") and not one.asks_to_forget
