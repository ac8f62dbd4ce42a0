"""`/healthz` for load balancers and `/metrics` for Prometheus. Neither has contents, names or hosts; figures are for
administrators: that a request comes from this machine says nothing, because a reverse proxy may be on it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from reverie.server.database import NoDatabase, Row, UnknownToken, hash_token
from reverie.server.operation.measures import Labels, label
from reverie.server.wire import ApiError, error_response, read_token

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from reverie.server.app import Site

_CACHED_S: Final = 1.0
"""Anybody may ask `/healthz`; the database is asked once per second at most."""
_PATIENCE_S: Final = 3.0
"""A load balancer does not wait for longer."""


def monitoring_routes(site: Site) -> list[Route]:
    from starlette.responses import JSONResponse, PlainTextResponse
    from starlette.routing import Route

    schema: int | None = None
    asked_at = 0.0

    async def ask() -> int | None:
        """The number of the schema; None if the database does not answer."""
        nonlocal schema, asked_at
        if time.monotonic() - asked_at > _CACHED_S:
            try:
                async with asyncio.timeout(_PATIENCE_S), site.database.as_owner() as connection:
                    schema = await _number(connection, "select max(number) as number from migrations")
            except (NoDatabase, TimeoutError):
                schema = None
            asked_at = time.monotonic()
        return schema

    async def health(_request: Request) -> Response:
        found = await ask()
        if found is None:
            return JSONResponse({"status": "no database"}, 503, headers={"retry-after": "1"})
        return JSONResponse({"status": "ok", "schema": found})

    async def metrics(request: Request) -> Response:
        try:
            token = read_token(request)
            site.limits.check(hash_token(token), request.client.host if request.client else "")
            async with site.database.as_token(token) as (_connection, who):
                if not who.is_admin:
                    raise ApiError(403, "Figures are for administrators.")
        except ApiError as error:
            return error_response(error)
        except UnknownToken as error:
            return error_response(ApiError(401, str(error)))
        except NoDatabase as error:
            return error_response(ApiError(503, error.said, headers={"retry-after": str(error.retry_s)}))
        text = site.measures.render(await _of_database(site, await ask()))
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    return [Route("/healthz", health), Route("/metrics", metrics)]


async def _of_database(site: Site, schema: int | None) -> dict[tuple[str, Labels], float]:
    found: dict[tuple[str, Labels], float] = {("reverie_database_up", ()): float(schema is not None)}
    if schema is None:
        return found
    found["reverie_schema_version", ()] = schema
    try:
        async with site.database.as_owner() as connection:
            if await _number(connection, "select count(to_regclass('dreams')) as number"):
                rows = await connection.execute("select status, count(*) as number from dreams group by status")
                for row in await rows.fetchall():
                    found["reverie_dreams", label(status=row["status"])] = row["number"]
    except NoDatabase:
        found["reverie_database_up", ()] = 0
    return found


async def _number(connection: AsyncConnection[Row], query: str) -> int:
    row = await (await connection.execute(query.encode())).fetchone()
    return int(row["number"]) if row else 0
