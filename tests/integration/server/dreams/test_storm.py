"""Many clients write at once and dreams run, while servers and workers are killed at random and the database crashes:
every acknowledged write is there, the versions of each store have no gaps, and each dream has landed once."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from reverie.server.embedded import EmbeddedPostgres
from tests.integration.server.conftest import Served, client
from tests.integration.server.dreams.setup import StartWorker
from tests.integration.server.dreams.test_faults import assert_once, start_dreams, wait_all

pytestmark = pytest.mark.integration
_SOAK = bool(os.environ.get("REVERIE_SOAK"))
CLIENTS = 50
WRITES = 10_000 if _SOAK else 600
KILLS = 40 if _SOAK else 5
RESTARTS = 5 if _SOAK else 1
STORES = 10
DREAMS = 20 if _SOAK else 3
LEASE_S = 5


class _Servers:
    """Two servers behind one list; a killed one is replaced."""

    def __init__(self, start: Callable[[], Served]) -> None:
        self._start = start
        self.running = [start(), start()]
        self.kills = 0

    def any(self) -> Served:
        return random.choice(self.running)

    def kill_one(self) -> None:
        place = random.randrange(len(self.running))
        self.running[place].kill()
        self.kills += 1
        self.running[place] = self._start()


def _persist(servers: _Servers, act: Callable[[Any], Any]) -> Any:
    """Asks until somebody answers: what a client with retries does."""
    import anthropic

    until = time.monotonic() + 120
    while True:
        server = servers.any()
        try:
            return act(client(server, server.anna).beta.memory_stores)
        except (anthropic.APIConnectionError, anthropic.InternalServerError):
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def _write(servers: _Servers, store: str, number: int, chance: random.Random) -> list[tuple[str, str]]:
    """A memory that is created, and sometimes changed; returns the acknowledged contents by id."""
    import anthropic

    acknowledged = list[tuple[str, str]]()
    text = f"Memory {number}, first."
    try:
        made = _persist(servers, lambda all: all.memories.create(store, path=f"/m{number}.md", content=text))
    except anthropic.ConflictError:  # the answer to an earlier try was lost: it is there
        listed = _persist(servers, lambda all: list(all.memories.list(store, path_prefix="/", limit=100)))
        made = next(one for one in listed if one.path == f"/m{number}.md")
    acknowledged.append((made.id, text))
    if chance.random() < 0.3:
        later = f"Memory {number}, second."
        _persist(servers, lambda all: all.memories.update(made.id, memory_store_id=store, content=later))
        acknowledged.append((made.id, later))
    return acknowledged


def test_no_acknowledged_write_is_lost_and_every_dream_lands_once(
    serve: Callable[[], Served], start_worker: StartWorker, postgres: EmbeddedPostgres
) -> None:
    servers = _Servers(serve)
    dreams = start_dreams(servers.any(), DREAMS)
    workers = [start_worker(lease=LEASE_S, jobs=2) for _ in range(2)]
    stores = [
        _persist(servers, lambda all, number=number: all.create(name=f"storm {number}")).id for number in range(STORES)
    ]
    over = threading.Event()
    wrong = list[BaseException]()

    def disturb() -> None:
        try:
            for number in range(KILLS):
                if over.wait(1.0):
                    return
                servers.kill_one()
                place = random.randrange(len(workers))
                workers[place].kill()
                workers[place].wait()
                workers[place] = start_worker(lease=LEASE_S, jobs=2)
                if number % max(1, KILLS // RESTARTS) == 1:
                    postgres.stop(mode="immediate")  # as a crash: nothing is flushed first
                    postgres.start()
        except BaseException as error:
            wrong.append(error)

    disturber = threading.Thread(target=disturb)
    disturber.start()
    with ThreadPoolExecutor(CLIENTS) as threads:
        jobs = [
            threads.submit(_write, servers, stores[number % STORES], number, random.Random(number))
            for number in range(WRITES)
        ]
        acknowledged = [one for job in jobs for one in job.result()]
    over.set()
    disturber.join()
    assert not wrong and servers.kills >= min(KILLS, 3)
    wait_all(servers.any(), dreams, 600)
    assert_once(servers.any(), dreams)
    with psycopg.connect(servers.any().dsn, options="-c search_path=reverie") as connection:
        stored = set(connection.execute("select memory_id, content from versions").fetchall())
        assert not {one for one in acknowledged if one not in stored}
        for store, counter in connection.execute("select id, counter from stores").fetchall():
            numbers = [
                row[0]
                for row in connection.execute(
                    "select number from versions where store_id = %s order by number", (store,)
                )
            ]
            assert numbers == list(range(1, counter + 1))
        doubled = connection.execute("select path from memories group by store_id, path having count(*) > 1").fetchall()
        assert not doubled
    print(
        f"{len(acknowledged)} acknowledged writes, {len(dreams)} dreams; {servers.kills} servers and as many workers "
        f"killed, {RESTARTS} crashes of the database"
    )
