"""Collapse (flag, off): folds old stretches at read time, over a history that stays whole, instead of compacting.

From a share of the window on, the oldest tool rounds are shown as a ledger of what they did. Every fold can be undone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reverie.layers.base import Break, BreakCause, Commit, Effect, EffectResult, Now
from reverie.layers.l4_compaction.by_code import operation_ledger, operations
from reverie.layers.l4_compaction.folding import Run, old_runs
from reverie.models.tokens import PROSE_BYTES
from reverie.prompts import render
from reverie.storage.transcript.records import Fold
from reverie.storage.transcript.view import View

_DOWN_TO = 0.65
"""Of effective: how much is to be left."""
_LEDGER_SHARE = 10


class Collapse:
    """A stage of the pipeline. `at_pct` says from which share of effective on it folds."""

    flag = "context_collapse"

    def __init__(self, at_pct: Callable[[], float], cwd: str = "") -> None:
        self._at_pct = at_pct
        self._cwd = cwd

    def plan(self, view: View, now: Now) -> Sequence[Effect] | None:
        return () if now.used >= now.effective * self._at_pct() / 100 and old_runs(view, _need(now)) else None

    def commit(self, view: View, now: Now, results: Sequence[EffectResult]) -> Commit:
        runs = old_runs(view, _need(now))
        folds = tuple(
            Fold("collapse", run.entries[0].uuid or "", run.entries[-1].uuid or "", self._text(run), run.tokens)
            for run in runs
        )
        folded = sum(run.tokens for run in runs)
        return Commit(
            payloads=folds,
            breaks=Break(BreakCause.FOLDED, "old stretches were folded"),
            notice=f"{sum(run.rounds for run in runs)} old tool rounds (about {folded:,} tokens) were folded",
        )

    def _text(self, run: Run) -> str:
        most = max(200, run.tokens * PROSE_BYTES // _LEDGER_SHARE)
        ledger = operation_ledger(operations(run.entries), max_chars=most, cwd=self._cwd)
        return render("reverie.layers.l4_compaction", "folded.md", {"rounds": str(run.rounds), "ledger": ledger})


def _need(now: Now) -> int:
    return now.used - int(now.effective * _DOWN_TO)
