"""The proxy over HTTP: conversations go through the layers, other paths are passed on; `/reverie/stats` has bills."""

from __future__ import annotations

import hmac
import logging
import socket
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reverie.models.catalogue import Catalogue
from reverie.proxy.bills import Bills
from reverie.proxy.bodies import PATHS
from reverie.proxy.book import Book
from reverie.proxy.conversations import LAYERS, Conversations
from reverie.proxy.exchange import Exchanges
from reverie.proxy.stats import summary
from reverie.runtime.loopback import App, LoopbackOnly
from reverie.storage.transcript.session_log import Clock, utc_now

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from reverie.library.memory import Memory

_MOST_BODY = 256_000_000
_STOP_S = 15.0
TOKEN_HEADER = "x-reverie-token"
_log = logging.getLogger("reverie.proxy")


def book_path(home: Path) -> Path:
    return home / "proxy" / "book.sqlite"


def create_app(
    home: Path,
    upstreams: Mapping[str, str],
    catalogue: Catalogue,
    *,
    layers: tuple[str, ...] = LAYERS,
    memory: Memory | None = None,
    learns: bool = False,
    window: int | None = None,
    markers: bool = True,
    token: str = "",
    clock: Clock = utc_now,
) -> Starlette:
    """The application in front of one server per API. With a `token`, other machines may use it too. `clock`: for
    measurements and tests; caches expire and pauses are seen by it."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.routing import Route

    site = _Site({api: address.rstrip("/") for api, address in upstreams.items()}, token)

    @asynccontextmanager
    async def life(_app: Starlette) -> AsyncGenerator[None]:
        import httpx

        limits = httpx.Limits(max_connections=1_000, max_keepalive_connections=200)
        async with httpx.AsyncClient(timeout=httpx.Timeout(None, connect=20), limits=limits, trust_env=True) as client:
            conversations = Conversations(
                Book(book_path(home)),
                home,
                layers=layers,
                memory=memory,
                learns=learns,
                window=window,
                markers=markers,
                clock=clock,
            )
            site.exchanges = Exchanges(site.upstreams, client, conversations, Bills(catalogue, clock))
            try:
                yield
            finally:
                await site.exchanges.settle()
                await conversations.close()

    methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
    return Starlette(
        routes=[
            Route("/reverie/stats", site.stats),
            Route("/{path:path}", site.pass_on, methods=methods),
        ],
        middleware=[] if token else [Middleware(LoopbackOnly, refuse=_refuse)],
        lifespan=life,
    )


class _Site:
    def __init__(self, upstreams: Mapping[str, str], token: str) -> None:
        self.upstreams = upstreams
        self.exchanges: Exchanges | None = None
        self._token = token

    async def stats(self, request: Request) -> Response:
        from starlette.responses import JSONResponse

        if (refused := self._refused(request)) is not None:
            return refused
        exchanges = self.exchanges
        assert exchanges is not None
        await exchanges.settle()
        found = summary(exchanges.conversations.book.rows(), exchanges.counts)
        return JSONResponse({"upstreams": dict(self.upstreams), **found})

    async def pass_on(self, request: Request) -> Response:
        import httpx
        from starlette.requests import ClientDisconnect
        from starlette.responses import Response, StreamingResponse

        if (refused := self._refused(request)) is not None:
            return refused
        exchanges = self.exchanges
        assert exchanges is not None
        raw = bytearray()
        try:
            async for part in request.stream():
                raw += part
                if len(raw) > _MOST_BODY:
                    return _error(413, f"The request is larger than {_MOST_BODY:,} bytes.")
        except ClientDisconnect:
            return Response(status_code=499)
        path = request.url.path
        api = PATHS.get(path) if request.method == "POST" else None
        query = f"?{request.url.query}" if request.url.query else ""
        headers = {name: value for name, value in request.headers.items() if name != TOKEN_HEADER}
        try:
            status, given, body = await exchanges.send(request.method, path + query, headers, bytes(raw), api)
        except httpx.HTTPError as error:
            exchanges.counts["upstream_failed"] += 1
            return _error(502, f"The upstream does not answer: {type(error).__name__}: {error}"[:500])
        answer = StreamingResponse(_quiet(body), status)
        answer.raw_headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in given]
        return answer

    def _refused(self, request: Request) -> Response | None:
        given = request.headers.get(TOKEN_HEADER, "") or request.query_params.get("token", "")
        if not self._token or hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode()):
            return None
        return _error(401, f"This proxy needs the header {TOKEN_HEADER}.")


async def _quiet(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Ends the answer where the upstream broke off: the client sees what it would have seen without us."""
    import httpx

    try:
        async for chunk in body:
            yield chunk
    except httpx.HTTPError as error:
        _log.warning("The upstream broke off an answer: %s", error)
        raise ConnectionAbortedError from error


def _error(status: int, message: str) -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse({"type": "error", "error": {"type": "proxy_error", "message": message}}, status)


def _refuse(_path: str, reason: str) -> App:
    return _error(403, reason)


def _server(app: Any) -> Any:
    import uvicorn

    config = uvicorn.Config(app, log_level="critical", access_log=False, lifespan="on", timeout_graceful_shutdown=5)
    return uvicorn.Server(config)


def serve(app: Any, listener: socket.socket) -> None:
    """Serves until interrupted."""
    _server(app).run(sockets=[listener])


@contextmanager
def running(app: Any, listener: socket.socket) -> Generator[None]:
    """Serves from a thread until the block ends; then waits for bills and closes the transcripts."""
    server = _server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="proxy", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(_STOP_S)
