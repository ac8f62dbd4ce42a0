"""`reverie lab hooks`: latency with a warm service, and what many prompts leave behind."""

from __future__ import annotations

import pytest

from bench.hooks import EVENTS, hooks
from tests.bench.contract import check_keys
from tests.counts import SOAK, count


@pytest.mark.soak
def test_hooks_are_quick_and_leave_nothing_behind() -> None:
    found = hooks.measure(runs=count(1, 100), prompts=count(20, 1_000))
    figures = found.figures
    check_keys("hooks", figures)
    assert found.holds and figures["wrong"] == []
    assert set(figures["events"]) == set(EVENTS)
    assert figures["memories_given"] > 0
    if SOAK:  # one run says nothing on a busy machine
        assert figures["worst_p95_ratio"] <= 5
