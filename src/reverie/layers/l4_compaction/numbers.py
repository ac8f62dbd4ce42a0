"""The numbers of layer 4: budgets of what stands in the new context, and when to give up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

from reverie.models.window import scaled

_FIXED = frozenset(
    {"failures", "refill_turns", "refill_rounds", "refill_times", "too_long_tries", "restore_files", "pins_bytes"}
)


@dataclass(frozen=True, slots=True)
class CompactionNumbers:
    """Tokens unless the name says otherwise, for a window of 200,000."""

    summary_tokens: int = 20_000
    failures: int = 3
    refill_turns: int = 3
    refill_rounds: int = 6
    refill_times: int = 3
    too_long_tries: int = 3
    restore_files: int = 5
    restore_file_tokens: int = 5_000
    restore_tokens: int = 50_000
    restore_skill_tokens: int = 5_000
    restore_skills_tokens: int = 25_000
    request_bytes: int = 2_000
    requests_tokens: int = 40_000
    ledger_characters: int = 16_000
    names: int = 300
    last_message_tokens: int = 10_000
    pins_bytes: int = 10_000

    def for_window(self, window: int) -> CompactionNumbers:
        """The same numbers for a smaller window: all but counts shrink with it. What pins were promised stays."""
        return self._scaled(lambda number: scaled(number, window))

    def tighter(self, share: float) -> CompactionNumbers:
        """The same budgets, each a share of what it was: for when the result would not fit."""
        return self._scaled(lambda number: int(number * share))

    def _scaled(self, by: Callable[[int], int]) -> CompactionNumbers:
        changed = {f.name: max(1, by(getattr(self, f.name))) for f in fields(self) if f.name not in _FIXED}
        return replace(self, **changed)
