"""Counts what leaves no other trace: why layers had nothing to do, and requests that were sent again.

Counting is all it does: a session writes the counts to its transcript once per turn, and `reverie health` shows them.
"""

from __future__ import annotations

from collections import Counter

_REASON_CHARACTERS = 160
_REASONS = 100
"""At most this many different reasons per turn: some have numbers in them."""


class LayerTally:
    """The counts of one session since the last `take`."""

    def __init__(self) -> None:
        self._declined = Counter[str]()
        self._retried = Counter[str]()

    def declined(self, layer: str, why: str) -> None:
        _add(self._declined, layer, why)

    def retried(self, purpose: str, why: str) -> None:
        _add(self._retried, purpose, why)

    def take(self) -> tuple[dict[str, int], dict[str, int]]:
        """Returns what was counted, declined and retried, and begins again."""
        found = dict(self._declined), dict(self._retried)
        self._declined, self._retried = Counter[str](), Counter[str]()
        return found


def _add(counts: Counter[str], name: str, why: str) -> None:
    key = f"{name}: {' '.join(why.split())[:_REASON_CHARACTERS]}"
    counts[key if key in counts or len(counts) < _REASONS else f"{name}: other reasons"] += 1
