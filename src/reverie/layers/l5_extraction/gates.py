"""Whether a turn is looked at, cheapest question first. Pure; a turn that stops here costs microseconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Gate(StrEnum):
    """Why a turn was not looked at, in the words `reverie doctor` uses."""

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


@dataclass(frozen=True, slots=True)
class Turn:
    """What the gates know of a turn and its session. `is_on` reads a flag, each time anew."""

    answered: bool
    memory: bool
    main_agent: bool
    remote: bool
    interactive: bool
    daily_log: bool
    is_on: Callable[[str], bool]


def stopped_by(turn: Turn) -> Gate | None:
    """The first gate that is shut; None if the turn may be looked at."""
    if not turn.answered:
        return Gate.NOT_ANSWERED
    if not turn.memory:
        return Gate.MEMORY
    if not turn.main_agent:
        return Gate.MAIN_AGENT
    if turn.remote:
        return Gate.REMOTE
    if turn.daily_log:
        return Gate.DAILY_LOG
    if not turn.is_on("extraction"):
        return Gate.FLAG
    if not turn.interactive and not turn.is_on("extraction.noninteractive"):
        return Gate.INTERACTIVE
    return None
