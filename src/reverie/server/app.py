"""The server over HTTP: who asks, in which transaction, and which function answers. Contents are never logged."""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from reverie.server import audit, stores
from reverie.server.database import Database, NoDatabase, Principal, Row, UnknownToken
from reverie.server.gate import Author
from reverie.server.ids import new_id
from reverie.server.memory_routes import memory_routes
from reverie.server.own_routes import own_routes
from reverie.server.wire import ApiError, error_response, read_body

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

_BEARER: Final = "bearer "
_log = logging.getLogger("reverie.server")


class Call:
    """One request, inside its transaction: what the functions of a route get."""

    def __init__(self, request: Request, connection: AsyncConnection[Row], who: Principal) -> None:
        self.request = request
        self.connection = connection
        self.who = who

    @property
    def query(self) -> dict[str, str]:
        return dict(self.request.query_params)

    def id(self, name: str) -> str:
        return str(self.request.path_params[name])

    @property
    def author(self) -> Author:
        """Who a change of this request is by, as its headers say."""
        given = {name: self.request.headers.get(f"x-reverie-{name}", "") for name in ("reason", "session", "message")}
        return Author.of(self.who, **given)


Answer = Callable[[Call], Awaitable[Any]]


class Site:
    """What the routes share."""

    def __init__(self, dsn: str, size: int) -> None:
        self._dsn = dsn
        self._size = size
        self.database: Database | None = None

    @asynccontextmanager
    async def life(self, _app: Starlette) -> AsyncGenerator[None]:
        async with Database.open(self._dsn, size=self._size) as database:
            self.database = database
            yield

    def route(self, method: str, path: str, answer: Answer, *, writes: bool = False) -> Route:
        """A route that runs `answer` as the caller and returns its JSON; an error in it rolls everything back."""
        from starlette.responses import JSONResponse
        from starlette.routing import Route

        async def respond(request: Request) -> Response:
            request_id = new_id("req")
            try:
                async with self._open().as_token(_token(request)) as (connection, who):
                    if writes and not who.may_write:
                        raise ApiError(403, "This token may only read.")
                    body = await answer(Call(request, connection, who))
                return JSONResponse(body, headers={"request-id": request_id})
            except ApiError as error:
                return error_response(error, request_id)
            except UnknownToken as error:
                return error_response(ApiError(401, str(error)), request_id)
            except NoDatabase as error:
                _log.error("%s %s: %s", request_id, path, error)
                said = "The database does not answer; ask again."
                return error_response(ApiError(503, said, headers={"retry-after": "1"}), request_id)
            except Exception as error:  # noqa: BLE001  the edge of a request: the caller gets an answer, the log the type
                _log.error("%s %s: %s", request_id, path, type(error).__name__, exc_info=error)
                return error_response(ApiError(500, "The server failed; its log has the reason."), request_id)

        return Route(path, respond, methods=[method])

    async def health(self, _request: Request) -> Response:
        """Whether the database answers."""
        from starlette.responses import JSONResponse

        try:
            async with self._open().as_owner() as connection:
                await connection.execute("select 1")
        except NoDatabase as error:
            return JSONResponse({"status": "no database", "detail": str(error)}, 503)
        return JSONResponse({"status": "ok"})

    def _open(self) -> Database:
        if self.database is None:
            raise NoDatabase("The server is not ready.")
        return self.database


def create_app(dsn: str, *, size: int = 10) -> Starlette:
    """The application; it connects, and migrates the schema, when it starts."""
    from starlette.applications import Starlette
    from starlette.routing import Route

    site = Site(dsn, size)
    routes = [*_store_routes(site), *memory_routes(site), *own_routes(site)]
    return Starlette(routes=[Route("/healthz", site.health), *routes], lifespan=site.life)


def serve(dsn: str, listener: socket.socket) -> None:
    """Serves until interrupted."""
    import uvicorn

    config = uvicorn.Config(create_app(dsn), log_level="warning", access_log=False, timeout_graceful_shutdown=10)
    uvicorn.Server(config).run(sockets=[listener])


def _store_routes(site: Site) -> list[Route]:
    at, one = "/v1/memory_stores", "/v1/memory_stores/{store}"

    async def create(call: Call) -> Any:
        body = await read_body(call.request, stores.FIELDS)
        return stores.show(await stores.create(call.connection, call.who, body))

    async def page(call: Call) -> Any:
        return await stores.page(call.connection, call.query)

    async def retrieve(call: Call) -> Any:
        return stores.show(await stores.find(call.connection, call.id("store")))

    async def update(call: Call) -> Any:
        body = await read_body(call.request, stores.FIELDS)
        return stores.show(await stores.update(call.connection, call.id("store"), body))

    async def archive(call: Call) -> Any:
        return stores.show(await stores.archive(call.connection, call.id("store")))

    async def delete(call: Call) -> Any:
        await stores.delete(call.connection, call.id("store"))
        await audit.record(call.connection, call.who, "delete store", call.id("store"))
        return {"type": "memory_store_deleted", "id": call.id("store")}

    return [
        site.route("POST", at, create, writes=True),
        site.route("GET", at, page),
        site.route("GET", one, retrieve),
        site.route("POST", one, update, writes=True),
        site.route("POST", f"{one}/archive", archive, writes=True),
        site.route("DELETE", one, delete, writes=True),
    ]


def _token(request: Request) -> str:
    given = request.headers.get("x-api-key", "")
    bearer = request.headers.get("authorization", "")
    if not given and bearer[: len(_BEARER)].lower() == _BEARER:
        given = bearer[len(_BEARER) :].strip()
    if not given:
        raise UnknownToken("There is no token: send it as `x-api-key` or as a bearer token.")
    return given
