"""Connections to PostgreSQL. A request runs in one transaction, as a role that sees only the rows of its scopes; the
server itself (accounts, migrations, workers) uses the owner of the tables."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, cast

from reverie.errors import ReverieError, UserError
from reverie.quick import dataclass
from reverie.server.migrating import APP_ROLE, SCHEMA, migrate

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from psycopg_pool import AsyncConnectionPool

Row = dict[str, Any]
_WAIT_S: Final = 10.0
_RECONNECT_S: Final = 2.0
"""Then the next request tries again, so that the pause between attempts does not grow with the time without one."""
_STATEMENT_MS: Final = 30_000


class NoDatabase(ReverieError):
    """The database does not answer, or not now. `said` is for the caller; the sentence itself names the place."""

    def __init__(self, message: str, said: str = "The database does not answer; ask again.", retry_s: int = 1) -> None:
        super().__init__(message)
        self.said = said
        self.retry_s = retry_s


class StalePlan(NoDatabase):
    """A migration changed a table under a prepared statement; nothing was done, and the next attempt works."""


class UnknownToken(ReverieError):
    """The token is unknown, expired or revoked."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks: the person or service of a token, and the scopes that it sees."""

    token_id: str
    may_write: bool
    person_id: str
    kind: str
    is_admin: bool
    organisation_id: str
    scopes: Sequence[str]


class Database:
    """A pool of connections to one database."""

    def __init__(self, pool: AsyncConnectionPool[AsyncConnection[Row]]) -> None:
        self._pool = pool

    @classmethod
    @asynccontextmanager
    async def open(cls, dsn: str, *, size: int = 10, migrates: bool = True) -> AsyncGenerator[Database]:
        """Connects, and brings the schema forward first."""
        import psycopg
        from psycopg.rows import dict_row
        from psycopg_pool import AsyncConnectionPool, PoolTimeout

        options = f"-c search_path={SCHEMA} -c timezone=UTC"
        try:
            if migrates:
                async with await psycopg.AsyncConnection.connect(dsn, autocommit=True, options=options) as connection:
                    await migrate(connection)
            pool = cast(
                "AsyncConnectionPool[AsyncConnection[Row]]",
                AsyncConnectionPool(
                    dsn,
                    kwargs={
                        "row_factory": dict_row,
                        "autocommit": True,
                        "options": f"{options} -c statement_timeout={_STATEMENT_MS}",
                    },
                    min_size=min(2, size),
                    max_size=size,
                    timeout=_WAIT_S,
                    reconnect_timeout=_RECONNECT_S,
                    check=AsyncConnectionPool.check_connection,
                    open=False,
                ),
            )
            await pool.open(wait=True, timeout=_WAIT_S)
        except (psycopg.OperationalError, PoolTimeout) as error:
            raise NoDatabase(f"The database does not answer: {_first_line(error)}") from error
        except psycopg.DatabaseError as error:
            raise UserError(
                f"The database cannot be used: {_first_line(error)}. It must be PostgreSQL 15 or newer, where this "
                "user may create schemas, with pgvector 0.7 or newer (an administrator runs: create extension vector)."
            ) from error
        try:
            yield cls(pool)
        finally:
            await pool.close()

    @asynccontextmanager
    async def as_owner(self) -> AsyncGenerator[AsyncConnection[Row]]:
        """A transaction that sees everything: for accounts, jobs and upkeep, never for what a request asks."""
        async with self._connection() as connection, connection.transaction():
            yield connection

    @asynccontextmanager
    async def as_token(self, token: str) -> AsyncGenerator[tuple[AsyncConnection[Row], Principal]]:
        """A transaction that sees what the token may see. Raises `UnknownToken`."""
        async with self._connection() as connection, connection.transaction():
            await connection.execute(f"set local role {APP_ROLE}".encode())
            found = await connection.execute("select * from principal_of(%s)", (hash_token(token),))
            row = await found.fetchone()
            if row is None:
                raise UnknownToken("The token is not known, or it has expired.")
            who = Principal(**row)
            await self._see(connection, who.organisation_id, who.scopes)
            yield connection, who

    @asynccontextmanager
    async def as_scopes(self, organisation_id: str, scopes: Sequence[str]) -> AsyncGenerator[AsyncConnection[Row]]:
        """The same for a job that works for a store: it sees these scopes and no other."""
        async with self._connection() as connection, connection.transaction():
            await connection.execute(f"set local role {APP_ROLE}".encode())
            await self._see(connection, organisation_id, scopes)
            yield connection

    async def vacuum(self, *tables: str) -> None:
        """Clears the rows that no transaction sees any more. A table that somebody else vacuums is left to them."""
        async with self._connection() as connection:
            await connection.execute(b"set statement_timeout = 0")
            await connection.execute(f"vacuum (skip_locked) {', '.join(tables)}".encode())
            await connection.execute(b"reset statement_timeout")

    @staticmethod
    async def _see(connection: AsyncConnection[Row], organisation_id: str, scopes: Sequence[str]) -> None:
        await connection.execute(
            "select set_config('reverie.organisation', %s, true), set_config('reverie.scopes', %s, true)",
            (organisation_id, ",".join(scopes)),
        )

    @asynccontextmanager
    async def _connection(self) -> AsyncGenerator[AsyncConnection[Row]]:
        import psycopg
        from psycopg_pool import PoolTimeout

        try:
            async with self._pool.connection() as connection:
                yield connection
        except psycopg.errors.DiskFull as error:
            said = "The disk of the database is full; nothing was stored."
            raise NoDatabase(f"The disk of the database is full: {_first_line(error)}", said, 30) from error
        except psycopg.errors.FeatureNotSupported as error:
            if error.diag.source_function != "RevalidateCachedQuery":
                raise
            await self._pool.drain()  # the other connections know the old table, too
            raise StalePlan("A table was changed by a migration.") from error
        except psycopg.errors.QueryCanceled as error:
            raise NoDatabase("A statement took too long.", "The database is busy; ask again.", 5) from error
        except (
            psycopg.OperationalError,
            psycopg.InterfaceError,
            psycopg.errors.IdleInTransactionSessionTimeout,
            psycopg.errors.ReadOnlySqlTransaction,  # a replica that is about to become the first
            PoolTimeout,
            TimeoutError,
        ) as error:
            raise NoDatabase(f"The database does not answer: {_first_line(error)}") from error

    def pool_state(self) -> dict[str, int]:
        """How many connections are open, how many of them are free, and how many requests wait for one."""
        found = self._pool.get_stats()
        return {
            name: int(found.get(key, 0))
            for name, key in (("open", "pool_size"), ("free", "pool_available"), ("waiting", "requests_waiting"))
        }


@asynccontextmanager
async def account_rights(connection: AsyncConnection[Row]) -> AsyncGenerator[None]:
    """The rights of the owner for a part of a request's transaction: to change accounts, after the caller was checked.
    An error in it must end the transaction."""
    await connection.execute(b"set local role none")
    yield
    await connection.execute(f"set local role {APP_ROLE}".encode())


def hash_token(token: str) -> bytes:
    """What the database knows of a token. Tokens are random, so one round of a quick hash is enough."""
    return sha256(token.encode(errors="replace")).digest()


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
