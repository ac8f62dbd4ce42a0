"""The decision what of a ranking to show, and whether to say nothing. Every memory that is left out has its reason.

Showing nothing is the right answer to most prompts for anybody; showing the manual of a tool in use, or a memory that
something newer has replaced, is never right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from reverie.memory.recall.ranking.mixture import (
    BUILTIN_GATE,
    SEMANTIC_GATE,
    Signals,
    foreign_signal,
    length_signal,
    score,
    words_signal,
)


class Scored(Protocol):
    """What the decision needs of a candidate."""

    @property
    def score(self) -> float: ...
    @property
    def signals(self) -> Signals: ...


@dataclass(frozen=True, slots=True)
class Decision:
    """How many of the best to show, and why not more."""

    show: int
    confidence: float
    grounds: tuple[tuple[str, float], ...]
    """What the confidence was made of."""
    silent: str
    """Why nothing is shown; empty if something is."""
    reason: str
    """Why the next one is not shown."""


def decide(query: str, ranked: Sequence[Scored], *, manner: float, nearness: float | None, limit: int) -> Decision:
    """`manner` and `nearness` say how much the prompt is about work at hand; `nearness` is None without an encoder."""
    if not ranked:
        return Decision(0, 0.0, (), "no memory shares a word or a meaning with it", "")
    words = words_signal(max(score(one.signals, semantic=False) for one in ranked))
    if nearness is None:
        gate = BUILTIN_GATE
        values = (words, manner, length_signal(query), foreign_signal(query))
    else:
        gate = SEMANTIC_GATE
        closest = max(one.signals.meaning or 0.0 for one in ranked)
        values = (closest, nearness, manner, foreign_signal(query), words)
    confidence = gate.probability(values)
    grounds = tuple(zip(gate.names, values, strict=True))
    if confidence < gate.least:
        named = ", ".join(f"{name} {value:.2f}" for name, value in grounds)
        silent = f"nothing is close enough ({named}: {confidence:.2f} of the {gate.least:.2f} needed)"
        return Decision(0, confidence, grounds, silent, "the prompt does not seem to need a memory")
    least = gate.of_best * ranked[0].score
    show = sum(one.score >= least for one in ranked[:limit])
    reason = f"below {gate.of_best:.0%} of the best score" if show < limit else f"not among the best {limit}"
    return Decision(show, confidence, grounds, "", reason)
