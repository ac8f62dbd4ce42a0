"""Finds what is new in a caller's messages: all of them, the end of what is known and more, or only new ones. Pure.

Messages are compared by their fingerprints. A caller who changed something that was sent before is noticed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise, takewhile

from reverie.quick import dataclass


@dataclass(frozen=True, slots=True)
class Recognised:
    """The first `kept` known items stay; the given ones from `new` on are appended."""

    kept: int
    new: int


def recognise(
    known: Sequence[str],
    given: Sequence[str],
    *,
    unique: Collection[str] = (),
    answered: bool = True,
    whole: bool | None = None,
) -> Recognised:
    """Compares fingerprints; an empty one (thinking) is skipped. `unique` are those that no other message has by
    accident. `answered`: the last known item is an answer. `whole` says what was given, if the caller knows."""
    places = [place for place, one in enumerate(given) if one]
    found = _recognise([one for one in known if one], [given[place] for place in places], unique, answered, whole)
    kept = _place(known, found.kept)
    return Recognised(kept, places[found.new - 1] + 1 if found.new else 0)


def _place(items: Sequence[str], count: int) -> int:
    """Returns the place after the first `count` items that are not empty; all empty ones at the end belong to them."""
    if count == sum(1 for one in items if one):
        return len(items)
    filled = [place for place, one in enumerate(items) if one]
    return filled[count - 1] + 1 if count else 0


def _recognise(
    known: list[str], given: list[str], unique: Collection[str], answered: bool, whole: bool | None
) -> Recognised:
    is_again = bool(given) and known[-len(given) :] == given
    if whole is False:
        return Recognised(len(known), len(given) if is_again and not answered else 0)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(known, given, strict=False)))
    if whole or same == len(known):
        return Recognised(same, same)
    if is_again:
        return Recognised(len(known), len(given))  # the last request again
    if same == len(given) == 1 and answered:
        return Recognised(len(known), 0)  # the user says the first message again
    if same:
        return Recognised(same, same)
    overlap = next((n for n in range(min(len(known), len(given)), 0, -1) if known[-n:] == given[:n]), 0)
    if overlap:
        return Recognised(len(known), overlap)
    before, pairs = set(known), set(pairwise(known))
    if any(one in before and one in unique for one in given) or any(pair in pairs for pair in pairwise(given)):
        return Recognised(0, 0)  # the beginning was replaced, and later messages are the known ones
    return Recognised(len(known), 0)
