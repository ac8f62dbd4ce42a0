"""The only caller of `Model.stream`: sends a request, tries again what may succeed later, and keeps the log.

Policy lives here and not in the adapters: how often, how long, with full jitter so that a fleet does not knock in
step. Whatever was streamed before a failure is declared void by `Restarted`. Never changes a request.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeAlias

from reverie.errors import ModelError, Unreachable
from reverie.models.base import Finished, Model, ModelEvent, Request
from reverie.models.request_log import RequestLog


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
    random: Callable[[], float] = random.random
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep

    def wait(self, attempt: int, error: ModelError) -> float | None:
        """Seconds before trying again after this failed attempt; None: give up."""
        if not error.retryable or attempt > self.retries:
            return None
        backoff = self.random() * min(self.longest_wait_s, self.first_wait_s * 2 ** (attempt - 1))
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
    attempt = 1
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
            seconds = policy.wait(attempt, error)
            if seconds is None:
                raise
            reason = str(error)
        if streamed:
            yield Restarted(reason)
        on_retry(Retry(reason, seconds, attempt))
        await policy.sleep(seconds)
        attempt += 1


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
