"""Minds that need several files in view at once: they finish, with at most one extra read per file."""

from __future__ import annotations

import pytest

from bench.thrash import SMALL, ThrashCase, report, run_case
from tests.bench.contract import check_keys


@pytest.mark.parametrize(
    "case",
    [
        ThrashCase(32_000, 4, 60, share=SMALL),
        ThrashCase(32_000, 6, 40),
        ThrashCase(32_000, 4, 60, work=20),
        ThrashCase(32_000, 6, 30, talks=True),
        ThrashCase(32_000, 5, 20, idle_reads=40),
    ],
    ids=lambda case: case.kind,
)
def test_a_mind_that_needs_files_at_once_is_not_sent_in_circles(case: ThrashCase) -> None:
    found = run_case(case)
    assert found.finished and found.is_well and found.most_extra <= 1
    assert found.cleared + found.compactions > 0, "else nothing was measured"
    result = report([found])
    check_keys("thrash", result.figures)
    assert result.holds and result.figures["well"] == 1 and case.kind in "\n".join(result.lines())
