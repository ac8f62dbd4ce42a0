"""The outcome of a dream, and its reports: in the heartbeat, in the background log, and to the user.

Texts of memories go only to people who ask (`among`, the heartbeat inside the memory directory), never to the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import field
from pathlib import Path
from typing import Final

from reverie.errors import ReverieError
from reverie.events import Event, Notice
from reverie.layers.l6_dreaming.landing import LandingResult
from reverie.layers.l6_dreaming.proposal import DreamRefused, Proposal
from reverie.layers.l6_dreaming.state import StateFile
from reverie.quick import dataclass
from reverie.runtime.background_log import BackgroundLog
from reverie.types import Json, JsonObject

FAILURES_REPORTED: Final = 3
"""After so many failures in a row the user gets one notice, until the next success."""
_QUOTING: Final = ("files", "lost", "left", "kept")


@dataclass(frozen=True, slots=True)
class DreamOutcome:
    """The result of a dream. `outcome`: landed, unchanged, proposed or shown (a dry run)."""

    outcome: str
    way: str
    rounds: int
    cost_usd: float
    hit_rate: float
    tokens: int = 0
    denied: tuple[str, ...] = ()
    held: int = 0
    """Statements that were kept for the user, or could not be written."""
    waits: int = 0
    """Statements that wait in the inbox."""
    proposal: Proposal | None = None
    landed: LandingResult | None = None

    @property
    def stopped(self) -> bool:
        """Whether something it wanted to do was denied or waits for the user."""
        return bool(self.denied or self.held)

    def to_json(self) -> JsonObject:
        changes = self.proposal.changes if self.proposal is not None else ()
        return {
            "outcome": self.outcome,
            "way": self.way,
            "rounds": self.rounds,
            "cost_usd": round(self.cost_usd, 6),
            "hit_rate": round(self.hit_rate, 4),
            "denied": list(self.denied),
            "held": self.held,
            "waits": self.waits,
            "id": self.proposal.id if self.proposal is not None else None,
            "files": [{"file": one.name, "change": one.verb, "reason": one.reason} for one in changes],
            "lost": list(self.proposal.lost) if self.proposal is not None else [],
            "version": self.landed.version.id if self.landed is not None and self.landed.version is not None else None,
            "left": dict(self.landed.left) if self.landed is not None else {},
            "kept": list(self.proposal.kept) if self.proposal is not None else [],
        }


def describe_outcome(dreamt: DreamOutcome) -> str:
    """Describes the result in a sentence that names its files and says what waits."""
    count = dreamt.waits
    waits = f"; {count} line{'s wait' if count > 1 else ' waits'}: /memory inbox" if count else ""
    return _describe_changes(dreamt) + waits


def _describe_changes(dreamt: DreamOutcome) -> str:
    match dreamt.outcome:
        case "landed":
            landed = dreamt.landed
            files = ", ".join(landed.files) if landed is not None and landed.files else "the index"
            left = f"; left as they are: {', '.join(landed.left)}" if landed is not None and landed.left else ""
            return f"a dream put memory in order: {files}{left}; `reverie dream undo` takes it back"
        case "proposed" | "shown":
            files = (", ".join(dreamt.proposal.files) if dreamt.proposal is not None else "") or "the index"
            if dreamt.outcome == "shown":
                return f"a dream would change: {files}; nothing was changed, /dream review shows how"
            return f"a dream waits for you, it would change: {files}; `reverie dream review` shows how"
        case _:
            return "a dream changed nothing" if dreamt.stopped else "a dream found everything in order"


@dataclass(eq=False, slots=True)
class DreamReporter:
    """The reports of one session. `among` quotes the memories that the last refusal was about."""

    memory: Path
    state: StateFile
    log: BackgroundLog
    emit: Callable[[Event], None]
    among: str = field(default="", init=False)

    def succeeded(self, dreamt: DreamOutcome, now: float, *, undistilled: Sequence[Path], asks: bool) -> None:
        """Reports a dream that succeeded. `asks`: the user wants a notice whatever the result is."""
        landed = dreamt.landed
        changed: JsonObject = {"version": landed.version.id} if landed is not None and landed.version else {}
        if undistilled:
            changed["distilled"] = undistilled[-1].stem
        self.state.change(
            last_success=now,
            last_attempt=now,
            outcome=dreamt.outcome,
            reason=describe_outcome(dreamt),
            failures_in_a_row=0,
            told=False,
            way=dreamt.way,
            rounds=dreamt.rounds,
            tokens=dreamt.tokens,
            cost_usd=dreamt.cost_usd,
            hit_rate=dreamt.hit_rate,
            denied=len(dreamt.denied),
            **changed,
        )
        figures = {name: value for name, value in dreamt.to_json().items() if name not in _QUOTING}
        files, left = (list(landed.files), list(landed.left)) if landed is not None else ([], [])
        self.note("dream_completed", **figures, files=files, left=left)
        if dreamt.outcome == "landed" or dreamt.waits or asks:
            self.tell(describe_outcome(dreamt))

    def failed(self, error: BaseException, now: float, *, way: str, dry: bool, by_hand: bool) -> None:
        """Counts and logs a failure; a kill does not count. The user gets a notice if they started the dream, else once
        after the third failure in a row."""
        killed = isinstance(error, asyncio.CancelledError)
        reason = "killed" if killed else str(error) if isinstance(error, ReverieError) else type(error).__name__
        self.note("dream_killed" if killed else "dream_failed", error=reason, way=way)
        self.among = error.among if isinstance(error, DreamRefused) else ""
        if by_hand and not killed:
            self.tell(f"the dream came to nothing: {reason} {self.among}".rstrip(), "error")
        if dry:
            return
        before = self.state.read()
        failures = before.failures_in_a_row + (not killed)
        tell = failures >= FAILURES_REPORTED and not before.told
        self.state.change(
            last_attempt=now,
            outcome="killed" if killed else "failed",
            reason=f"{reason} {self.among}".rstrip(),
            failures_in_a_row=failures,
            told=before.told or tell,
        )
        if tell:
            self.tell(f"dreaming has failed {failures} times in a row: {reason}; see `reverie dream log`", "warning")

    def note(self, kind: str, **fields: Json) -> None:
        """Writes a line for `reverie dream log`."""
        self.log.write(kind, memory=str(self.memory), **fields)

    def tell(self, text: str, level: str = "info") -> None:
        """Shows a notice to the user."""
        self.emit(Notice(text, level, "dream"))
