"""The simulator over HTTP on loopback: routes, server-sent events, and a server for the time of a test.

Starlette and uvicorn are imported only here, and only when it serves.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from reverie.errors import ReverieError, Unreachable, UserError
from reverie.runtime.loopback import App, LoopbackOnly, address, listen
from reverie.simulator.check import MAX_NAME
from reverie.simulator.control import ROUTES, fault_of, profile_of, step_of
from reverie.simulator.errors import ApiError, invalid
from reverie.simulator.reading import MAX_BODY_BYTES, read_object
from reverie.simulator.simulator import Simulator

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

CONTROL_HEADER = "x-sim-key"
_START_S = 15.0
_BODY_S = 60.0
"""The most time for the body of a request to arrive."""
_CONNECTIONS = 200
_COUNT, _CHAT, _RESPONSES, _COMPACT, _MODELS = ROUTES[1:]


def app(simulator: Simulator) -> Starlette:
    """The ASGI application."""
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.routing import Route

    site = _Site(simulator)
    return Starlette(
        routes=[
            Route("/v1/messages", site.messages, methods=["POST"]),
            Route(_COUNT, site.count_tokens, methods=["POST"]),
            Route(_CHAT, site.chat, methods=["POST"]),
            Route(_RESPONSES, site.responses, methods=["POST"]),
            Route(_COMPACT, site.compact, methods=["POST"]),
            Route(_MODELS, site.models),
            Route(_MODELS + "/{model:path}", site.model),
            Route("/_sim/ledger", site.ledger),
            Route("/_sim/clock", site.clock, methods=["GET", "POST"]),
            Route("/_sim/faults", site.faults, methods=["POST"]),
            Route("/_sim/profile", site.profile, methods=["POST"]),
        ],
        middleware=[Middleware(LoopbackOnly, refuse=_refuse_origin)],
        exception_handlers={HTTPException: _refuse_route},
    )


def serve(simulator: Simulator, listener: socket.socket) -> None:
    """Serves until interrupted."""
    _server(simulator).run(sockets=[listener])


@contextmanager
def running(simulator: Simulator, port: int = 0) -> Generator[str]:
    """Serves from a thread until the block ends; yields the base URL."""
    listener = listen(port)
    server = _server(simulator)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="simulator", daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + _START_S
        while not server.started:
            if not thread.is_alive() or time.monotonic() > deadline:
                raise UserError("The simulator did not start.")
            time.sleep(0.005)
        yield address(listener)
    finally:
        server.should_exit = True
        thread.join(_START_S)
        listener.close()


def _server(simulator: Simulator) -> Any:
    from reverie.runtime.http import make_server

    return make_server(app(simulator), patience_s=1, most_connections=_CONNECTIONS)


def _with_id(
    endpoint: Callable[[_Site, Request, str], Awaitable[Response]],
) -> Callable[[_Site, Request], Awaitable[Response]]:
    """Gives the answer an id, and turns an error into the form of the API."""

    async def answer(site: _Site, request: Request) -> Response:
        name = _request_id()
        try:
            return await endpoint(site, request, name)
        except ApiError as error:
            return _refuse(request.url.path, error, name)
        except Unreachable:
            return _break_connection()
        except ReverieError as error:
            return _refuse(request.url.path, ApiError(500, str(error)), name)

    return answer


class _Site:
    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator

    @_with_id
    async def messages(self, request: Request, name: str) -> Response:
        body, headers = await _read(request), request.headers
        if body.get("stream") is True:
            return await _stream(self._simulator.stream(body, headers), name)
        return _json(await self._simulator.messages(body, headers), name)

    @_with_id
    async def count_tokens(self, request: Request, name: str) -> Response:
        body = await _read(request)
        await self._simulator.enter(_COUNT)
        return _json(self._simulator.count_tokens(body, request.headers), name)

    @_with_id
    async def chat(self, request: Request, name: str) -> Response:
        body, headers = await _read(request), request.headers
        if body.get("stream") is True:
            return await _stream(self._simulator.chat_stream(body, headers), name, last="data: [DONE]\n\n")
        return _json(dict(await self._simulator.chat(body, headers)), name)

    @_with_id
    async def responses(self, request: Request, name: str) -> Response:
        body, headers = await _read(request), request.headers
        if body.get("stream") is True:
            return await _stream(self._simulator.responses_stream(body, headers), name)
        return _json(await self._simulator.responses(body, headers), name)

    @_with_id
    async def compact(self, request: Request, name: str) -> Response:
        return _json(await self._simulator.compact(await _read(request), request.headers), name)

    @_with_id
    async def models(self, request: Request, name: str) -> Response:
        await self._simulator.enter(_MODELS)
        data = [self._model(model) for model in self._simulator.meter.catalogue.names]
        page = {"object": "list", "data": data, "has_more": False, "first_id": data[0]["id"], "last_id": data[-1]["id"]}
        return _json(page, name)

    @_with_id
    async def model(self, request: Request, name: str) -> Response:
        await self._simulator.enter(_MODELS)
        asked = str(request.path_params["model"])
        if not self._simulator.meter.catalogue.facts(asked).known:
            raise ApiError(404, f"model: {asked[:MAX_NAME]}", code="model_not_found")
        return _json(self._model(asked), name)

    def _model(self, name: str) -> dict[str, Any]:
        """What both APIs say about a model, in one object."""
        facts = self._simulator.meter.catalogue.facts(name)
        summarize = {"supported": facts.compaction}
        return {
            "id": name,
            "type": "model",
            "object": "model",
            "display_name": name,
            "created_at": "2026-01-01T00:00:00Z",
            "created": 1_767_225_600,
            "owned_by": facts.provider,
            "lifecycle": "active",
            "max_input_tokens": facts.window,
            "max_tokens": facts.max_output,
            "capabilities": {"compaction": {**summarize, "summarize": summarize}},
        }

    @_with_id
    async def ledger(self, request: Request, name: str) -> Response:
        self._check_key(request)
        return _json(self._simulator.ledger.wire(), name)

    @_with_id
    async def clock(self, request: Request, name: str) -> Response:
        self._check_key(request)
        clock = self._simulator.clock
        if request.method == "POST":
            seconds = step_of(await _read(request, key=False))
            try:
                clock.advance(seconds)
            except ValueError as error:
                raise invalid(f"advance_s: {error}") from error
        return _json({"now": clock.now()}, name)

    @_with_id
    async def faults(self, request: Request, name: str) -> Response:
        self._check_key(request)
        due = fault_of(await _read(request, key=False))
        try:
            self._simulator.fail_next(
                due.status, times=due.times, message=due.message, retry_after=due.retry_after, route=due.route
            )
        except ValueError as error:
            raise invalid(f"times: {error}") from error
        return _json({"queued": due.times}, name)

    @_with_id
    async def profile(self, request: Request, name: str) -> Response:
        self._check_key(request)
        profile = profile_of(await _read(request, key=False))
        self._simulator.behave(profile)
        return _json({"routes": list(profile)}, name)

    def _check_key(self, request: Request) -> None:
        """Refuses a control request without the key of the server, as a header or as `?key=`."""
        given = request.headers.get(CONTROL_HEADER) or request.query_params.get("key") or ""
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self._simulator.control_key.encode()):
            raise ApiError(401, f"{CONTROL_HEADER}: send the control key that the simulator printed at its start")


def _refuse(path: str, error: ApiError, name: str) -> Response:
    body = error.openai_wire() if path in (_CHAT, _RESPONSES, _COMPACT) else error.wire(name)
    return _json(body, name, error.code, error.headers())


def _refuse_origin(path: str, reason: str) -> App:
    return _refuse(path, ApiError(403, reason), _request_id())


async def _refuse_route(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    what = "Not found" if status == 404 else "Method not allowed" if status == 405 else str(error)
    return _refuse(request.url.path, ApiError(status, what), _request_id())


async def _read(request: Request, *, key: bool = True) -> Mapping[str, Any]:
    if key and not (request.headers.get("x-api-key") or request.headers.get("authorization")):
        raise ApiError(401, "x-api-key header is required")
    raw = bytearray()
    try:
        async with asyncio.timeout(_BODY_S):
            async for part in request.stream():
                raw += part
                if len(raw) > MAX_BODY_BYTES:
                    raise ApiError(413)
    except TimeoutError:
        raise ApiError(408, "The request body did not arrive in time") from None
    return read_object(raw)


def _request_id() -> str:
    return "req_01" + secrets.token_hex(11)


def _json(
    content: Mapping[str, Any], name: str, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse(dict(content), status, {"request-id": name, "x-request-id": name, **(headers or {})})


async def _stream(source: AsyncIterator[Mapping[str, Any]], name: str, last: str = "") -> Response:
    from starlette.responses import StreamingResponse

    def line(event: Mapping[str, Any]) -> str:
        head = f"event: {event['type']}\n" if "type" in event else ""
        return f"{head}data: {json.dumps(event, ensure_ascii=False)}\n\n"

    # An error needs a status, so it must come before the stream is opened.
    first = await anext(source)

    async def lines() -> AsyncIterator[str]:
        yield line(first)
        async for event in source:
            yield line(event)
        if last:
            yield last

    headers = {"request-id": name, "x-request-id": name, "cache-control": "no-cache"}
    return StreamingResponse(lines(), media_type="text/event-stream", headers=headers)


def _break_connection() -> Response:
    """Breaks the connection: the header promises more than is sent."""
    from starlette.responses import StreamingResponse

    async def nothing() -> AsyncIterator[str]:
        raise ReverieError("The connection is cut on purpose.")
        yield ""

    return StreamingResponse(nothing(), headers={"content-length": "1"})
