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
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click

from bench.scratch import count_option, wait_for_server
from bench.serve.population import Person, database_size, fill, make_people, wait_for_vectors
from bench.serve.texts import load_sentences, write_memories
from reverie.cli.options import cwd_option, load_places
from reverie.cli.output import show_progress, warn
from reverie.errors import ReverieError
from reverie.lab.measurement import Result, Table, measurement
from reverie.memory.recall.encoder import SentenceEncoder, open_encoder
from reverie.quick import dataclass
from reverie.runtime.loopback import listen
from reverie.server.embedded import EmbeddedPostgres

AIM: Final = 3.0
"""The middle of all recalls and writes with the most memories may take so many times that with the fewest."""
_TIMES: Final = ("per_second", "p50_ms", "p95_ms")
_CLIENTS: Final = 8
_START_S: Final = 120.0
_SETTLE_S: Final = 600.0
_SIZES: Final = (1_000, 100_000, 1_000_000)
_BESIDE: Final = (1_000, 10_000)


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
            per_second,
            ordered[len(ordered) // 2] * 1_000,
            ordered[int(len(ordered) * 0.95)] * 1_000,
        )


@dataclass(frozen=True, slots=True)
class Measured:
    """One store with some number of memories."""

    name: str
    memories: int
    writes: Times
    recalls: Times
    megabytes: float = 0.0


@measurement("reverie lab serve --json", "reverie lab serve --size 1000 --size 20000 --requests 100")
@click.option(
    "--size",
    "sizes",
    multiple=True,
    type=click.IntRange(min=1_000),
    help="How many memories, in 1,000 stores.  [default: 1000, 100000 and 1000000; the last needs 6 GB]",
)
@count_option("--requests", 400, 40, "Requests of each kind.")
@click.option(
    "--texts",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=Path("docs"),
    show_default=True,
    help="A folder with Markdown files: memories and questions are made of their sentences.",
)
@click.option("--alone", is_flag=True, help="Without the folder and mem0.")
@cwd_option
def serve(sizes: tuple[int, ...], requests: int, texts: Path, alone: bool, cwd: Path) -> Result:
    """Measure how fast the memory server writes and recalls.

    A PostgreSQL of its own gets 1,000 stores: private ones, and those of projects, teams and an organisation. Memories
    are made of sentences of a folder; their vectors lie around those of 2,000 real sentences. A real server answers
    over HTTP: one client alone for the times, eight for the requests per second. Beside it, the same texts are in a
    memory directory, and in mem0 (without its model, with our encoder) if that is installed. The encoder must be
    there: `reverie models add minilm`.

    Exit codes: 0: the middle time with the most memories is at most 3 times that with the fewest; 1: it is not; 2:
    wrong usage.
    """
    from bench.serve.beside import PROGRAM, measure_folder, measure_mem0

    settings, places = load_places(cwd)
    encoder = open_encoder(places.models, settings.memory.encoder)
    sentences = load_sentences(texts)
    with TemporaryDirectory(prefix="reverie-lab-") as scratch:
        postgres = EmbeddedPostgres.at(Path(scratch))
        postgres.start()
        try:
            measured = measure_server(postgres, encoder, places.home, sentences, sizes or _SIZES, requests)
        finally:
            postgres.remove()
    show_progress("done", ends_line=True)
    if not alone:
        asked = questions(sentences, requests // 2)
        for size in _BESIDE:
            measured.append(measure_folder(places.home, sentences, size, requests // 4, asked))
            if PROGRAM.is_file():
                folder = places.models / settings.memory.encoder
                measured.append(measure_mem0(PROGRAM, folder, sentences, size, asked, requests // 4))
        if not PROGRAM.is_file():
            warn(f"mem0 is not in {PROGRAM}, so it is left out; `make .venv-clients/mem0/.installed` installs it.")
    return report(measured)


def report(measured: Sequence[Measured]) -> Result:
    """Each store, and how the largest server compares with the smallest."""
    servers = [one for one in measured if one.name == "server"]
    first, last = servers[0], servers[-1]
    recall = round(last.recalls.p50_ms / first.recalls.p50_ms, 2)
    write = round(last.writes.p50_ms / first.writes.p50_ms, 2)
    columns = ("name", "memories", *(f"{kind}.{key}" for kind in ("writes", "recalls") for key in _TIMES), "megabytes")
    words = (
        f"With the most memories, a recall takes {recall} times as long as with the fewest, and a write {write} times."
    )
    figures = {"measured": measured, "recall_ratio": recall, "write_ratio": write, "aim": AIM}
    return Result(figures, (Table(measured, columns), words), holds=max(recall, write) <= AIM)


def measure_server(
    postgres: EmbeddedPostgres,
    encoder: SentenceEncoder,
    home: Path,
    sentences: list[str],
    sizes: Sequence[int],
    requests: int,
) -> list[Measured]:
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
        fill(dsn, encoder, sentences, size)
        with _serving(dsn, home) as port:
            show_progress(f"asks, with {size:,} memories")
            recalls = _measure(port, people, list(_recalls(sentences, requests)))
            writes = _measure(port, people, list(_writes(sentences, people, requests)))
            until = time.monotonic() + _SETTLE_S
            while not wait_for_vectors(dsn) and time.monotonic() < until:
                time.sleep(0.5)
        found.append(Measured("server", size, writes, recalls, database_size(dsn) / 1e6))
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
