"""After an hour's pause the server's cache is gone anyway: what is old goes before everything is written again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from reverie.layers.l2_microcompact.results import Held, ResultIndex


def old_results(index: ResultIndex, now: datetime, *, pause_minutes: float, keep_recent: int) -> Sequence[Held]:
    """All results but the newest `keep_recent` (one at least), if the last answer is that old; else none.

    What the model has not seen yet stays in any case. Asked again it finds nothing left to do. A clock that went back
    makes no answer old.
    """
    if index.answered_at is None or (now - index.answered_at).total_seconds() < pause_minutes * 60:
        return ()
    return [held for held in index.held[: -max(1, keep_recent)] if held.since < index.rounds]
