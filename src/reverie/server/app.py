"""The server over HTTP: who asks, in which transaction, and which function answers. Contents are never logged."""

from __future__ import annotations

import asyncio
import socket
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from reverie.quick import dataclass
from reverie.server import audit, recalling, stores
from reverie.server.database import Database, NoDatabase, Principal, Row, StalePlan, UnknownToken, hash_token
from reverie.server.dreams.routes import dream_routes
from reverie.server.gate import Author
from reverie.server.ids import new_id
from reverie.server.memory_routes import memory_routes
from reverie.server.operation.limits import RATE, Limits, announced_length, receive_body, receive_in
from reverie.server.operation.measures import Measures, label
from reverie.server.operation.monitoring import monitoring_routes
from reverie.server.operation.request_log import write_error, write_line
from reverie.server.own_routes import own_routes
from reverie.server.vectors import OpenEncoder, Vectors
from reverie.server.wire import MOST_BODY, ApiError, error_response, read_body, read_token

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

_MOST_CONNECTIONS: Final = 2_000
_WHO: Final = "reverie.who"
_PREPARED: Final = "reverie.prepared"
_SMALL_BODY: Final = 64_000
"""Of a caller that is not known yet; before a larger one is read, the token is checked."""
_OF_MODELS: Final = ("/v1/messages", "/v1/models", "/v1/complete", "/v1/chat", "/v1/responses")


@dataclass(frozen=True, slots=True)
class Options:
    """How a server runs."""

    connections: int = 10
    """To the database, per process."""
    rate: float = RATE
    """Requests per second and token; 0: no limit."""
    logs_requests: bool = False
    proxies: Sequence[str] = ()
    """The addresses of reverse proxies, which name the client."""
    certificate: Path | None = None
    key: Path | None = None
    open_encoder: OpenEncoder | None = None
    """For recall by meaning."""
    measures: Path | None = None
    """A folder where the processes of one server leave their figures."""


class Call:
    """One request, inside its transaction: what the functions of a route get."""

    def __init__(self, request: Request, connection: AsyncConnection[Row], who: Principal) -> None:
        self.request = request
        self.connection = connection
        self.who = who

    @property
    def query(self) -> dict[str, str]:
        return dict(self.request.query_params)

    @property
    def prepared(self) -> Any:
        """What the `prepare` of the route has made of the body."""
        return self.request.scope[_PREPARED]

    def id(self, name: str) -> str:
        return str(self.request.path_params[name])

    @property
    def author(self) -> Author:
        """Who a change of this request is by, as its headers say."""
        given = {name: self.request.headers.get(f"x-reverie-{name}", "") for name in ("reason", "session", "message")}
        return Author.of(self.who, **given)


Answer = Callable[[Call], Awaitable[Any]]
Prepare = Callable[[BinaryIO], Awaitable[Any]]


class Site:
    """What the routes share."""

    def __init__(self, dsn: str, options: Options) -> None:
        self._dsn = dsn
        self.options = options
        self.measures = Measures(options.measures)
        self.limits = Limits(options.rate)
        self.vectors = Vectors(options.open_encoder)
        self._database: Database | None = None

    @asynccontextmanager
    async def life(self, _app: Starlette) -> AsyncGenerator[None]:
        async with Database.open(self._dsn, size=self.options.connections) as database:
            self._database = database
            await self.vectors.start()
            beside = [self.vectors.keep_up(database), self._leave_measures(database)]
            tasks = [asyncio.create_task(one) for one in beside]
            try:
                yield
            finally:
                for one in tasks:
                    one.cancel()
                self.vectors.close()

    @property
    def database(self) -> Database:
        if self._database is None:
            raise NoDatabase("The server is not ready.")
        return self._database

    def route(
        self,
        method: str,
        path: str,
        answer: Answer,
        *,
        writes: bool = False,
        most_body: int = MOST_BODY,
        prepare: Prepare | None = None,
    ) -> Route:
        """A route that runs `answer` as the caller and returns its JSON; an error in it rolls everything back. A body
        of at most `most_body` bytes is read before the transaction begins, because a request that takes long must not
        hold a connection to the database. With `prepare` the body is a file, of which `prepare` makes what `answer`
        needs; a few requests do so at the same time, and the others wait."""
        from starlette.responses import JSONResponse
        from starlette.routing import Route

        async def respond(request: Request) -> Response:
            began, request_id = time.perf_counter(), new_id("req")
            try:
                body = await self._run(request, answer, writes, most_body, prepare)
                response: Response = JSONResponse(body, headers={"request-id": request_id})
            except ApiError as error:
                response = error_response(error, request_id)
            except UnknownToken as error:
                response = error_response(ApiError(401, str(error)), request_id)
                await self._audit_refusal(request)
            except NoDatabase as error:
                write_line("no database", id=request_id, route=path, reason=str(error))
                response = error_response(
                    ApiError(503, error.said, headers={"retry-after": str(error.retry_s)}), request_id
                )
            except Exception as error:  # noqa: BLE001  the edge of a request: the caller gets an answer, the log the type
                write_error(error, id=request_id, route=path)
                response = error_response(ApiError(500, "The server failed; its log has the reason."), request_id)
            self._note(request, path, response.status_code, time.perf_counter() - began, request_id, writes)
            return response

        return Route(path, respond, methods=[method])

    async def _run(
        self, request: Request, answer: Answer, writes: bool, most_body: int, prepare: Prepare | None
    ) -> Any:
        token = read_token(request)
        hashed = hash_token(token)
        self.limits.check(hashed, request.client.host if request.client else "")
        if announced_length(request) > _SMALL_BODY and not self.limits.knows(hashed):
            await self._check_token(request, token)
        if prepare is None:
            return await self._answer(await receive_body(request, most_body), token, answer, writes)
        with self.limits.one_upload(hashed), tempfile.TemporaryFile() as file:
            await receive_in(file.write, request, most_body)
            async with self.limits.checks:
                request.scope[_PREPARED] = await prepare(file)
                return await self._answer(request, token, answer, writes)

    async def _answer(self, request: Request, token: str, answer: Answer, writes: bool) -> Any:
        try:
            return await self._run_once(request, token, answer, writes)
        except StalePlan:
            return await self._run_once(request, token, answer, writes)

    async def _check_token(self, request: Request, token: str) -> None:
        """Whoever has no token cannot fill the memory of the server with bodies."""
        try:
            async with self.database.as_token(token):
                pass
        except UnknownToken:
            with suppress(ApiError):
                await receive_body(request, 0)  # dropped as it arrives, so that the client sees the answer
            raise

    async def _run_once(self, request: Request, token: str, answer: Answer, writes: bool) -> Any:
        from starlette.requests import Request as NewRequest

        hashed = hash_token(token)
        try:
            async with self.database.as_token(token) as (connection, who):
                request.scope[_WHO] = who
                if self.limits.know(hashed):
                    await connection.execute("select note_token_use(%s)", (who.token_id,))
                if writes and not who.may_write:
                    raise ApiError(403, "This token may only read.")
                return await answer(Call(NewRequest(request.scope, request.receive), connection, who))
        except UnknownToken:
            self.limits.forget(hashed)
            raise

    def _note(self, request: Request, route: str, status: int, seconds: float, id: str, writes: bool) -> None:
        who: Principal | None = request.scope.get(_WHO)
        self.measures.count("reverie_requests_total", method=request.method, route=route, status=str(status))
        self.measures.time(route, seconds)
        if status in (401, 429):
            self.measures.count("reverie_refused_total", reason="token" if status == 401 else "rate")
        if status < 300 and writes:
            self.measures.count("reverie_writes_total")
        if status < 300 and route.endswith("/recall"):
            self.measures.count("reverie_recalls_total")
        if self.options.logs_requests:
            ids = {"token": who.token_id, "person": who.person_id, "organisation": who.organisation_id} if who else {}
            store = request.path_params.get("store", "") if status < 400 else ""  # else it may be any text
            ms = round(seconds * 1000, 1)
            write_line(
                "request", id=id, method=request.method, route=route, status=status, ms=ms, store=str(store)[:60], **ids
            )

    async def _audit_refusal(self, request: Request) -> None:
        address = request.client.host if request.client else ""
        if self.limits.may_audit(address):
            with suppress(NoDatabase):
                async with self.database.as_owner() as connection:
                    await audit.record_by_server(connection, "refuse token", address, outcome="refused")

    async def _leave_measures(self, database: Database) -> None:
        """Once per second: what the other processes of this server show in their sum."""
        while True:
            state = database.pool_state()
            for name in ("open", "free"):
                self.measures.gauges["reverie_pool_connections", label(state=name)] = state[name]
            self.measures.gauges["reverie_pool_requests_waiting", ()] = state["waiting"]
            self.measures.leave()
            await asyncio.sleep(1)


def create_app(dsn: str, options: Options | None = None) -> Starlette:
    """The application; it connects, and migrates the schema, when it starts."""
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException

    site = Site(dsn, options or Options())
    routes = [
        *monitoring_routes(site),
        *_store_routes(site),
        *memory_routes(site),
        *own_routes(site),
        *dream_routes(site),
        _recall_route(site),
    ]

    async def refuse(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        said = "There is no such method here." if status == 405 else "There is no such route."
        if request.url.path.startswith(_OF_MODELS):
            said = "This is a memory server: it has no models. Give ANTHROPIC_BASE_URL only to clients of its memory."
        site.measures.count("reverie_requests_total", method="other", route="other", status=str(status))
        return error_response(ApiError(status, said), new_id("req"))

    return Starlette(routes=routes, lifespan=site.life, exception_handlers={HTTPException: refuse})


def serve(dsn: str, listener: socket.socket, options: Options | None = None) -> None:
    """Serves until interrupted."""
    from reverie.runtime.http import make_server
    from reverie.server.operation.request_heads import ImpatientProtocol

    options = options or Options()
    server = make_server(
        create_app(dsn, options),
        patience_s=10,
        has_lifespan=True,
        log_level="warning",
        most_connections=_MOST_CONNECTIONS,
        protocol=ImpatientProtocol,
        certificate=options.certificate,
        key=options.key,
        proxies=options.proxies,
    )
    server.run(sockets=[listener])


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


def _recall_route(site: Site) -> Route:
    async def answer(call: Call) -> Any:
        body = await read_body(call.request, recalling.FIELDS)
        return await recalling.recall(call.connection, call.who, site.vectors, body)

    return site.route("POST", "/v1/reverie/recall", answer)
