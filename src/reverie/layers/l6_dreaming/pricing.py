"""Fork or fresh: which way of dreaming is cheaper, by the catalogue's prices, in tokens of fresh input. Pure.

A fork finds the conversation in the cache, but reads all of it every round. A fresh agent pays once for its own system
prompt and reads only that. What both add to their context is the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from reverie.models.catalogue import ModelFacts
from reverie.moments import SKEW_S, parse_time
from reverie.storage.transcript.view import View

Way = Literal["fork", "fresh"]

USUAL_ROUNDS = 12
"""Rounds of a dream if there was none yet."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the prefix of a dream costs in all its rounds, both ways, as tokens of fresh input."""

    fork: float
    fresh: float
    rounds: int

    @property
    def way(self) -> Way:
        return "fork" if self.fork <= self.fresh else "fresh"

    def told(self) -> str:
        return f"about {self.fork:,.0f} tokens as a fork, {self.fresh:,.0f} fresh, over {self.rounds} rounds"


def estimate(
    facts: ModelFacts,
    *,
    conversation: int,
    own: int,
    cached: bool,
    markers: bool | None = None,
    rounds: int = USUAL_ROUNDS,
) -> Estimate:
    """Estimates both ways. `conversation`: tokens of a fork's prefix, `own`: of a fresh one; `cached`: the fork's is
    cached now; `markers`: whether the endpoint takes cache markers, if it differs from the catalogue."""
    marked = facts.cache_markers if markers is None else markers

    def prefix(tokens: int, *, is_cached: bool) -> float:
        if not (marked or facts.automatic_cache) or tokens < facts.cache_minimum:
            return float(tokens * rounds)
        first = facts.cache_read if is_cached else facts.cache_write_5m if marked else 1.0
        return tokens * (first + (rounds - 1) * facts.cache_read)

    return Estimate(prefix(conversation, is_cached=cached), prefix(own, is_cached=False), rounds)


def expected_rounds(last: int) -> int:
    """Returns the expected rounds after a dream of `last` rounds (0: none yet)."""
    return max(USUAL_ROUNDS // 2, last) if last else USUAL_ROUNDS


def is_cached(view: View, now: datetime) -> bool:
    """Returns whether the server still has the prefix of this conversation."""
    last = next((entry for entry in reversed(view.entries) if entry.message.role == "assistant"), None)
    answered = parse_time(last.timestamp) if last is not None else None
    if view.header is None or answered is None:
        return False
    passed = (now - answered).total_seconds()
    return -SKEW_S <= passed < (3_600 if view.header.ttl == "1h" else 300)
