"""How a lead ends its team: which teammates were asked to end, agreed, refused or are late. Pure.

A teammate that refuses is asked again a few times. One that does not answer or does not go is late.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from reverie.agents.messages.structured import ShutdownRequest, ShutdownResponse, new_request_id
from reverie.quick import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """`answer_s`: time for an answer, and again for leaving. `again_s`: pause after a refusal. `refusals`: how many."""

    answer_s: float = 60.0
    again_s: float = 30.0
    refusals: int = 3


@dataclass(slots=True)
class _Asked:
    request_id: str
    at: float
    leaving: bool = False
    refused: str | None = None


@dataclass(slots=True)
class Handshake:
    """The requests of one lead. With `insists`, the whole team must end and refusals do not count."""

    patience: Patience
    insists: bool = False
    _asked: dict[str, _Asked] = field(default_factory=dict[str, _Asked])
    _refusals: dict[str, int] = field(default_factory=dict[str, int])

    def may_ask(self, names: Iterable[str], now: float) -> list[str]:
        """The teammates that were not asked yet, or refused long enough ago and not too often."""
        return [name for name in names if self._may_ask(name, now)]

    def ask(self, name: str, now: float, reason: str) -> ShutdownRequest:
        """Returns the request for this teammate."""
        self._asked[name] = _Asked(new_request_id(), now)
        return ShutdownRequest(self._asked[name].request_id, reason)

    def answered(self, name: str, response: ShutdownResponse, now: float) -> bool:
        """Records an answer; False if it does not belong to an open request."""
        asked = self._asked.get(name)
        if asked is None or asked.request_id != response.request_id or asked.leaving or asked.refused is not None:
            return False
        asked.at = now
        if response.approve:
            asked.leaving = True
        else:
            asked.refused = response.reason
            self._refusals[name] = self._refusals.get(name, 0) + 1
        return True

    def late(self, names: Iterable[str], now: float) -> list[str]:
        """The teammates without an answer in time, not gone after a yes, or with too many refusals."""
        return [name for name in names if self._is_late(name, now)]

    def _may_ask(self, name: str, now: float) -> bool:
        asked = self._asked.get(name)
        if asked is None:
            return True
        return asked.refused is not None and not self._is_late(name, now) and now - asked.at >= self.patience.again_s

    def _is_late(self, name: str, now: float) -> bool:
        asked = self._asked.get(name)
        if asked is None:
            return False
        if asked.refused is not None and not self.insists:
            return self._refusals[name] > self.patience.refusals
        return now - asked.at >= self.patience.answer_s
