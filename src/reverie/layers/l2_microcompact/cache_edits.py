"""Deletes old results inside the server's cache, for endpoints that can: local messages and the prefix stay.

Once sent, a deletion is sent again in its place with every later request; the view keeps them and the request carries
them. Only the main thread adds to them.
"""

from __future__ import annotations

from collections.abc import Sequence

from reverie.layers.l2_microcompact.results import Held, ResultIndex


def to_delete(index: ResultIndex, *, above: int, keep_recent: int) -> Sequence[Held]:
    """All but the newest `keep_recent`, if there are more than `above` results that could be cleared; else none.

    Results that came since the last request are never among them: the model has not seen those yet.
    """
    seen = [held for held in index.held[: -max(1, keep_recent)] if held.since < index.rounds]
    return seen if len(index.held) > above else ()
