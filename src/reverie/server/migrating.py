"""Brings the schema of the database forward: numbered SQL files, each in a transaction, one server at a time."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from reverie.errors import UserError
from reverie.quick import dataclass
from reverie.server.job_schema import prepare_jobs

if TYPE_CHECKING:
    from psycopg import AsyncConnection

SCHEMA: Final = "reverie"
APP_ROLE: Final = "reverie_app"
_LOCK: Final = 7_265_766  # an advisory lock of our own
_MIGRATIONS: Final = "migrations"


class NewerSchema(UserError):
    """The database was migrated by a newer version of Reverie."""


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


async def migrate(connection: AsyncConnection[Any]) -> list[Migration]:
    """Applies what is missing, as the owner, and returns it. The connection must be in autocommit mode. Raises
    `NewerSchema` if the database is ahead."""
    steps = list_migrations()
    await connection.execute("select pg_advisory_lock(%s)", (_LOCK,))
    try:
        await _prepare(connection)
        current = int(await _value(connection, "select coalesce(max(number), 0) from migrations"))
        if current > steps[-1].number:
            raise NewerSchema(
                f"The database has schema {current}, and this Reverie knows {steps[-1].number}: "
                "start a newer Reverie, or restore a backup of the time before."
            )
        await prepare_jobs(connection)
        missing = [one for one in steps if one.number > current]
        for one in missing:
            async with connection.transaction():
                await connection.execute(one.sql.encode())
                await connection.execute(
                    "insert into migrations (number, name) values (%s, %s)", (one.number, one.name)
                )
        return missing
    finally:
        await connection.execute("select pg_advisory_unlock(%s)", (_LOCK,))


async def _prepare(connection: AsyncConnection[Any]) -> None:
    from psycopg import errors

    async with connection.transaction():
        if not await _value(connection, f"select count(*) from pg_roles where rolname = '{APP_ROLE}'"):
            try:
                await connection.execute(f"create role {APP_ROLE} nologin nosuperuser nobypassrls".encode())
            except errors.InsufficientPrivilege as error:
                raise UserError(
                    "The database user may not create roles. Let an administrator run: "
                    f"create role {APP_ROLE} nologin; grant {APP_ROLE} to {connection.info.user}."
                ) from error
        if not await _value(connection, f"select pg_has_role(current_user, '{APP_ROLE}', 'set')"):
            await connection.execute(f"grant {APP_ROLE} to current_user".encode())
        await connection.execute(f"create schema if not exists {SCHEMA}".encode())
        await connection.execute(f"grant usage on schema {SCHEMA} to {APP_ROLE}".encode())
        await connection.execute(
            b"create table if not exists migrations "
            b"(number integer primary key, name text not null, at timestamptz not null default now())"
        )


async def _value(connection: AsyncConnection[Any], query: str) -> Any:
    row = await (await connection.execute(query.encode())).fetchone()
    return row[0] if row else None
