"""Combines the signals: one score for the ranking, and the decision whether anything is shown at all. The few numbers
are all here (see docs/decisions/0008-local-ranker.md and 0036-recall-stays-silent.md; `reverie lab recall DIR --fit`
fits those of the semantic tier). For most prompts showing nothing is right."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from heapq import nlargest
from typing import Final, Protocol

from reverie.quick import dataclass
from reverie.text.word_lists import FUNCTION_WORDS
from reverie.text.words import words

WORDS: Final = 1.0
"""Weight of the shared words beyond the usual; closeness in meaning has weight 1."""
USUAL_SHARE: Final = 0.25
"""A share of words that a quarter of all files reach is usual for a query and does not favour any of them."""
TOOL: Final = 0.2
"""Added for a file about a tool in use."""
TOOL_EVIDENCE: Final = 4.0
"""A file about a tool in use counts as if its words gave this much more evidence. Alone it is not enough."""
EVIDENCE: Final = 0.01
"""Weight of the evidence in the order of the built-in tier."""
SECOND: Final = 0.6
"""Weight of the second-best evidence: a prompt about this project shares words with more than one memory."""
USUAL_AMONG: Final = 12
"""Fewer files cannot show what is usual."""
CHANCE: Final = 0.25
"""The share of words that the best of some hundred files has in common with any prompt."""
FOREIGN_WORDS: Final = 4
FOREIGN_SHARE: Final = 0.15
"""English sentences have more function words than this."""
UNKNOWN_MEANING: Final = 0.15
"""Assumed for a file that is not encoded yet: the value of an unrelated file."""


@dataclass(frozen=True, slots=True)
class RankSignals:
    """The signals of one file for one query. `meaning` is None without vectors; `usual` is the share of words that
    other files have as well."""

    words: float
    meaning: float | None
    tool: float
    usual: float = 0.0
    related: float = 0.0
    """What words of a related meaning add to `words`, for the order only."""
    evidence: float = 0.0
    """How much the shared words say, as a logarithm; see `ranking.evidence`."""


@dataclass(frozen=True, slots=True)
class ShowGate:
    """A logistic model of whether a query has anything to find, and the share of the best score that others need."""

    names: tuple[str, ...]
    weights: tuple[float, ...]
    bias: float
    least: float
    of_best: float

    def probability(self, values: tuple[float, ...]) -> float:
        z = self.bias + sum(weight * value for weight, value in zip(self.weights, values, strict=True))
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, z))))


SEMANTIC_GATE: Final = ShowGate(
    ("meaning", "nearness", "manner", "foreign", "words"), (10.2, 14.9, 0.48, 2.5, 7.3), -3.9, least=0.5, of_best=0.65
)
EVIDENCE_LEAST: Final = 1.25
"""The evidence in words that is needed to show anything in a directory of one file,"""
EVIDENCE_PER_FILES: Final = 0.9
"""and how much more per e-fold of files: in more files more is shared by chance."""
MEANING_LEAST: Final = 0.26
"""With an encoder, the closest memory is at least this close, or there is evidence in words."""
GENERAL: Final = 0.5
"""How much more evidence it needs per point of `manner` below 0: the manner of a prompt may silence, never show."""
BUILTIN_OF_BEST: Final = 0.4


def score(signals: RankSignals, semantic: bool) -> float:
    """The score for the ranking."""
    if not semantic:
        return signals.words + signals.related + TOOL * signals.tool + EVIDENCE * max(0.0, signals.evidence)
    meaning = UNKNOWN_MEANING if signals.meaning is None else signals.meaning
    return meaning + WORDS * max(0.0, signals.words + signals.related - signals.usual) + TOOL * signals.tool


def usual_share(shares: Iterable[float], files: int) -> float:
    """The share of words where the best quarter of the files begins."""
    if files < USUAL_AMONG:
        return 0.0
    place = int(USUAL_SHARE * files)
    best = nlargest(place + 1, shares)
    return best[place] if len(best) > place else 0.0


def foreign_signal(query: str) -> float:
    """1 if the prompt is not in English, where meaning and manner say less; else 0."""
    said = words(query)
    if len(said) < FOREIGN_WORDS:
        return 0.0
    return float(sum(word in FUNCTION_WORDS for word in said) < FOREIGN_SHARE * len(said))


class Scored(Protocol):
    """What the decision needs to know about a candidate."""

    @property
    def score(self) -> float: ...
    @property
    def signals(self) -> RankSignals: ...


@dataclass(frozen=True, slots=True)
class Decision:
    """How many of the best to show. `silent` is why nothing is shown, `reason` why the next one is not shown, `grounds`
    the values behind the confidence."""

    show: int
    confidence: float
    grounds: tuple[tuple[str, float], ...]
    silent: str
    reason: str


def decide(
    query: str, ranked: Sequence[Scored], *, files: int, manner: float, nearness: float | None, limit: int
) -> Decision:
    """`files`: how many the directory has. `manner` and `nearness` say how much the prompt is about current work;
    `nearness` is None without an encoder."""
    if not ranked:
        return Decision(0, 0.0, (), "no memory shares a word or a meaning with the prompt", "")
    evidence = evidence_of(ranked[:limit])
    needed = EVIDENCE_LEAST + EVIDENCE_PER_FILES * math.log(max(1, files))
    if nearness is None:
        of_best = BUILTIN_OF_BEST
        least = needed + GENERAL * max(0.0, -manner)
        confidence = 1 / (1 + math.exp(max(-30.0, min(30.0, least - evidence))))
        grounds = (("evidence", evidence), ("needed", least))
        shows, reached = evidence >= least, f"evidence in words {evidence:.1f} of the {least:.1f} needed"
    else:
        gate, of_best = SEMANTIC_GATE, SEMANTIC_GATE.of_best
        words = max(0.0, max(one.signals.words + TOOL * one.signals.tool for one in ranked) - CHANCE)
        closest = max(one.signals.meaning or 0.0 for one in ranked)
        values = (closest, nearness, manner, foreign_signal(query), words)
        confidence = gate.probability(values)
        grounds = (*zip(gate.names, values, strict=True), ("evidence", evidence))
        found = closest >= MEANING_LEAST or evidence >= needed
        named = ", ".join(f"{name} {value:.2f}" for name, value in grounds)
        shows, reached = found and confidence >= gate.least, f"{named}: {confidence:.2f} of the {gate.least:.2f} needed"
    if not shows:
        silent = f"nothing is close enough ({reached})"
        return Decision(0, confidence, grounds, silent, "the prompt does not seem to need a memory")
    least_score = of_best * ranked[0].score
    show = sum(one.score >= least_score for one in ranked[:limit])
    reason = f"below {of_best:.0%} of the best score" if show < limit else f"not among the best {limit}"
    return Decision(show, confidence, grounds, "", reason)


def evidence_of(best: Sequence[Scored]) -> float:
    """The evidence in words that a prompt means these memories: of the one with most, and a part of the next one's."""
    found = nlargest(2, (max(0.0, one.signals.evidence + TOOL_EVIDENCE * one.signals.tool) for one in best))
    return sum(weight * one for weight, one in zip((1.0, SECOND), found, strict=False))
