"""Two stages behind flags that are off: both take the oldest complete tool rounds out of view, never a user's words.

Snip drops them when the window is full. Collapse shows a ledger in their place, from a share of the window on; the
history stays whole, and every fold can be undone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Literal

from reverie.layers.base import Break, BreakCause, Effect, EffectResult, Now, StageCommit
from reverie.layers.l3_session_notes.notes_compaction import unsplit
from reverie.layers.l4_compaction.by_code import operation_ledger, operations
from reverie.layers.weighing import weigh_entries
from reverie.models.tokens import PROSE_BYTES
from reverie.prompts import render
from reverie.quick import dataclass
from reverie.storage.transcript.records import Fold
from reverie.storage.transcript.view import Entry, View

KEEP_ROUNDS = 5
"""The newest rounds always stay."""
_SNIP_TO = 0.7
"""The share of the threshold that a snip leaves."""
_COLLAPSE_TO = 0.65
"""The share of the effective window that a collapse leaves."""
_LEDGER_SHARE = 10


@dataclass(frozen=True, slots=True)
class ToolRun:
    """Complete tool rounds in a row, and their tokens."""

    entries: tuple[Entry, ...]
    tokens: int

    @property
    def rounds(self) -> int:
        return len({entry.message.id or entry.uuid for entry in self.entries if entry.message.role == "assistant"})

    def fold(self, kind: Literal["collapse", "snip"], text: str = "") -> Fold:
        return Fold(kind, self.entries[0].uuid or "", self.entries[-1].uuid or "", text, self.tokens)


def old_runs(view: View, tokens: int) -> list[ToolRun]:
    """Returns the oldest rounds that hold about `tokens` together; fewer if there are not enough."""
    entries = view.entries
    answers = [i for i, entry in enumerate(entries) if entry.message.role == "assistant"]
    newest = answers[-KEEP_ROUNDS] if len(answers) > KEEP_ROUNDS else 0
    end, gone = 0, 0
    while end < newest and gone < tokens:
        if _is_tool_round(entries[end]):
            gone += weigh_entries(view, entries[end : end + 1])
        end += 1
    while end < newest and entries[end].message.tool_results:  # the last round leaves whole
        end += 1
    end = min(newest, unsplit(entries, end))
    found = [ToolRun(run, weigh_entries(view, run)) for run in _runs(entries[:end])]
    return [run for run in found if run.tokens > 0 and run.entries[0].uuid and run.entries[-1].uuid]


def _runs(entries: list[Entry]) -> Iterator[tuple[Entry, ...]]:
    for is_round, run in groupby(entries, _is_tool_round):
        if is_round:
            yield tuple(run)


def _is_tool_round(entry: Entry) -> bool:
    return not entry.brought and bool(entry.message.tool_uses or entry.message.tool_results)


class Snip:
    """Drops the oldest rounds when the window is full."""

    flag = "history_snip"

    def plan(self, view: View, now: Now) -> Sequence[Effect] | None:
        return () if now.used > now.autocompact_at and self._runs(view, now) else None

    def commit(self, view: View, now: Now, results: Sequence[EffectResult]) -> StageCommit:
        runs = self._runs(view, now)
        freed, rounds = sum(run.tokens for run in runs), sum(run.rounds for run in runs)
        return StageCommit(
            payloads=tuple(run.fold("snip") for run in runs),
            breaks=Break(BreakCause.CLEARED, "old tool rounds were dropped"),
            notice=f"{rounds} old tool rounds were dropped, which freed about {freed:,} tokens",
        )

    def _runs(self, view: View, now: Now) -> list[ToolRun]:
        return old_runs(view, now.used - int(now.autocompact_at * _SNIP_TO))


@dataclass(eq=False, slots=True)
class Collapse:
    """Shows the oldest rounds as a ledger, from `at_pct` percent of the effective window on."""

    flag = "context_collapse"
    at_pct: Callable[[], float]
    cwd: str = ""

    def plan(self, view: View, now: Now) -> Sequence[Effect] | None:
        return () if now.used >= now.effective * self.at_pct() / 100 and self._runs(view, now) else None

    def commit(self, view: View, now: Now, results: Sequence[EffectResult]) -> StageCommit:
        runs = self._runs(view, now)
        folded, rounds = sum(run.tokens for run in runs), sum(run.rounds for run in runs)
        return StageCommit(
            payloads=tuple(run.fold("collapse", self._text(run)) for run in runs),
            breaks=Break(BreakCause.FOLDED, "old stretches were folded"),
            notice=f"{rounds} old tool rounds (about {folded:,} tokens) were folded",
        )

    def _runs(self, view: View, now: Now) -> list[ToolRun]:
        return old_runs(view, now.used - int(now.effective * _COLLAPSE_TO))

    def _text(self, run: ToolRun) -> str:
        most = max(200, run.tokens * PROSE_BYTES // _LEDGER_SHARE)
        ledger = operation_ledger(operations(run.entries), max_chars=most, cwd=self.cwd)
        return render("reverie.layers.l4_compaction", "folded.md", {"rounds": str(run.rounds), "ledger": ledger})
