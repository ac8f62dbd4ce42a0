"""Whether a dream may begin: one gate after the other, the cheapest first. The first closed one is the answer.

Checked after every turn, so the usual answer (too soon) costs one stat. It does not start anything, take the lock or
read transcripts; it only looks at their times.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from reverie.layers.l6_dreaming.lock import ConsolidationLock
from reverie.layers.l6_dreaming.state import DreamState, StateFile
from reverie.moments import modified_time, past_time
from reverie.paths import Places, slug
from reverie.quick import dataclass


class DreamGate(StrEnum):
    """Every gate, in order."""

    SWITCH = "switch"
    DAILY_LOG = "daily_log"
    REMOTE = "remote"
    TIME = "time"
    SCAN = "scan"
    RETRY = "retry"
    REVIEW = "review"
    TRANSCRIPTS = "transcripts"
    BUDGET = "budget"
    LOCK = "lock"


@dataclass(frozen=True, slots=True)
class Closed:
    """A closed gate, and the reason as a sentence."""

    gate: DreamGate
    reason: str


@dataclass(frozen=True, slots=True)
class Open:
    """All gates except the lock are open. `transcripts` changed since the last dream, newest first."""

    transcripts: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class GateNumbers:
    """The numbers of the gates."""

    hours: float = 24.0
    scan_minutes: float = 10.0
    transcripts: int = 5


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the gates ask the session, each only when its gate is reached."""

    is_on: Callable[[], bool]
    daily_log: Callable[[], bool]
    is_remote: Callable[[], bool]
    numbers: Callable[[], GateNumbers]
    folders: Sequence[Path]
    current: Callable[[], str]
    """The current session: its own transcript does not count."""
    waiting: Callable[[], int]
    may_spend: Callable[[], str | None]


@dataclass(eq=False, slots=True)
class Gates:
    """The gates of one session. Remembers when it last looked at the transcripts."""

    lock: ConsolidationLock
    state: StateFile
    around: Circumstances
    _scanned: float | None = field(default=None, init=False)

    def look(self, now: datetime) -> Open | Closed:
        """Returns the first closed gate, or what there is to dream about. The caller takes the lock."""
        around = self.around
        if not around.is_on():
            return Closed(DreamGate.SWITCH, "dreaming is switched off")
        if around.daily_log():
            return Closed(DreamGate.DAILY_LOG, "logs of the day are kept, and distilled on the first turn of a new day")
        if around.is_remote():
            return Closed(DreamGate.REMOTE, "this machine is a remote one")
        numbers, moment = around.numbers(), now.timestamp()
        last = past_time(self.lock.mtime(), moment)  # a future time does not count
        if last is not None and moment - last < numbers.hours * 3_600:
            ago, left = format_duration(moment - last), format_duration(numbers.hours * 3_600 - (moment - last))
            return Closed(DreamGate.TIME, f"the last dream was {ago} ago, the next may begin in {left}")
        if self._scanned is not None and 0 <= moment - self._scanned < numbers.scan_minutes * 60:
            return Closed(DreamGate.SCAN, f"transcripts were looked at less than {numbers.scan_minutes:g} min ago")
        self._scanned = moment
        return self._after_scan_gate(numbers, moment, last)

    def _after_scan_gate(self, numbers: GateNumbers, moment: float, last: float | None) -> Open | Closed:
        around = self.around
        wait = retry_after(self.state.read(), moment)
        if wait > 0:
            return Closed(DreamGate.RETRY, f"the last dream failed; the next try is in {format_duration(wait)}")
        if waiting := around.waiting():
            wait = "1 dream waits" if waiting == 1 else f"{waiting} dreams wait"
            return Closed(DreamGate.REVIEW, f"{wait} for you: `reverie dream review`")
        found = changed_transcripts(around.folders, last, without=around.current())
        if len(found) < numbers.transcripts:
            since = "since the last dream" if last is not None else "so far"
            held = f"{len(found)} other session{'s were' if len(found) != 1 else ' was'} held {since}"
            return Closed(DreamGate.TRANSCRIPTS, f"{held}, and {numbers.transcripts} are needed")
        if reason := around.may_spend():
            return Closed(DreamGate.BUDGET, reason)
        return Open(found)


def format_duration(seconds: float) -> str:
    """Formats a span of time."""
    if seconds < 5_400:
        return f"{max(0.0, seconds) / 60:.0f} min"
    return f"{seconds / 3_600:.0f} h" if seconds < 172_800 else f"{seconds / 86_400:.0f} days"


def transcript_folders(places: Places) -> tuple[Path, ...]:
    """Returns the transcript folders of sessions with this memory: by working folder and by repository."""
    return tuple(dict.fromkeys([places.project, *(places.projects / slug(p) for p in (places.root, places.checkout))]))


def retry_after(state: DreamState, now: float) -> float:
    """Returns the seconds until a failed dream may be tried again: an hour, doubled each time, at most a day.

    A killed one waits an hour too, because it would probably be killed again.
    """
    failures = max(state.failures_in_a_row, 1 if state.outcome == "killed" else 0)
    tried = past_time(state.last_attempt, now)
    if failures <= 0 or tried is None:
        return 0.0
    pause = 3_600.0 * min(24, 2 ** min(failures - 1, 5))
    return max(0.0, tried + pause - now)


def changed_transcripts(folders: Sequence[Path], since: float | None, *, without: str = "") -> tuple[Path, ...]:
    """Returns transcripts written after `since` (None: all), newest first, without the session `without`."""
    found = dict[str, float]()
    for folder in dict.fromkeys(folders):
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    name = entry.name
                    if not name.endswith(".jsonl") or name.startswith("agent-") or name == f"{without}.jsonl":
                        continue
                    try:
                        if not entry.is_file():
                            continue  # a pipe or a device
                        modified = modified_time(entry.stat())
                    except OSError:
                        continue  # deleted meanwhile
                    if since is None or modified > since:
                        found[entry.path] = modified
        except OSError:
            continue  # no session was there, or it cannot be read
    return tuple(Path(path) for path, _ in sorted(found.items(), key=lambda item: (-item[1], item[0])))
