"""How fast a long session is billed, in process."""

from __future__ import annotations

from reverie.lab.billing import ROUNDS, TOKENS, measure_billing
from tests.work import cpu_limit


def test_two_hundred_rounds_of_150k_tokens_are_billed_in_seconds() -> None:
    with cpu_limit(40):
        billed = measure_billing()
    assert billed.rounds == ROUNDS and billed.tokens > TOKENS
    assert billed.hit_rate > 0.97
