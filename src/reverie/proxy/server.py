"""The proxy over HTTP: conversations go through the layers, other paths are passed on; `/reverie/stats` has bills."""

from __future__ import annotations

import asyncio
import gc
import hmac
import logging
import socket
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from reverie.models.catalogue import Catalogue
from reverie.models.sdk import format_url
from reverie.proxy.bills import Bills
from reverie.proxy.bodies import PATHS
from reverie.proxy.book import Book
from reverie.proxy.conversations import LAYERS, Conversations
from reverie.proxy.exchange import Exchanges
from reverie.proxy.hidden_rounds import Call
from reverie.proxy.owners import Owner, Peer
from reverie.proxy.stats import RunTally, summary
from reverie.runtime.loopback import App, LoopbackOnly, Receive, Scope, Send, tells_users
from reverie.storage.token_file import load_secret
from reverie.storage.transcript.session_log import Clock, utc_now

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from reverie.library.memory import Memory

_MOST_BODY = 256_000_000
_STOP_S = 15.0
TOKEN_HEADER = "x-reverie-token"
ANTHROPIC_PATH = "/reverie/anthropic"
"""Before the path of a request: it is for the server of the Messages API, whatever it asks for."""
_TOKEN_PATH = b"/token/"
_TOKEN_HELP = "in the base URL (http://…/token/TOKEN)"
T = TypeVar("T")
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
    tally: RunTally | None = None,
    clock: Clock = utc_now,
) -> Starlette:
    """The application in front of one server per API. With a `token`, other machines may use it too: it is in a header,
    or at the start of the path (`/token/TOKEN/v1/…`), because every client has a setting for the address.
    `tally` gets what this process does. `clock`: for measurements and tests; caches expire by it."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.routing import Route

    secret = load_secret(home / "proxy" / "names.key").encode()[:64]
    site = _Site(upstreams, secret, trusts_unknown=bool(token) and not tells_users())

    @asynccontextmanager
    async def life(_app: Starlette) -> AsyncGenerator[None]:
        from http.cookiejar import CookieJar, DefaultCookiePolicy

        import httpx

        limits = httpx.Limits(max_connections=1_000, max_keepalive_connections=200)
        none = CookieJar(DefaultCookiePolicy(allowed_domains=()))  # else one client would send the cookies of another
        timeout = httpx.Timeout(None, connect=20)
        async with httpx.AsyncClient(timeout=timeout, limits=limits, trust_env=True, cookies=none) as client:
            for name in ("accept", "user-agent"):  # what a client leaves out stays out
                del client.headers[name]
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
            bills = Bills(catalogue, home / "proxy" / "caches.sqlite", clock)
            addresses = {api: httpx.URL(address) for api, address in upstreams.items()}
            site.exchanges = Exchanges(addresses, client, conversations, bills, tally)
            try:
                yield
            finally:
                await site.exchanges.settle()
                await conversations.close()
                bills.close()

    methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
    return Starlette(
        routes=[
            Route("/reverie/stats", site.stats),
            Route("/{path:path}", site.pass_on, methods=methods),
        ],
        middleware=[
            Middleware(_PathsOnly),
            Middleware(_NeedsToken, token) if token else Middleware(LoopbackOnly, refuse=_refuse, pages=False),
        ],
        lifespan=life,
    )


class _PathsOnly:
    """Refuses a request whose target is not a path as it came, before any of it is decoded: an address is one of
    another server."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_path = scope["type"] != "http" or bytes(scope["raw_path"]).startswith(b"/")
        await (self._app if is_path else _error(400, "The target of a request must begin with /."))(
            scope, receive, send
        )


class _NeedsToken:
    """Passes on requests that have the token, without it."""

    def __init__(self, app: App, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        given = next((value for name, value in headers if name == TOKEN_HEADER.encode()), b"")
        path = bytes(scope["raw_path"])
        if path.startswith(_TOKEN_PATH):
            given, slash, rest = path.removeprefix(_TOKEN_PATH).partition(b"/")
            path = slash + rest or b"/"
        if not hmac.compare_digest(given, self._token):
            refusal = _error(401, f"This proxy needs a token: in the header {TOKEN_HEADER}, or {_TOKEN_HELP}.")
            await refusal(scope, receive, send)
            return
        kept = [(name, value) for name, value in headers if name != TOKEN_HEADER.encode()]
        plain = unquote(path.decode("latin-1"))
        await self._app({**scope, "headers": kept, "raw_path": path, "path": plain}, receive, send)


class _Site:
    def __init__(self, upstreams: Mapping[str, str], secret: bytes, *, trusts_unknown: bool) -> None:
        self.upstreams = upstreams
        self.exchanges: Exchanges | None = None
        self._secret = secret
        self._trusts_unknown = trusts_unknown

    def _whose(self, request: Request) -> tuple[Peer, Owner]:
        """Where a request comes from, and whose it is."""
        scope, headers = request.scope, request.headers.raw
        peer = Peer.of(scope["client"], scope["server"], headers)
        return peer, Owner.of(self._secret, headers, scope["query_string"], peer, trusts_unknown=self._trusts_unknown)

    async def stats(self, request: Request) -> Response:
        """Everything for the user who started the proxy; for anybody else what is their own."""
        from starlette.responses import JSONResponse

        exchanges = self.exchanges
        assert exchanges is not None
        await exchanges.settle()
        book, owner, is_priced = exchanges.conversations.book, self._whose(request)[1], exchanges.bills.is_priced
        if not owner.is_user:
            return JSONResponse(summary(book.rows(owner.name), None, is_priced))
        found = summary(book.rows(), book.failures(), is_priced)
        return JSONResponse(
            {"upstreams": {api: format_url(address) for api, address in self.upstreams.items()}, **found}
        )

    async def pass_on(self, request: Request) -> Response:
        import httpx
        from starlette.requests import ClientDisconnect
        from starlette.responses import Response, StreamingResponse

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
        path, query = bytes(request.scope["raw_path"]), bytes(request.scope["query_string"])  # as it came, with escapes
        if is_for_anthropic := path.startswith(f"{ANTHROPIC_PATH}/".encode()):
            path = path.removeprefix(ANTHROPIC_PATH.encode())
        api = PATHS.get(path.decode("latin-1")) if request.method == "POST" else None
        target = path + b"?" + query if query else path
        peer, owner = self._whose(request)
        headers = httpx.Headers(request.headers.raw)
        call = Call(request.method, target, headers, api, "messages" if is_for_anthropic else api)
        sending = exchanges.send(call, bytes(raw), owner, is_near=peer.is_near)
        try:
            sent = await _unless_gone(request, sending)
        except httpx.InvalidURL as error:
            return _error(400, f"The address cannot be passed on: {error}"[:500])
        except httpx.HTTPError as error:
            return _error(502, f"The upstream does not answer: {type(error).__name__}: {error}"[:500])
        if sent is None:
            return Response(status_code=499)
        status, given, body = sent
        answer = StreamingResponse(_quiet(body), status)
        answer.raw_headers = given
        return answer


async def _unless_gone(request: Request, sending: Coroutine[Any, Any, T]) -> T | None:
    """The answer; None if the client closes its connection first. Then the upstream is not asked any longer."""
    task = asyncio.create_task(sending)
    gone = asyncio.create_task(_wait_until_gone(request))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        return await task if task.done() else None
    finally:
        gone.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))


async def _wait_until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


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
    from reverie.runtime.http import make_server

    return make_server(app, patience_s=5, has_lifespan=True)


def serve(app: Any, listener: socket.socket) -> None:
    """Serves until interrupted, as the only work of this process."""
    server = _server(app)
    gc.collect()
    gc.freeze()  # what is loaded now stays: looking for garbage takes a fraction of the time
    server.run(sockets=[listener])


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
