"""The only caller of `Model.stream`: sends a request, tries again what may succeed later, and keeps the log.

Policy lives here and not in the adapters: how often, how long, with full jitter so that a fleet does not knock in
step. Whatever was streamed before a failure is declared void by `Restarted`. Never changes a request.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeAlias

from reverie.errors import ModelError, NoConnection, Unreachable
from reverie.models.base import Finished, Model, ModelEvent, Request
from reverie.models.request_log import RequestLog
from reverie.settings import Settings


@dataclass(frozen=True, slots=True)
class Restarted:
    """What was streamed of this answer is void: the request is sent again."""

    reason: str


SendEvent: TypeAlias = ModelEvent | Restarted


@dataclass(frozen=True, slots=True)
class Retry:
    """A failed attempt (`attempt` counts from 1) and how long we wait before the next."""

    reason: str
    seconds: float
    attempt: int


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how patiently. `random` and `sleep` can be replaced, so that a test needs no time."""

    retries: int = 8
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0
    longest_retry_after_s: float = 300.0
    """A server that asks for more patience than this gets none: the error is raised."""
    longest_connecting_s: float = 2.0
    """How long an address is tried at which nobody answers. One that has answered gets all retries."""
    random: Callable[[], float] = random.random
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep

    @classmethod
    def of(cls, settings: Settings) -> RetryPolicy:
        """As the settings say."""
        given = settings.model
        return cls(
            given.retries,
            given.retry_first_wait_s,
            given.retry_longest_wait_s,
            given.retry_longest_asked_s,
            given.retry_connecting_s,
        )

    def wait(self, attempt: int, error: ModelError, *, connecting_s: float | None = None) -> float | None:
        """Seconds before trying again after this failed attempt; None: give up.

        `connecting_s`: how long this address has been tried without any answer; None if somebody has answered.
        """
        if not error.retryable or attempt > self.retries:
            return None
        backoff = self.random() * min(self.longest_wait_s, self.first_wait_s * 2 ** (attempt - 1))
        if connecting_s is not None and connecting_s + backoff > self.longest_connecting_s:
            return None
        asked = error.retry_after or 0.0
        return None if asked > self.longest_retry_after_s else asked + backoff


def _quiet(_retry: Retry) -> None:
    pass


async def send(
    model: Model,
    request: Request,
    *,
    policy: RetryPolicy,
    on_retry: Callable[[Retry], None] = _quiet,
    log: RequestLog | None = None,
) -> AsyncGenerator[SendEvent, None]:
    """Streams the answer; `Finished` is the last event. Raises a `ModelError` when trying again does not help.

    Close it (`contextlib.aclosing`) or cancel the task when you stop reading: the connection ends with it.
    """
    attempt, waited, answered, began = 1, 0.0, False, time.monotonic()
    while True:
        streamed = False
        if log:
            log.sent(request)
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
    """The model's own stream, ended at `Finished` and closed on every way out."""
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
