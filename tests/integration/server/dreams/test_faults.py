"""Dreams while workers are killed, stopped and restarted, and while the database goes away: each lands exactly once."""

from __future__ import annotations

import random
import signal
import time
from itertools import pairwise

import pytest

from reverie.server.embedded import EmbeddedPostgres
from tests.integration.server.conftest import Served, client
from tests.integration.server.dreams.setup import (
    ENDED,
    StartWorker,
    contents,
    fill,
    inputs,
    numbers,
    query,
    update,
    wait,
)

pytestmark = pytest.mark.integration
LEASE_S = 4


def landings(served: Served, id: str) -> tuple[int, int]:
    """How many versions a dream has made, and how many changes it says that it landed."""
    made = query(served.dsn, "select count(*) from versions where session_id = %s", id)[0][0]
    notes = query(served.dsn, "select changes from dreams where id = %s", id)[0][0]
    return made, sum(note["state"] == "landed" for note in notes)


def assert_once(served: Served, ids: dict[str, str]) -> None:
    """Each dream (id → store) is completed, has landed once, and left no gap."""
    for id, store in ids.items():
        status = query(served.dsn, "select status, attempt, error_message from dreams where id = %s", id)[0]
        assert status[0] == "completed", status
        made, said = landings(served, id)
        assert made == said > 0
        assert numbers(served.dsn, store) == list(range(1, len(numbers(served.dsn, store)) + 1))


def start_dreams(served: Served, count: int) -> dict[str, str]:
    found = dict[str, str]()
    for _ in range(count):
        store, sessions = fill(served, served.anna)
        dreams = client(served, served.anna).beta.dreams
        made = dreams.create(inputs=inputs(store, sessions), model="embedded", output_behavior=update(store))
        found[made.id] = store
    return found


def wait_all(served: Served, ids: dict[str, str], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while query(served.dsn, "select 1 from dreams where not status = any (%s)", list(ENDED)):
        assert time.monotonic() < end, query(served.dsn, "select status, attempt, lease_until from dreams")
        time.sleep(0.2)


def test_workers_killed_at_random_points_lose_and_double_nothing(served: Served, start_worker: StartWorker) -> None:
    ids = start_dreams(served, 5)
    chance = random.Random(7)
    workers = [start_worker(lease=LEASE_S, jobs=2), start_worker(lease=LEASE_S, jobs=2)]
    for _ in range(6):
        time.sleep(chance.uniform(0.3, 3.5))
        one = chance.randrange(2)
        workers[one].kill()
        workers[one].wait()
        workers[one] = start_worker(lease=LEASE_S, jobs=2)
    wait_all(served, ids)
    assert_once(served, ids)
    assert query(served.dsn, "select max(attempt) from dreams")[0][0] > 1
    end = time.monotonic() + 20  # the jobs of the dead are removed, so that they hold no lock
    while query(served.dsn, "select 1 from procrastinate_jobs where task_name = 'reverie.dream'"):
        assert time.monotonic() < end
        time.sleep(0.3)


def test_a_stopped_worker_that_wakes_up_changes_nothing(served: Served, start_worker: StartWorker) -> None:
    ids = start_dreams(served, 1)
    [(id, store)] = ids.items()
    asleep = start_worker(lease=LEASE_S)
    wait(served, served.anna, id, until=("running",))
    asleep.send_signal(signal.SIGSTOP)
    start_worker(lease=LEASE_S)
    wait_all(served, ids)
    landed = contents(served, served.anna, store), landings(served, id)
    asleep.send_signal(signal.SIGCONT)
    time.sleep(LEASE_S)
    assert (contents(served, served.anna, store), landings(served, id)) == landed and asleep.poll() is None
    assert query(served.dsn, "select attempt from dreams where id = %s", id)[0][0] > 1
    assert_once(served, ids)


@pytest.mark.parametrize("lost", [signal.SIGKILL, signal.SIGSTOP])
def test_a_worker_lost_inside_its_landing_leaves_nothing_half_done(
    served: Served, start_worker: StartWorker, lost: signal.Signals
) -> None:
    import psycopg

    ids = start_dreams(served, 1)
    [(id, store)] = ids.items()
    with psycopg.connect(served.dsn) as holder:
        holder.execute("select 1 from reverie.stores where id = %s for update", (store,))
        worker = start_worker(lease=LEASE_S)
        until = time.monotonic() + 60
        waiting = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        while not query(served.dsn, waiting):  # it has begun to land, and waits for the store
            assert time.monotonic() < until
            time.sleep(0.1)
        worker.send_signal(lost)
    start_worker(lease=LEASE_S)
    wait_all(served, ids)
    worker.send_signal(signal.SIGCONT)
    time.sleep(2)
    assert_once(served, ids)
    assert query(served.dsn, "select attempt from dreams where id = %s", id)[0][0] > 1


def test_a_database_that_restarts_during_dreams(
    served: Served, start_worker: StartWorker, postgres: EmbeddedPostgres
) -> None:
    ids = start_dreams(served, 2)
    worker = start_worker(lease=10, jobs=2)
    wait(served, served.anna, next(iter(ids)), until=("running",))
    postgres.stop()
    time.sleep(1)
    postgres.start()
    wait_all(served, ids)
    assert_once(served, ids)
    assert worker.poll() is None


def test_a_worker_that_is_told_to_stop_gives_its_dream_back(served: Served, start_worker: StartWorker) -> None:
    ids = start_dreams(served, 1)
    worker = start_worker(lease=300)
    wait(served, served.anna, next(iter(ids)), until=("running",))
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(20) == 0
    start_worker(lease=300)
    wait_all(served, ids, 60)
    assert_once(served, ids)


def test_a_store_dreams_once_at_a_time(served: Served, start_worker: StartWorker) -> None:
    dreams = client(served, served.anna).beta.dreams
    store, sessions = fill(served, served.anna)
    made = [dreams.create(inputs=inputs(store, sessions), model="embedded").id for _ in range(3)]
    for _ in range(2):
        start_worker(jobs=2)
    for id in made:
        assert wait(served, served.anna, id).status == "completed"
    spans = query(served.dsn, "select started_at, ended_at from dreams order by started_at")
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
