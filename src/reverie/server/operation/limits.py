"""Limits of a server process: requests per second and token, attempts with unknown tokens per address, and how long a
body may take to arrive. Kept in memory: with several processes, each has its own."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from reverie.quick import dataclass
from reverie.server.wire import ApiError

if TYPE_CHECKING:
    from starlette.requests import Request

RATE: Final = 1_000.0
_UNKNOWN_RATE, _UNKNOWN_BURST = 20.0, 200.0
_AUDIT_RATE, _AUDIT_BURST = 1.0, 20.0
_MOST_KEYS: Final = 10_000
_NOTED_S: Final = 3_600.0
_MOST_UPLOADS: Final = 4
_MOST_CHECKS: Final = 2
_IDLE_S: Final = 15.0
_WHOLE_S: Final = 300.0
_DRAINED: Final = 4_000_000
"""Bytes over the limit that are read and dropped: a client sees an answer only after it has sent everything."""


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


class Buckets:
    """A token bucket per key. Those that were not used for longest are forgotten, which only ever allows more."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate = rate
        self._burst = burst
        self._buckets: OrderedDict[bytes, _Bucket] = OrderedDict()

    def take(self, key: bytes) -> float:
        """0 if one more is allowed now, else the seconds until it is."""
        now = time.monotonic()
        bucket = self._buckets.setdefault(key, _Bucket(self._burst, now))
        self._buckets.move_to_end(key)
        if len(self._buckets) > _MOST_KEYS:
            self._buckets.popitem(last=False)
        bucket.left = min(self._burst, bucket.left + (now - bucket.at) * self._rate)
        bucket.at = now
        if bucket.left < 1:
            return (1 - bucket.left) / self._rate
        bucket.left -= 1
        return 0.0


class Limits:
    """The limits of one process."""

    def __init__(self, rate: float = RATE) -> None:
        self._tokens = Buckets(rate, 2 * rate) if rate else None
        self._unknown = Buckets(_UNKNOWN_RATE, _UNKNOWN_BURST)
        self._audited = Buckets(_AUDIT_RATE, _AUDIT_BURST)
        self._known: OrderedDict[bytes, float] = OrderedDict()
        """Tokens that worked, and when that was written down."""
        self._uploads = Counter[bytes]()
        self.checks = asyncio.Semaphore(_MOST_CHECKS)
        """Who may check what was uploaded and store it: only then it is in memory, in ours or in that of a child."""

    def check(self, token: bytes, address: str) -> None:
        """Raises 429. `token` is its hash. A token that worked before does not pay for others at its address, which
        may be that of a reverse proxy."""
        wait = self._tokens.take(token) if self._tokens and token in self._known else 0.0
        if token not in self._known:
            wait = self._unknown.take(address.encode())
        if wait:
            said = f"Too many requests: ask again in {math.ceil(wait)} s."
            raise ApiError(429, said, headers={"retry-after": str(math.ceil(wait))})

    def know(self, token: bytes) -> bool:
        """The token worked. Whether that should be written down: once per hour."""
        now = time.monotonic()
        noted = self._known.get(token)
        is_due = noted is None or now - noted > _NOTED_S
        self._known[token] = now if noted is None or is_due else noted
        self._known.move_to_end(token)
        if len(self._known) > _MOST_KEYS:
            self._known.popitem(last=False)
        return is_due

    def knows(self, token: bytes) -> bool:
        """Whether the token worked lately."""
        return token in self._known

    @contextmanager
    def one_upload(self, token: bytes) -> Generator[None]:
        """Raises 429 while the token sends `_MOST_UPLOADS` others: each of them is on the disk as a whole."""
        if self._uploads[token] >= _MOST_UPLOADS:
            said = f"Another {_MOST_UPLOADS} uploads of this token are on their way: send one after the other."
            raise ApiError(429, said, headers={"retry-after": "2"})
        self._uploads[token] += 1
        try:
            yield
        finally:
            self._uploads[token] -= 1
            self._uploads += Counter()  # drops those without one

    def forget(self, token: bytes) -> None:
        """The token does not work any more."""
        self._known.pop(token, None)

    def may_audit(self, address: str) -> bool:
        """Whether a failed login goes to the audit log: a flood of them must not fill the disk."""
        return self._audited.take(address.encode()) == 0.0


def announced_length(request: Request) -> float:
    """The length of the body as the request says; without end if it does not say."""
    length = request.headers.get("content-length", "0")
    if "transfer-encoding" in request.headers:
        return math.inf
    return int(length[:20]) if length.isascii() and length.isdigit() else 0


async def receive_body(request: Request, most: int) -> Request:
    """The same request with its body in memory, so that a slow client holds no connection to the database."""
    from starlette.requests import Request

    data = bytearray()
    await receive_in(data.extend, request, most)
    body = bytes(data)

    async def replay() -> dict[str, object]:
        return {"type": "http.request", "body": body, "more_body": False}

    return Request(request.scope, replay)


async def receive_in(take: Callable[[bytes], object], request: Request, most: int) -> None:
    """Gives the body of a request to `take`, part by part. Raises 413 if it has more than `most` bytes."""
    from starlette.requests import ClientDisconnect

    announced, seen = announced_length(request) if "transfer-encoding" not in request.headers else 0, 0
    chunks = request.stream()
    try:
        async with asyncio.timeout(_WHOLE_S):
            while max(announced, seen) <= most + _DRAINED:
                async with asyncio.timeout(_IDLE_S):
                    chunk = await anext(chunks)
                seen += len(chunk)
                if seen <= most:
                    take(chunk)
    except StopAsyncIteration:
        pass
    except TimeoutError:
        raise ApiError(408, "The request did not arrive in time.", headers={"connection": "close"}) from None
    except ClientDisconnect:
        raise ApiError(400, "The client went away.") from None
    if max(announced, seen) > most:
        raise ApiError(413, f"A request may have {most:,} bytes.")
