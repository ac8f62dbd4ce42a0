"""When a run begins, as a state machine: one run at a time, one pending slot, a throttle, and a cursor. Pure.

`T` stands for a turn that ended, whatever the caller keeps of it. Each step returns the new state and, if a run is to
begin now, the turn it is for. The cursor moves on success alone; a trailing run ignores the throttle.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

T = TypeVar("T")

WRITER = "extraction"
"""The name the cursor of this layer has among the records."""


@dataclass(frozen=True, slots=True)
class State(Generic[T]):
    """Of one session. `turns` counts those that ended since the last run began."""

    running: T | None = None
    pending: T | None = None
    turns: int = 0

    def is_due(self, every: int) -> bool:
        """Whether a turn that ends now is of use: to begin a run, or to be pending."""
        return self.running is not None or self.turns + 1 >= every

    def ended(self, turn: T, *, every: int = 1) -> tuple[State[T], T | None]:
        """A turn ended. While a run is under way it takes the pending slot, whoever had it before."""
        if self.running is not None:
            return replace(self, pending=turn, turns=self.turns + 1), None
        if not self.is_due(every):
            return self.waited(), None
        return State(running=turn), turn

    def waited(self) -> State[T]:
        """A turn ended that no run is due for yet."""
        return replace(self, turns=self.turns + 1)

    def over(self) -> tuple[State[T], T | None]:
        """The run came to its end, well or not: if a turn is pending, its run begins, whatever the throttle."""
        if self.pending is None:
            return replace(self, running=None), None
        return State(running=self.pending), self.pending

    def killed(self) -> State[T]:
        """Somebody stopped the run: what was pending goes too. Nothing is lost, since the cursor did not move."""
        return replace(self, running=None, pending=None)
