"""The state of dreaming, read without a session: the last run, the gates, and dreams that wait for the user.

Used by `reverie dream status`, the chat and `reverie doctor`. Reads only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

from reverie.cli.dream.display import describe_cost
from reverie.cli.output import Paint, format_age
from reverie.errors import ReverieError, UserError
from reverie.layers.l6_dreaming.gates import Circumstances, Closed, GateNumbers, Gates, transcript_folders
from reverie.layers.l6_dreaming.lock import ConsolidationLock, LockState
from reverie.layers.l6_dreaming.proposal import Proposals
from reverie.layers.l6_dreaming.state import DreamState, StateFile
from reverie.moments import iso, local_minutes
from reverie.quick import dataclass
from reverie.types import JsonObject, Purpose

if TYPE_CHECKING:
    from reverie.context.day_book import Caps
    from reverie.flags import Flags
    from reverie.memory.opening import OpenedMemory
    from reverie.paths import Places
    from reverie.runtime.background_log import LogEntry


_WITHOUT_RESULT = ("failed", "killed")
_MODES = {
    "auto": "changes are made at once and can be undone",
    "ask": "changes wait for you, and a notice tells you",
    "inbox": "changes wait for you without a notice",
}


@dataclass(frozen=True, slots=True)
class DreamStatus:
    """Dreaming in one memory directory, at one moment."""

    state: DreamState
    lock: LockState
    closed: Closed | None
    """The first closed gate; None if a dream begins after the next turn."""
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

    def lines(self, paint: Paint) -> Iterator[str]:
        """The state as lines of text."""
        last, state = self.lock.last_success, self.state
        found = [("last success", f"{_local(last)}, {_ago(last)}" if last is not None else "never")]
        if state.outcome:
            found.append(("last try", f"{_local(state.last_attempt)}, {_ago(state.last_attempt)}: {state.outcome}"))
            found.append(("result", state.reason))
            if state.way and state.outcome not in _WITHOUT_RESULT:
                found.append(("cost", self._cost()))
        if state.failures_in_a_row:
            found.append(("failures", f"{state.failures_in_a_row} in a row"))
        found.append(("now", f"process {self.lock.pid} dreams") if self.lock.held else ("next", self._next()))
        if self.waiting:
            found.append(("waiting", f"{self.waiting} to review: `reverie dream review`"))
        found.append(("mode", f"{self.mode} ({_MODES.get(self.mode, '')})"))
        return (f"{paint.bold(f'{name:<13}')} {text}" for name, text in found)

    def line(self) -> str:
        """The state in one sentence, for `reverie doctor`."""
        last, state = self.lock.last_success, self.state
        parts = [f"last success {_ago(last)}" if last is not None else "never succeeded"]
        if state.outcome in _WITHOUT_RESULT:
            parts.append(f"the last try {_ago(state.last_attempt)} {state.outcome}: {state.reason}")
        elif state.outcome:
            parts[0] += f": {state.outcome} ({self._cost()})" if state.way else f": {state.outcome}"
        if state.failures_in_a_row:
            parts.append(f"{state.failures_in_a_row} failures in a row")
        parts.append(f"process {self.lock.pid} dreams now" if self.lock.held else f"next: {self._next()}")
        if self.waiting:
            parts.append(f"{self.waiting} wait for you")
        if self.lock.ahead and self.lock.mtime is not None:
            parts.append(f"the time of the lock, {local_minutes(self.lock.mtime)}, is in the future and does not count")
        return "; ".join(parts)

    def _cost(self) -> str:
        state = self.state
        return f"{describe_cost(state.rounds, state.way, state.hit_rate, state.cost_usd)}, {state.tokens:,} tokens"

    def _next(self) -> str:
        if self.closed is None:
            return "after the next turn: every gate is open"
        return f"not yet ({self.closed.gate.value}): {self.closed.reason}"


def read_status_from_disk(memory: OpenedMemory) -> DreamStatus:
    """The state without a session, with the flags from their file."""
    from reverie.flags import Flags

    with closing(Flags.open(memory.places, memory.settings)) as flags:
        return read_status(memory, flags)


def find_running(memory: OpenedMemory) -> list[tuple[JsonObject, Path]]:
    """The running dreams of live sessions in this memory, each with the socket of its session."""
    from reverie.runtime.live_client import ask_live, live_sessions

    found: list[tuple[JsonObject, Path]] = []
    for live in live_sessions(memory.places.projects):
        if live.socket is None:
            continue
        try:
            reply = ask_live(live.socket, {"do": "dream"})
        except ReverieError:
            continue
        progress = cast("JsonObject | None", reply.get("running"))
        if progress is not None and reply.get("memory") == str(memory.directory.root):
            found.append(({"session": live.id, "pid": live.pid, "task": reply.get("task"), **progress}, live.socket))
    return found


def kill_running(memory: OpenedMemory) -> list[JsonObject]:
    """Ends the running dreams of live sessions in this memory; `UserError` if there is none."""
    from reverie.runtime.live_client import ask_live

    running = find_running(memory)
    if not running:
        raise UserError("No live session is dreaming.")
    return [ask_live(socket, {"do": "kill", "id": one["task"]}, timeout_s=30) for one, socket in running]


def dream_runs(memory: OpenedMemory) -> list[LogEntry]:
    """The lines of the background log about dreams in this memory, oldest first."""
    from reverie.runtime.background_log import BackgroundLog

    entries = BackgroundLog(memory.places.background_log).read(kind="dream_")
    return [entry for entry in entries if is_about(entry, memory.places, memory.directory.root)]


def is_about(entry: LogEntry, places: Places, root: Path) -> bool:
    """Whether a line of the log is about the memory directory `root`. It stays valid when the home is moved."""
    own = places.below_home(root).parts
    return Path(str(entry.fields.get("memory"))).parts[-len(own) :] == own


def read_caps(memory: OpenedMemory, flags: Flags) -> Caps:
    """The budget of background work."""
    from reverie.context.day_book import Caps, DayBook

    budget = memory.settings.budget
    return Caps(
        DayBook(memory.places.day_books),
        tokens_per_day=lambda: flags.number("budget.background_tokens_per_day", budget.background_tokens_per_day),
        dollars_per_day=lambda: flags.number(
            "budget.background_dollars_per_day", budget.background_dollars_per_day or 0.0
        ),
    )


def why_not_now(memory: OpenedMemory) -> str:
    """Why a dream cannot begin even on request: it is off, somebody dreams, or the budget of the day is used up. Empty
    if it can."""
    from reverie.flags import Flags

    with closing(Flags.open(memory.places, memory.settings)) as flags:
        if not memory.switch.on:
            return f"memory is off ({memory.switch.rule})"
        if not flags.on("dream"):
            return "dreaming is switched off (the flag dream)"
        lock = read_status(memory, flags).lock
        if lock.held:
            return f"process {lock.pid} dreams now"
        return read_caps(memory, flags).may_spend(Purpose.DREAM) or ""


def read_status(memory: OpenedMemory, flags: Flags, *, now: datetime | None = None) -> DreamStatus:
    """The state of dreaming in this memory."""
    settings, places, moment = memory.settings, memory.places, now or datetime.now(UTC)
    given, root = settings.dream, memory.directory.root
    lock = ConsolidationLock(root, rule_s=flags.number("dream.lock_minutes", given.lock_minutes) * 60)
    state, proposals = StateFile(root), Proposals(root)
    caps = read_caps(memory, flags)
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
    return DreamStatus(state.read(), lock.state(moment.timestamp()), closed, proposals.count(), given.mode)


def _ago(moment: float | None) -> str:
    return "some time ago" if moment is None else f"{format_age(moment)} ago"


def _iso(moment: float | None) -> str | None:
    return None if moment is None else iso(moment)


def _local(moment: float | None) -> str:
    return "" if moment is None else local_minutes(moment)
