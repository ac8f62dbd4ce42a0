"""Brings the schema of the database forward: numbered SQL files, each in a transaction, one server at a time."""

from __future__ import annotations

import asyncio
import secrets
import time
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, LiteralString, cast

from reverie.errors import ReverieError, UserError
from reverie.quick import dataclass
from reverie.server.job_schema import prepare_jobs

if TYPE_CHECKING:
    from psycopg import AsyncConnection

SCHEMA: Final = "reverie"
APP_ROLE: Final = "reverie_app"
_LOCK: Final = 7_265_766  # an advisory lock of our own
_MIGRATIONS: Final = "migrations"
_PATIENCE_S: Final = 120.0
_LOCK_MS: Final = 2_000
_PAUSE_S: Final = 0.25


class NewerSchema(UserError):
    """The database was migrated by a newer version of Reverie."""


class BusySchema(ReverieError):
    """Others hold the schema; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step: its number, its name and its SQL."""

    number: int
    name: str
    sql: str


def list_migrations() -> list[Migration]:
    """All steps, in order."""
    found = list[Migration]()
    for file in files(__package__ or "").joinpath(_MIGRATIONS).iterdir():
        if file.name.endswith(".sql"):
            number, _, name = file.name.removesuffix(".sql").partition("_")
            found.append(Migration(int(number), name, file.read_text()))
    return sorted(found, key=lambda one: one.number)


async def migrate(connection: AsyncConnection[Any], *, patience_s: float = _PATIENCE_S) -> list[Migration]:
    """Applies what is missing, as the owner, and returns it. The connection must be in autocommit mode. Raises
    `NewerSchema` if the database is ahead, and `BusySchema` if others hold it for longer than `patience_s`."""
    steps = list_migrations()
    until = time.monotonic() + patience_s
    # If this process is killed in a long statement, the database notices it and gives the lock to the next one.
    await connection.execute(b"set client_connection_check_interval = '2s'")
    await _take_lock(connection, until)
    try:
        await _prepare(connection)
        found = await connection.execute(b"select number from migrations")
        applied = {int(row[0]) for row in await found.fetchall()}
        if max(applied, default=0) > steps[-1].number:
            raise NewerSchema(
                f"The database has schema {max(applied)}, and this Reverie knows {steps[-1].number}: "
                "start a newer Reverie, or restore a backup of the time before."
            )
        await prepare_jobs(connection)
        missing = [one for one in steps if one.number not in applied]
        for one in missing:
            await _apply(connection, one, until)
        return missing
    finally:
        await connection.execute("select pg_advisory_unlock(%s)", (_LOCK,))


async def _take_lock(connection: AsyncConnection[Any], until: float) -> None:
    while not await _value(connection, f"select pg_try_advisory_lock({_LOCK})"):
        if time.monotonic() > until:
            raise BusySchema("Another server is changing the schema of the database; try again when it is done.")
        await asyncio.sleep(_PAUSE_S)


async def _apply(connection: AsyncConnection[Any], one: Migration, until: float) -> None:
    """One step. It waits for a table only briefly, because everybody else waits behind it; then it tries again."""
    from psycopg import errors

    while True:
        try:
            async with connection.transaction():
                await connection.execute(f"set local lock_timeout = {_LOCK_MS}".encode())
                await connection.execute(one.sql.encode())
                await connection.execute(
                    "insert into migrations (number, name) values (%s, %s)", (one.number, one.name)
                )
            return
        except (errors.LockNotAvailable, errors.DeadlockDetected) as error:
            if time.monotonic() > until:
                raise BusySchema(
                    f"Migration {one.number} ({one.name}) waits for tables that are in use; nothing was changed. "
                    "Try again when there is less load."
                ) from error
            await asyncio.sleep(_PAUSE_S * (1 + secrets.randbelow(4)))


async def _prepare(connection: AsyncConnection[Any]) -> None:
    from psycopg import errors, sql

    async with connection.transaction():
        if not await _value(connection, f"select count(*) from pg_roles where rolname = '{APP_ROLE}'"):
            try:
                async with connection.transaction():
                    await connection.execute(f"create role {APP_ROLE} nologin nosuperuser nobypassrls".encode())
            except (errors.DuplicateObject, errors.UniqueViolation):
                pass  # roles belong to all databases, and another one was first
            except errors.InsufficientPrivilege as error:
                raise UserError(
                    "The database user may not create roles. Let an administrator run: "
                    f"create role {APP_ROLE} nologin; grant {APP_ROLE} to {connection.info.user}."
                ) from error
        right = "set" if connection.info.server_version >= 160_000 else "member"
        if not await _value(connection, f"select pg_has_role(current_user, '{APP_ROLE}', '{right}')"):
            await connection.execute(f"grant {APP_ROLE} to current_user".encode())
        await connection.execute(f"create schema if not exists {SCHEMA}".encode())
        await connection.execute(f"grant usage on schema {SCHEMA} to {APP_ROLE}".encode())
        await connection.execute(
            b"create table if not exists migrations "
            b"(number integer primary key, name text not null, at timestamptz not null default now())"
        )
        # Also for connections that cannot bring options, such as those of a pooler.
        name = sql.Identifier(str(await _value(connection, "select current_database()")))
        for setting in (f"search_path = {SCHEMA}", "timezone = 'UTC'"):
            await connection.execute(
                sql.SQL("alter role current_user in database {} set ").format(name)
                + sql.SQL(cast("LiteralString", setting))
            )


async def _value(connection: AsyncConnection[Any], query: str) -> Any:
    row = await (await connection.execute(query.encode())).fetchone()
    return row[0] if row else None
