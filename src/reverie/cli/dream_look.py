"""What can be told of dreaming without a session: the heartbeat, the gates as they are now, what waits.

Read by `reverie dream status`, by the chat and by `reverie doctor`. Starts nothing and takes no lock.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from reverie.layers.l6_dreaming.gates import Circumstances, Closed, GateNumbers, Gates, transcript_folders
from reverie.layers.l6_dreaming.lock import ConsolidationLock, LockState
from reverie.layers.l6_dreaming.proposal import Proposals
from reverie.layers.l6_dreaming.state import DreamState, StateFile
from reverie.types import JsonObject, Purpose

if TYPE_CHECKING:
    from reverie.flags import Flags
    from reverie.memory.opening import OpenedMemory


@dataclass(frozen=True, slots=True)
class DreamLook:
    """Dreaming in one memory directory, at one moment."""

    state: DreamState
    lock: LockState
    closed: Closed | None
    """The first gate that is shut; None: a dream begins after the next turn."""
    waiting: int
    mode: str

    def to_json(self) -> JsonObject:
        return {
            "last_success": _iso(self.lock.last_success),
            "held_by": self.lock.pid if self.lock.held else None,
            "stale": self.lock.stale,
            "gate": self.closed.gate.value if self.closed is not None else None,
            "gate_reason": self.closed.reason if self.closed is not None else None,
            "waiting": self.waiting,
            "mode": self.mode,
            "last": {**self.state.to_json(), "last_attempt": _iso(self.state.last_attempt)},
        }

    def lines(self) -> list[tuple[str, str]]:
        """What people are shown, as a name and a text each."""
        last, state = self.lock.last_success, self.state
        found = [("last success", _local(last) if last is not None else "never")]
        if state.outcome:
            cost = f", {state.rounds} rounds as a {state.way} agent, ${state.cost_usd:.4f}, {state.hit_rate:.0%} cached"
            found.append(("last try", f"{_local(state.last_attempt)}: {state.outcome}{cost if state.way else ''}"))
            found.append(("came to", state.reason))
        if state.failures_in_a_row:
            found.append(("failures", f"{state.failures_in_a_row} in a row"))
        if self.lock.held:
            found.append(("now", f"process {self.lock.pid} dreams"))
        elif self.closed is not None:
            found.append(("next", f"not yet ({self.closed.gate.value}): {self.closed.reason}"))
        else:
            found.append(("next", "after the next turn: every gate is open"))
        if self.waiting:
            found.append(("waiting", f"{self.waiting} to look at: `reverie dream review`"))
        found.append(("mode", self.mode))
        return found


def look(memory: OpenedMemory, flags: Flags, *, now: datetime | None = None) -> DreamLook:
    """Dreaming as it is now in this memory."""
    from reverie.context.day_book import Caps, DayBook

    settings, places, moment = memory.settings, memory.places, now or datetime.now(UTC)
    given, budget, root = settings.dream, settings.budget, memory.directory.root
    lock = ConsolidationLock(root, rule_s=flags.number("dream.lock_minutes", given.lock_minutes) * 60)
    state, proposals = StateFile(root), Proposals(root)
    caps = Caps(
        DayBook(places.day_books),
        tokens_per_day=lambda: flags.number("budget.background_tokens_per_day", budget.background_tokens_per_day),
        dollars_per_day=lambda: flags.number(
            "budget.background_dollars_per_day", budget.background_dollars_per_day or 0.0
        ),
    )
    around = Circumstances(
        is_on=lambda: memory.switch.on and flags.on("dream"),
        daily_log=lambda: flags.snapshot().on("daily_log"),
        is_remote=lambda: settings.remote.enabled,
        numbers=lambda: GateNumbers(
            flags.number("dream.hours", given.hours),
            flags.number("dream.scan_minutes", given.scan_minutes),
            flags.number("dream.transcripts", given.transcripts),
        ),
        folders=transcript_folders(places),
        current=lambda: "",
        waiting=proposals.count,
        may_spend=lambda: caps.may_spend(Purpose.DREAM),
    )
    found = Gates(lock, state, around).look(moment)
    closed = found if isinstance(found, Closed) else None
    return DreamLook(state.read(), lock.state(moment.timestamp()), closed, proposals.count(), given.mode)


def _iso(moment: float | None) -> str | None:
    return None if moment is None else datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")


def _local(moment: float | None) -> str:
    return "" if moment is None else datetime.fromtimestamp(moment).astimezone().strftime("%Y-%m-%d %H:%M")
