"""Writes and recalls over HTTP against a real server, at several sizes: how many per second, and how long
one takes."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

from bench.scratch import wait_for_server
from bench.serve.population import Person, database_size, fill, make_people, wait_for_vectors
from bench.serve.texts import write_memories
from reverie.errors import ReverieError
from reverie.memory.recall.encoder import SentenceEncoder
from reverie.quick import dataclass
from reverie.runtime.loopback import listen
from reverie.server.embedded import EmbeddedPostgres

AIM: Final = 3.0
"""The middle of all recalls and writes with the most memories may take so many times that with the fewest."""
_CLIENTS: Final = 8
_START_S: Final = 120.0
_SETTLE_S: Final = 600.0
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Times:
    """One kind of request: per second with several clients, and milliseconds of one client alone."""

    per_second: float
    p50_ms: float
    p95_ms: float

    @classmethod
    def of(cls, alone: Sequence[float], per_second: float) -> Times:
        ordered = sorted(alone)
        return cls(
            round(per_second, 1),
            round(ordered[len(ordered) // 2] * 1_000, 2),
            round(ordered[int(len(ordered) * 0.95)] * 1_000, 2),
        )


@dataclass(frozen=True, slots=True)
class Measured:
    """One store with some number of memories."""

    name: str
    memories: int
    writes: Times
    recalls: Times
    megabytes: float = 0.0


def measure_server(
    postgres: EmbeddedPostgres, encoder: SentenceEncoder, home: Path, sentences: list[str], sizes: Sequence[int],
    requests: int, tell: Tell,
) -> list[Measured]:  # fmt: skip
    """The server at each size, in a database of its own that is dropped afterwards."""
    import psycopg

    found = list[Measured]()
    for size in sizes:
        name = f"lab_{size}"
        with psycopg.connect(postgres.dsn, autocommit=True) as connection:
            connection.execute(f"drop database if exists {name} with (force)".encode())
            connection.execute(f"create database {name}".encode())
        dsn = postgres.dsn.replace("/postgres?", f"/{name}?")
        people = asyncio.run(make_people(dsn, _CLIENTS))
        fill(dsn, encoder, sentences, size, lambda done, of: tell(f"{done:,} of {of:,} memories"))
        with _serving(dsn, home) as port:
            tell(f"asks, with {size:,} memories")
            recalls = _measure(port, people, list(_recalls(sentences, requests)))
            writes = _measure(port, people, list(_writes(sentences, people, requests)))
            until = time.monotonic() + _SETTLE_S
            while not wait_for_vectors(dsn) and time.monotonic() < until:
                time.sleep(0.5)
        found.append(Measured("server", size, writes, recalls, round(database_size(dsn) / 1e6, 1)))
        with psycopg.connect(postgres.dsn, autocommit=True) as connection:
            connection.execute(f"drop database {name} with (force)".encode())
    return found


@dataclass(frozen=True, slots=True)
class _Request:
    path: str
    body: bytes
    person: int = -1
    """Whose store it is for; -1: anybody may ask."""


def questions(sentences: list[str], count: int) -> list[str]:
    """The beginnings of sentences."""
    chance = random.Random(17)
    return [" ".join(chance.choice(sentences).split()[: chance.randrange(6, 16)]) for _ in range(count)]


def _recalls(sentences: list[str], count: int) -> Iterable[_Request]:
    for one in questions(sentences, count):
        yield _Request("/v1/reverie/recall", json.dumps({"query": one, "limit": 5}).encode())


def _writes(sentences: list[str], people: Sequence[Person], count: int) -> Iterable[_Request]:
    for number, (_, text) in enumerate(write_memories(sentences, count)):
        person = number % len(people)
        body = {"path": f"/lab_{number:x}.md", "content": text}
        yield _Request(f"/v1/memory_stores/{people[person].store}/memories", json.dumps(body).encode(), person)


def _measure(port: int, people: Sequence[Person], requests: Sequence[_Request]) -> Times:
    """One half of the requests one after the other, the other half by several clients at once."""
    half = len(requests) // 2
    alone = [_ask_all(port, people, [one], number)[0] for number, one in enumerate(requests[:half])]
    parts = [requests[half:][number :: len(people)] for number in range(len(people))]
    began = time.monotonic()
    with ThreadPoolExecutor(len(people)) as threads:
        asked = [threads.submit(_ask_all, port, people, part, number) for number, part in enumerate(parts)]
        done = sum(len(one.result()) for one in asked)
    return Times.of(alone, done / (time.monotonic() - began))


def _ask_all(port: int, people: Sequence[Person], requests: Sequence[_Request], number: int) -> list[float]:
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    connection.connect()
    taken = list[float]()
    for one in requests:
        person = people[(one.person if one.person >= 0 else number) % len(people)]
        headers = {"x-api-key": person.token, "content-type": "application/json"}
        began = time.perf_counter()
        connection.request("POST", one.path, one.body, headers)
        answer = connection.getresponse()
        data = answer.read()
        taken.append(time.perf_counter() - began)
        if answer.status != 200:
            raise ReverieError(f"The server answered {answer.status}: {data[:200].decode(errors='replace')}")
    connection.close()
    return taken


@contextmanager
def _serving(dsn: str, home: Path) -> Generator[int]:
    with listen(0) as free:
        port = int(free.getsockname()[1])
    env = {**os.environ, "REVERIE_HOME": str(home), "REVERIE_SERVE_DSN": dsn}  # the models are in the home
    command = [sys.executable, "-m", "reverie", "serve", "--port", str(port)]
    process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        wait_for_server(process, port, "/healthz", "The memory server", _START_S)
        yield port
    finally:
        process.terminate()
        process.wait()


def summary(found: Sequence[Measured]) -> dict[str, Any]:
    """As JSON: each row, and how the largest server compares with the smallest."""
    servers = [one for one in found if one.name == "server"]
    first, last = servers[0], servers[-1]
    return {
        "measured": [
            {
                "name": one.name,
                "memories": one.memories,
                "megabytes": one.megabytes,
                **{
                    kind: {"per_second": times.per_second, "p50_ms": times.p50_ms, "p95_ms": times.p95_ms}
                    for kind, times in (("writes", one.writes), ("recalls", one.recalls))
                },
            }
            for one in found
        ],
        "recall_ratio": round(last.recalls.p50_ms / first.recalls.p50_ms, 2),
        "write_ratio": round(last.writes.p50_ms / first.writes.p50_ms, 2),
        "aim": AIM,
    }
