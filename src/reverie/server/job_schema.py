"""The tables of the queue: procrastinate's own SQL, in a schema of its own, brought forward with its package. The
comment of the schema says how far it is."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from psycopg import AsyncConnection

JOBS: Final = "procrastinate"


async def prepare_jobs(connection: AsyncConnection[Any]) -> None:
    """Creates the tables of the queue, or applies what a newer procrastinate adds. The caller holds the lock of
    migrations; the connection is in autocommit mode."""
    steps = sorted(
        (one for one in files("procrastinate.sql").joinpath("migrations").iterdir() if one.name.endswith(".sql")),
        key=lambda one: one.name,
    )
    found = await connection.execute(
        "select obj_description(oid, 'pg_namespace') from pg_namespace where nspname = %s", (JOBS,)
    )
    row = await found.fetchone()
    if row is not None and row[0]:
        todo = [(one.name, one.read_text()) for one in steps if one.name > row[0]]
    else:
        todo = [(steps[-1].name, files("procrastinate.sql").joinpath("schema.sql").read_text())]
    for name, sql in todo:
        async with connection.transaction():
            await connection.execute(f"create schema if not exists {JOBS}".encode())
            await connection.execute(f"set local search_path = {JOBS}".encode())
            await connection.execute(sql.encode())
            await connection.execute(f"comment on schema {JOBS} is '{name}'".encode())
