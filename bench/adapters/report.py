"""The figures of `reverie lab adapters`, for programs and for people, and what must hold of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.adapters.programs.program import REVERIE, WITHOUT
from bench.adapters.run import Outcome
from reverie.text.columns import table as columns

_WORDS = (
    "share: of the bill of the same SDK without Reverie. largest: tokens of the largest prompt. breaks: requests that",
    "could not read what the one before them left in the cache. re-reads: files that were read again because they were",
    "no longer in view. report: right parts of the last answer. fact: a fact of the first conversation is used in the",
    "second. killed: the program was killed with -9 in the middle and went on.",
)


def summary(done: Sequence[Outcome]) -> dict[str, Any]:
    """The figures for programs."""
    rows = [one.wire() | {"share": _share(one, done)} for one in done]
    return {"runs": rows, "wrong": [f"{one.case.name}: {what}" for one in done for what in wrong(one, done)]}


def wrong(one: Outcome, done: Sequence[Outcome]) -> list[str]:
    """What a run with Reverie does not hold; empty for other runs and for those that were skipped."""
    if one.case.variant != REVERIE or one.skipped:
        return []
    if one.failed:
        return [one.failed]
    share = _share(one, done)
    checks = {
        f"the bill is {share} of the one without": share is not None and share > one.case.sdk.most_share,
        f"a prompt has {one.largest:,} tokens": one.largest > one.case.window,
        # Hooks cannot compact: Claude Code itself sends a prompt that is too long, and then shortens it.
        f"{one.refused} requests were refused": one.refused > 0 and one.case.sdk.most_share < 1,
        f"{one.unannounced} cache breaks were not announced": one.unannounced > 0,
        f"the report has {one.report} right parts": not one.report_right,
        "the fact of the first conversation is not used": not one.fact_used,
        "it did not go on after the kill": not one.continued,
    }
    return [text for text, holds in checks.items() if holds]


def table(done: Sequence[Outcome]) -> str:
    """The figures for people: one line per run, then every run that failed, was skipped or is wrong."""
    head = ("sdk", "with", "window", "bill", "share", "requests", "largest", "breaks", "re-reads", "report", "fact")
    rows: list[tuple[str, ...]] = [(*head, "killed", "seconds")]
    for one in done:
        if one.skipped:
            continue
        case, share = one.case, _share(one, done)
        cost = (f"${one.bill:.3f}", "" if share is None or one.failed else f"{share:.2f}", str(one.requests))
        size = (f"{one.largest:,}", str(sum(one.breaks.values())), str(one.extra_reads + one.repeated))
        ends = (one.report or "-", _yes(one.fact_used), _yes(one.continued), f"{one.seconds:.0f}")
        name = "-" if case.variant == WITHOUT else case.variant
        rows.append((case.sdk.name, name, f"{case.window // 1_000:,}K", *cost, *size, *ends))
    notes = [f"{one.case.name} ({one.case.window // 1_000:,}K) failed: {one.failed}" for one in done if one.failed]
    left_out = {one.case.sdk.name: one.skipped for one in done if one.skipped}
    notes += [f"{name} is left out: {why}" for name, why in left_out.items()]
    notes += [f"{one.case.name}: {what}" for one in done for what in wrong(one, done) if not one.failed]
    return "\n".join([*columns(rows, right=(2, 3, 4, 5, 6, 7, 8, 9, 12)), "", *notes, *_WORDS])


def _share(one: Outcome, done: Sequence[Outcome]) -> float | None:
    """The bill as a share of the bill of the same SDK without Reverie; None if one of them failed."""
    base = next((each for each in done if each.case.sdk == one.case.sdk and each.case.variant == WITHOUT), None)
    if base is None or base.failed or not base.bill or one.failed:
        return None
    return round(one.bill / base.bill, 3)


def _yes(value: bool) -> str:
    return "yes" if value else "no"
