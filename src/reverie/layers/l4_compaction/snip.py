"""Snip (flag, off): drops the oldest complete tool rounds when the window is full, and says what that freed."""

from __future__ import annotations

from collections.abc import Sequence

from reverie.layers.base import Break, BreakCause, Commit, Effect, EffectResult, Now
from reverie.layers.l4_compaction.folding import old_runs
from reverie.storage.transcript.records import Fold
from reverie.storage.transcript.view import View

_DOWN_TO = 0.7
"""Of the threshold: how much is to be left."""


class Snip:
    """A stage of the pipeline."""

    flag = "history_snip"

    def plan(self, view: View, now: Now) -> Sequence[Effect] | None:
        return () if now.used > now.autocompact_at and old_runs(view, _need(now)) else None

    def commit(self, view: View, now: Now, results: Sequence[EffectResult]) -> Commit:
        runs = old_runs(view, _need(now))
        folds = tuple(
            Fold("snip", run.entries[0].uuid or "", run.entries[-1].uuid or "", tokens=run.tokens) for run in runs
        )
        freed, rounds = sum(run.tokens for run in runs), sum(run.rounds for run in runs)
        return Commit(
            payloads=folds,
            breaks=Break(BreakCause.CLEARED, "old tool rounds were dropped"),
            notice=f"{rounds} old tool rounds were dropped, which freed about {freed:,} tokens",
        )


def _need(now: Now) -> int:
    return now.used - int(now.autocompact_at * _DOWN_TO)
