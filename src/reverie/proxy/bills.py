"""The two bills of a request: as it was sent, and as it came. Both by the simulator's meter, with the real prices.

What the server reported says how much was paid; the ratio of the two bills says what it would have been without us.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

from reverie.models.catalogue import Catalogue
from reverie.models.prices import cost, input_equivalents
from reverie.parsing import load_json
from reverie.proxy.bodies import Api
from reverie.proxy.caches import SharedEntries
from reverie.quick import dataclass
from reverie.simulator.cache import AutomaticCache, PromptCache
from reverie.simulator.errors import ApiError
from reverie.simulator.meter import Caller, Meter
from reverie.storage.transcript.session_log import Clock, utc_now
from reverie.types import Usage

_MOST_METERED = 32_000_000
"""Bytes of a request that a meter counts; vendors refuse larger ones."""


@dataclass(frozen=True, slots=True)
class TwoBills:
    """By the meters: as it was sent and as it came, in US dollars and in tokens of fresh input. And what was paid, for
    which model."""

    sent: float
    direct: float
    sent_tokens: float
    direct_tokens: float
    paid: float
    model: str

    @property
    def paid_directly(self) -> float:
        """What the same request would have cost without the proxy."""
        return self.paid * self.direct / self.sent if self.sent > 0 else self.paid


class Bills:
    """Two meters side by side. They know the caches of their own world only."""

    def __init__(self, catalogue: Catalogue, caches: Path | None = None, clock: Clock = utc_now) -> None:
        self._catalogue = catalogue
        self._clock = clock
        self._shared = list[SharedEntries]()
        self._sent = self._meter("sent", caches)
        self._direct = self._meter("direct", caches)
        self._lock = Lock()

    def _meter(self, world: str, caches: Path | None) -> Meter:
        """A meter; with a file, all workers see the same caches."""
        meter = Meter(self._catalogue, window=10**9, explains=False)
        if caches is not None:
            with suppress(sqlite3.Error):
                shared = SharedEntries(caches, world)
                self._shared.append(shared)
                meter.cache, meter.automatic = PromptCache(shared), AutomaticCache(shared)
        return meter

    def is_priced(self, model: str) -> bool:
        """Whether the price of a model is known."""
        return self._catalogue.facts(model).priced

    def close(self) -> None:
        with self._lock:
            for shared in self._shared:
                shared.close()

    def book(
        self,
        api: Api,
        came: bytes,
        sent: bytes,
        client: str,
        usage: Usage,
        *,
        is_ours: bool = False,
        said: int | None = None,
    ) -> TwoBills:
        """Bills one answered request; with zeros if the meters do not know its form. `is_ours`: without us there would
        be no such request. `said`: how many tokens of the answer would have been said directly; without it all of them,
        and none in a request of ours. Call it in a thread."""
        direct = own = (0.0, 0.0)
        facts = self._catalogue.facts(model := _model(came))
        directly = Usage(output_tokens=said or 0)
        if len(came) > _MOST_METERED:
            return TwoBills(0.0, 0.0, 0.0, 0.0, cost(usage, facts), model)
        with self._lock:
            now = self._clock().timestamp()
            try:
                if is_ours:
                    direct = cost(directly, facts), input_equivalents(directly, facts)
                else:
                    output = usage.output_tokens if said is None else said
                    direct = self._bill(self._direct, api, came, client, now, output)
                own = self._bill(self._sent, api, sent, client, now, usage.output_tokens)
            except (ApiError, ValueError, KeyError, TypeError, AttributeError, sqlite3.Error):
                direct = own = (0.0, 0.0)
        return TwoBills(own[0], direct[0], own[1], direct[1], cost(usage, facts), model)

    def _bill(self, meter: Meter, api: Api, raw: bytes, client: str, now: float, output: int) -> tuple[float, float]:
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
        billing = meter.begin(opened, output)
        meter.ledger.rows.clear()  # sums are in the book; a server that runs for weeks keeps none
        return billing.cost, billing.input_equivalents


def _model(raw: bytes) -> str:
    return str(load_json(raw).get("model") or "")
