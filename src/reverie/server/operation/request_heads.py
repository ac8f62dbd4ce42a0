"""A connection that does not send the head of a request is closed: it counts among those that the server allows, and
without this a stranger could hold all of them for ever by sending nothing."""

from __future__ import annotations

import asyncio
from typing import Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_HEAD_S: Final = 10.0


class ImpatientProtocol(H11Protocol):
    """HTTP as uvicorn speaks it; the head of each request has to be complete in time."""

    _closing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._closing = self.loop.call_later(_HEAD_S, transport.close)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_closing()
        elif self._closing is None:
            self._closing = self.loop.call_later(_HEAD_S, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_closing()
        super().connection_lost(exc)

    def _stop_closing(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None
