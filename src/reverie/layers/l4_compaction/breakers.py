"""Two breakers of auto-compaction: one for summaries that fail, one for contexts that are full again at once.

Counted in the session and told once. A person who asks is never stopped by them.
"""

from __future__ import annotations

from dataclasses import dataclass

from reverie.layers.l4_compaction.numbers import CompactionNumbers


@dataclass(slots=True)
class Breakers:
    """The state of one session. `open_reason` is why auto-compaction has stopped, None while it runs."""

    failures: int = 0
    refills: int = 0
    last_at: tuple[int, int] | None = None
    """Turns and rounds of the conversation at the last compaction."""
    open_reason: str | None = None

    def failed(self, why: str, numbers: CompactionNumbers) -> str | None:
        """Takes in that no model could write a summary. Returns what to tell, if that opens the breaker."""
        self.failures += 1
        if self.failures < numbers.failures or self.open_reason is not None:
            return None
        self.open_reason = (
            f"auto-compaction has stopped for this session: no model wrote a usable summary {self.failures} times in a "
            f"row (last: {why}). /compact still works"
        )
        return self.open_reason

    def succeeded(self) -> None:
        """A summary was written: the count begins anew."""
        self.failures = 0

    def compacted(self, turns: int, rounds: int, numbers: CompactionNumbers) -> str | None:
        """Takes in an automatic compaction. Returns what to tell, if the context was full again at once too often."""
        before, self.last_at = self.last_at, (turns, rounds)
        at_once = (
            before is not None
            and turns - before[0] <= numbers.refill_turns
            and rounds - before[1] <= numbers.refill_rounds
        )
        self.refills = self.refills + 1 if at_once else 0
        if self.refills < numbers.refill_times or self.open_reason is not None:
            return None
        self.open_reason = (
            f"auto-compaction has stopped for this session: {self.refills} times in a row the context was full again "
            f"within {numbers.refill_turns} turns. Ask for less at a time, or begin with /clear; /compact still works"
        )
        return self.open_reason
