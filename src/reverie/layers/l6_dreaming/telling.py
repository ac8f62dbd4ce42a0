"""How a dream is told of: in its heartbeat, in the background log, and to whoever sits at the session.

What a memory says is told to people who ask (`among`, the heartbeat inside the memory directory) and never to the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from reverie.errors import ReverieError
from reverie.events import Event, Notice
from reverie.layers.l6_dreaming.outcome import Dreamt, told
from reverie.layers.l6_dreaming.proposal import DreamRefused
from reverie.layers.l6_dreaming.state import StateFile
from reverie.runtime.background_log import BackgroundLog
from reverie.types import Json, JsonObject

FAILURES_TOLD: Final = 3
"""So many in a row are told to the person, once, until the next success."""
_QUOTING: Final = ("files", "lost", "left", "kept")


class DreamTelling:
    """One a session. `among`: what the last refusal was about, in the words of the memories."""

    def __init__(self, memory: Path, state: StateFile, log: BackgroundLog, emit: Callable[[Event], None]) -> None:
        self.among = ""
        self._memory = memory
        self._state = state
        self._log = log
        self._emit = emit

    def succeeded(self, dreamt: Dreamt, now: float, *, undistilled: Sequence[Path], asks: bool) -> None:
        """A dream came to a good end. `asks`: the person wants to be told whatever it came to, or of what waits."""
        landed = dreamt.landed
        changed: JsonObject = {"version": landed.version.id} if landed is not None and landed.version else {}
        if undistilled:
            changed["distilled"] = undistilled[-1].stem
        self._state.change(
            last_success=now,
            last_attempt=now,
            outcome=dreamt.outcome,
            reason=told(dreamt),
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
        if dreamt.outcome == "landed" or asks:
            self.tell(told(dreamt))

    def failed(self, error: BaseException, now: float, *, way: str, dry: bool, by_hand: bool) -> None:
        """Counts and logs. Says so to whoever began it by hand; else once, when it was the third time in a row.

        A kill is no failure.
        """
        killed = isinstance(error, asyncio.CancelledError)
        reason = "killed" if killed else str(error) if isinstance(error, ReverieError) else type(error).__name__
        self.note("dream_killed" if killed else "dream_failed", error=reason, way=way)
        self.among = error.among if isinstance(error, DreamRefused) else ""
        if by_hand and not killed:
            self.tell(f"the dream came to nothing: {reason} {self.among}".rstrip(), "error")
        if dry:
            return
        before = self._state.read()
        failures = before.failures_in_a_row + (not killed)
        tell = failures >= FAILURES_TOLD and not before.told
        self._state.change(
            last_attempt=now,
            outcome="killed" if killed else "failed",
            reason=f"{reason} {self.among}".rstrip(),
            failures_in_a_row=failures,
            told=before.told or tell,
        )
        if tell:
            self.tell(f"dreaming has failed {failures} times in a row: {reason}; see `reverie dream log`", "warning")

    def note(self, kind: str, **fields: Json) -> None:
        """A line for `reverie dream log`, which asks for one memory directory."""
        self._log.write(kind, memory=str(self._memory), **fields)

    def tell(self, text: str, level: str = "info") -> None:
        """A notice for the person."""
        self._emit(Notice(text, level, "dream"))
