"""`reverie lab billing`: a long session is billed in process, nearly all of it from the cache."""

from __future__ import annotations

from bench.billing import ROUNDS, TOKENS, measure_billing


def test_two_hundred_rounds_are_billed() -> None:
    billed = measure_billing()
    assert billed.rounds == ROUNDS and billed.tokens > TOKENS
    assert billed.hit_rate > 0.97
