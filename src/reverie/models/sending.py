"""The only caller of `Model.stream`: sends a request, retries it if that may help, and keeps the log.

Waits have full jitter, so that many clients do not retry at the same moment. `Restarted` says that what was streamed
before a failure is void. A request is never changed.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TypeAlias

from reverie.errors import ModelError, NoConnection, Unreachable
from reverie.models.base import Finished, Model, ModelEvent, Request
from reverie.models.request_log import RequestLog
from reverie.quick import dataclass
from reverie.settings import Settings


@dataclass(frozen=True, slots=True)
class Restarted:
    """The request is sent again, and what was streamed of the answer is void."""

    reason: str


SendEvent: TypeAlias = ModelEvent | Restarted


@dataclass(frozen=True, slots=True)
class Retry:
    """A failed attempt (`attempt` counts from 1) and the wait before the next."""

    reason: str
    seconds: float
    attempt: int


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often to retry and how long to wait. Tests can replace `random` and `sleep`."""

    retries: int = 8
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0
    longest_retry_after_s: float = 300.0
    """If a server asks for a longer wait than this, the error is raised."""
    longest_connecting_s: float = 2.0
    """How long an address without an answer is tried. An address that has answered gets all retries."""
    random: Callable[[], float] = random.random
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep

    @classmethod
    def of(cls, settings: Settings) -> RetryPolicy:
        given = settings.model
        return cls(
            given.retries,
            given.retry_first_wait_s,
            given.retry_longest_wait_s,
            given.retry_longest_asked_s,
            given.retry_connecting_s,
        )

    def wait(self, attempt: int, error: ModelError, *, connecting_s: float | None = None) -> float | None:
        """Seconds to wait after this failed attempt; None: give up.

        `connecting_s`: how long this address has been tried without an answer; None if there was an answer.
        """
        if not error.retryable or attempt > self.retries:
            return None
        backoff = self.random() * min(self.longest_wait_s, self.first_wait_s * 2 ** (attempt - 1))
        if connecting_s is not None and connecting_s + backoff > self.longest_connecting_s:
            return None
        asked = error.retry_after or 0.0
        return None if asked > self.longest_retry_after_s else asked + backoff


async def send(
    model: Model,
    request: Request,
    *,
    policy: RetryPolicy,
    on_retry: Callable[[Retry], None] = lambda _retry: None,
    log: RequestLog | None = None,
) -> AsyncGenerator[SendEvent, None]:
    """Streams the answer; `Finished` is the last event. Raises a `ModelError` when retries do not help.

    Close it (`contextlib.aclosing`) or cancel the task when you stop reading, to end the connection.
    """
    attempt, waited, answered, began = 1, 0.0, False, time.monotonic()
    while True:
        streamed = False
        if log:
            log.add(request)
        try:
            async with aclosing(_events(model, request)) as events:
                async for event in events:
                    streamed = True
                    yield event
            return
        except ModelError as error:
            answered = answered or not isinstance(error, NoConnection)
            tried_s = None if answered else max(waited, time.monotonic() - began)
            seconds = policy.wait(attempt, error, connecting_s=tried_s)
            if seconds is None:
                raise
            reason = str(error)
        if streamed:
            yield Restarted(reason)
        on_retry(Retry(reason, seconds, attempt))
        await policy.sleep(seconds)
        attempt, waited = attempt + 1, waited + seconds


async def _events(model: Model, request: Request) -> AsyncGenerator[ModelEvent, None]:
    """The events of the model's stream up to `Finished`; the stream is closed in every case."""
    stream = model.stream(request)
    try:
        async for event in stream:
            yield event
            if isinstance(event, Finished):
                return
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
    raise Unreachable("The answer ended before it was complete; the connection may have been cut.")
