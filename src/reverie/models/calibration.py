"""Learns how many tokens content has from the usage of each response: one weight per content class.

A Kalman filter over a dozen weights. Every response reports by how much the prompt grew, and the weights of the classes
that grew are corrected. Surprising figures count less and absurd ones not at all, because content can be hidden.
"""

from __future__ import annotations

import math
import operator
from dataclasses import replace
from functools import cache

from reverie.models.features import Feature, Features
from reverie.quick import dataclass


@dataclass(frozen=True, slots=True)
class _Belief:
    """What is assumed about one weight before any usage is seen."""

    mean: float
    spread: float
    shared: float
    """How far all weights are expected to be off together: another tokenizer moves every class at once."""
    low: float
    high: float


_CLASS = _Belief(mean=1.0, spread=0.1, shared=0.25, low=0.4, high=2.5)
_BELIEFS: dict[Feature, _Belief] = dict.fromkeys(Feature, _CLASS) | {
    Feature.SEALED_THINKING: replace(_CLASS, spread=0.3),
    Feature.NON_ASCII: replace(_CLASS, spread=0.3),
    Feature.MEDIA: _Belief(mean=1.0, spread=0.3, shared=0.0, low=0.1, high=3.0),
    Feature.ROUNDS: _Belief(mean=6.0, spread=60.0, shared=0.0, low=0.0, high=1_000.0),
    Feature.TURNS: _Belief(mean=10.0, spread=60.0, shared=0.0, low=0.0, high=2_000.0),
}

_NOISE = 80.0
_RELATIVE_NOISE = 0.1
"""The error of a growth even with the right weights: in tokens, and as a share of it."""

_DRIFT = 0.03
"""Work changes over time: each response adds this share of the first uncertainty."""

_SURPRISING = 2.5
_ABSURD = 8.0
"""In standard deviations: above the first a figure counts less, above the second not at all."""


@dataclass(frozen=True, slots=True)
class Calibrator:
    """The weights learnt so far, for one model. `observe` returns the next one. Begin with `Calibrator.prior()`."""

    weights: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    observations: int = 0

    @staticmethod
    def prior() -> Calibrator:
        """The weights of a model that has not answered yet."""
        return Calibrator(tuple(belief.mean for belief in _BELIEFS.values()), _uncertainty(1.0))

    def estimate(self, features: Features) -> float:
        """Tokens this content adds to the prompt; negative where content leaves it."""
        return sum(map(operator.mul, self.weights, features.values))

    def observe(self, features: Features, growth: int) -> Calibrator:
        """Learns that the prompt grew by `growth` tokens for these features; ignores growth that is not positive."""
        if growth <= 0:
            return self
        x = features.values
        expected = self.estimate(features)
        spread = [sum(p * v for p, v in zip(row, x, strict=True)) for row in self.covariance]
        known = sum(s * v for s, v in zip(spread, x, strict=True))
        noise = (_NOISE + _RELATIVE_NOISE * max(expected, growth)) ** 2
        surprise = abs(growth - expected) / math.sqrt(known + noise)
        if surprise > _ABSURD:
            return self
        noise *= max(1.0, surprise / _SURPRISING) ** 2
        gain = [s / (known + noise) for s in spread]
        weights = tuple(
            min(belief.high, max(belief.low, w + k * (growth - expected)))
            for w, k, belief in zip(self.weights, gain, _BELIEFS.values(), strict=True)
        )
        covariance = tuple(
            tuple(p - gain[i] * spread[j] + drift for j, (p, drift) in enumerate(zip(row, added, strict=True)))
            for i, (row, added) in enumerate(zip(self.covariance, _uncertainty(_DRIFT), strict=True))
        )
        return Calibrator(weights, covariance, self.observations + 1)


@cache
def _uncertainty(share: float) -> tuple[tuple[float, ...], ...]:
    beliefs = tuple(_BELIEFS.values())
    return tuple(
        tuple(share**2 * (a.shared * b.shared + (a.spread**2 if i == j else 0.0)) for j, b in enumerate(beliefs))
        for i, a in enumerate(beliefs)
    )
