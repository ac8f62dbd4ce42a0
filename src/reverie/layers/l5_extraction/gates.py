"""Whether a turn is looked at, and when a run begins: one run at a time, one pending turn, a throttle. Pure.

The cheapest question comes first. `T` is what the caller keeps of a turn that ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from typing import Generic, TypeVar

from reverie.quick import dataclass

T = TypeVar("T")

WRITER = "extraction"
"""The name of this layer's cursor in the records."""


class ExtractionGate(StrEnum):
    """Why a turn was not looked at, as `reverie doctor` shows it."""

    NOT_ANSWERED = "the turn ended without an answer"
    MEMORY = "memory is off"
    MAIN_AGENT = "only the main agent's conversation is looked at"
    REMOTE = "this machine is remote"
    FLAG = "the flag `extraction` is off"
    INTERACTIVE = "nobody is at the keyboard, and the flag `extraction.noninteractive` is off"
    DAILY_LOG = "daily logs take the place of extraction (flag `daily_log`)"
    THROTTLE = "it is not this turn's turn (setting `extraction.every_turns`)"
    RUNNING = "a run is under way; this turn waits for it"
    NOTHING_NEW = "no person said anything new"
    OWN_WRITE = "the agent has saved to memory itself"
    BUDGET = "the day's budget for background work is spent"


def find_closed_gate(
    is_on: Callable[[str], bool],
    *,
    answered: bool,
    memory: bool,
    main_agent: bool,
    remote: bool,
    interactive: bool,
    daily_log: bool,
) -> ExtractionGate | None:
    """Returns the first closed gate; None if the turn may be looked at. `is_on` reads a flag."""
    gates = (
        (answered, ExtractionGate.NOT_ANSWERED),
        (memory, ExtractionGate.MEMORY),
        (main_agent, ExtractionGate.MAIN_AGENT),
        (not remote, ExtractionGate.REMOTE),
        (not daily_log, ExtractionGate.DAILY_LOG),
        (is_on("extraction"), ExtractionGate.FLAG),
        (interactive or is_on("extraction.noninteractive"), ExtractionGate.INTERACTIVE),
    )
    return next((gate for is_open, gate in gates if not is_open), None)


@dataclass(frozen=True, slots=True)
class RunState(Generic[T]):
    """The runs of one session. `turns` counts the turns since the last run began."""

    running: T | None = None
    pending: T | None = None
    turns: int = 0

    def is_due(self, every: int) -> bool:
        """Returns whether a turn that ends now starts a run or becomes pending."""
        return self.running is not None or self.turns + 1 >= every

    def ended(self, turn: T, *, every: int = 1) -> tuple[RunState[T], T | None]:
        """A turn ended. Returns the new state and the turn whose run begins; during a run the turn becomes pending."""
        if self.running is not None:
            return replace(self, pending=turn, turns=self.turns + 1), None
        if not self.is_due(every):
            return self.waited(), None
        return RunState(running=turn), turn

    def waited(self) -> RunState[T]:
        """A turn ended before a run is due."""
        return replace(self, turns=self.turns + 1)

    def over(self) -> tuple[RunState[T], T | None]:
        """The run ended, well or not. The run of a pending turn begins at once, without the throttle."""
        if self.pending is None:
            return replace(self, running=None), None
        return RunState(running=self.pending), self.pending

    def killed(self) -> RunState[T]:
        """The run was stopped, and the pending turn with it. The cursor did not move, so nothing is lost."""
        return replace(self, running=None, pending=None)
