"""Leases and fencing numbers against a real database, at moments that no signal hits on purpose."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from reverie.server.database import Database, NoDatabase, Row
from reverie.server.dreams import leases, rows
from reverie.server.dreams.leases import LeaseLost, Spent
from tests.integration.server.dreams.setup import query

pytestmark = pytest.mark.integration


@asynccontextmanager
async def one_dream(dsn: str) -> AsyncGenerator[tuple[Database, Row]]:
    async with Database.open(dsn, size=4) as database:
        async with database.as_owner() as connection:
            await connection.execute("insert into organisations (id, name) values ('org_1', 'one')")
            found = await connection.execute(
                "insert into stores (id, organisation_id, scope, name) values "
                "('memstore_1', 'org_1', 'organisation:org_1', 's') returning *"
            )
            store = await found.fetchone()
            assert store is not None
            row = await rows.add(connection, store, model="embedded", output="update_existing")
        yield database, row


def test_only_the_newest_attempt_may_land(dsn: str) -> None:
    async def work() -> None:
        async with one_dream(dsn) as (database, row):
            first = await leases.take(database, row["id"], "a", 1)
            assert first and await leases.take(database, row["id"], "b", 60) is None
            await asyncio.sleep(1.1)
            assert await leases.sweep(database, 1) == 1 and await leases.sweep(database, 1) == 0
            second = await leases.take(database, row["id"], "b", 60)
            assert second and (first[0].attempt, second[0].attempt) == (1, 2)
            spent = Spent.of(row)
            for act in (leases.renew, leases.give_back):
                with pytest.raises(LeaseLost):
                    await act(database, first[0], spent)
            with pytest.raises(LeaseLost):
                await leases.fail(database, first[0], spent, "x", "y")
            await leases.renew(database, second[0], spent)

    asyncio.run(work())
    assert query(dsn, "select status, attempt, worker from dreams") == [("running", 2, "b")]
    assert query(dsn, "select count(*) from procrastinate_jobs") == [(1,)]


def test_a_worker_that_stops_inside_its_landing_loses_its_locks(dsn: str) -> None:
    async def work() -> None:
        async with one_dream(dsn) as (database, row):
            taken = await leases.take(database, row["id"], "a", 1)
            assert taken
            with pytest.raises(NoDatabase):
                async with database.as_scopes("org_1", ["organisation:org_1"]) as connection:
                    await leases.hold(connection, taken[0])
                    await connection.execute("update dreams set status = 'completed'")
                    await asyncio.sleep(2.5)
            assert await leases.sweep(database, 1) == 1 and await leases.take(database, row["id"], "b", 60)

    asyncio.run(work())


def test_failures_are_tried_again_after_growing_pauses_and_then_end(dsn: str) -> None:
    async def work() -> list[float]:
        pauses = list[float]()
        async with one_dream(dsn) as (database, row):
            for _ in range(leases.MOST_FAILURES):
                taken = await leases.take(database, row["id"], "a", 60)
                assert taken
                await leases.fail(database, taken[0], Spent.of(row), "model_error", "The model is away.", again=True)
                found = query(
                    dsn, "select extract(epoch from max(scheduled_at) - now())::float from procrastinate_jobs"
                )
                pauses.append(found[0][0])
        return pauses

    pauses = asyncio.run(work())
    assert pauses[1] > 2 * pauses[0] > 10
    assert query(dsn, "select status, error_type, error_message from dreams") == [
        ("failed", "model_error", "The model is away.")
    ]


def test_a_dream_that_kills_every_worker_ends(dsn: str) -> None:
    async def work() -> None:
        async with one_dream(dsn) as (database, row):
            while taken := await leases.take(database, row["id"], "a", 60):
                query(dsn, "update dreams set lease_until = now() - interval '1 s'")
                await leases.sweep(database, 1)
                assert taken[0].attempt <= leases.MOST_ATTEMPTS

    asyncio.run(work())
    assert query(dsn, "select status, error_type, attempt from dreams") == [
        ("failed", "internal_error", leases.MOST_ATTEMPTS)
    ]
