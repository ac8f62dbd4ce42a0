"""The two bills of a request: as it was sent, and as it came. Both by the simulator's meter, with the real prices.

What the server reported says how much was paid; the ratio of the two bills says what it would have been without us.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any

from reverie.models.catalogue import Catalogue
from reverie.models.prices import cost
from reverie.parsing import load_json
from reverie.proxy.bodies import Api
from reverie.quick import dataclass
from reverie.simulator.errors import ApiError
from reverie.simulator.meter import Caller, Meter
from reverie.storage.transcript.session_log import Clock, utc_now
from reverie.types import Usage


@dataclass(frozen=True, slots=True)
class TwoBills:
    """By the meters: as it was sent and as it came, in US dollars and in tokens of fresh input. And what was paid."""

    sent: float
    direct: float
    sent_tokens: float
    direct_tokens: float
    paid: float

    @property
    def paid_directly(self) -> float:
        """What the same request would have cost without the proxy."""
        return self.paid * self.direct / self.sent if self.sent > 0 else self.paid


class Bills:
    """Two meters side by side. They know the caches of their own world only."""

    def __init__(self, catalogue: Catalogue, clock: Clock = utc_now) -> None:
        self._catalogue = catalogue
        self._clock = clock
        self._sent = Meter(catalogue, window=10**9)
        self._direct = Meter(catalogue, window=10**9)
        self._lock = Lock()

    def book(
        self, api: Api, came: bytes, sent: bytes, client: str, usage: Usage, *, is_ours: bool = False
    ) -> TwoBills | None:
        """Bills one answered request; None if the meter does not know its form. `is_ours`: without us there would be
        no such request. Call it in a thread."""
        with self._lock:
            now = self._clock().timestamp()
            try:
                direct = (0.0, 0.0) if is_ours else self._bill(self._direct, api, came, client, now, usage)
                own = self._bill(self._sent, api, sent, client, now, usage)
            except (ApiError, ValueError, KeyError, TypeError, AttributeError):
                return None
        facts = self._catalogue.facts(_model(came))
        return TwoBills(own[0], direct[0], own[1], direct[1], cost(usage, facts))

    def _bill(self, meter: Meter, api: Api, raw: bytes, client: str, now: float, usage: Usage) -> tuple[float, float]:
        from reverie.simulator import chat, responses

        body: Mapping[str, Any] = load_json(raw)
        caller = Caller(client)
        if api == "messages":
            opened = meter.open(body, now, caller)
        else:
            plain = (chat if api == "chat" else responses).to_messages(body)
            if api == "responses":
                plain = responses.with_instructions(plain, body)
            opened = meter.open_chat(plain, now, caller)
        billing = meter.begin(opened, usage.output_tokens)
        meter.ledger.rows.clear()  # sums are in the book; a server that runs for weeks keeps none
        return billing.cost, billing.input_equivalents


def _model(raw: bytes) -> str:
    return str(load_json(raw).get("model") or "")
