"""How much time the proxy adds to a request of 100,000 tokens, beside a proxy that only parses and writes JSON.

Both run on the same server stack, each in a process of its own. The server behind them answers at once with a stream.
The requests are those of one growing conversation: every one has a new answer and a new tool result.
"""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from reverie.errors import ReverieError
from reverie.lab.measurement import Result
from reverie.runtime.loopback import address, listen

if TYPE_CHECKING:
    import socket

    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

TOKENS = 100_000
AIM = 3.0
_START_S = 60.0
_WORDS = "The quick brown fox jumps over the lazy dog, and {n} looks at line {at} of it.\n"
_MODEL = "claude-opus-4-5"
_MARK = {"type": "ephemeral"}
_HEADERS = {"content-type": "application/json", "x-api-key": "simulated", "anthropic-version": "2023-06-01"}
_RESULT = 4_000
"""Characters of a tool result: long enough for the engine to look at it."""


def latency_report(tokens: int = TOKENS, runs: int = 31) -> Result:
    """Sends the same requests in the three ways in turn, and compares the medians."""
    times: dict[str, list[float]] = {"direct": [], "parsing": [], "proxy": []}
    with TemporaryDirectory(prefix="reverie-lab-") as home, ExitStack() as stack:
        direct = stack.enter_context(_process(_upstream))
        urls = {
            "direct": direct,
            "parsing": stack.enter_context(_process(_parsing_proxy, direct)),
            "proxy": stack.enter_context(_process(_own_proxy, direct, home)),
        }
        talk = _Talk(tokens)
        for number in range(runs + 1):
            raw = talk.next()
            names = list(urls)[number % 3 :] + list(urls)[: number % 3]
            for name in names:
                taken = _timed(urls[name], raw)
                if number:  # the first request opens the conversation
                    times[name].append(taken)
                _settle(urls["proxy"])
    base = 1_000 * median(times["direct"])
    added = {name: 1_000 * median(each) - base for name, each in times.items()}
    ratio = added["proxy"] / added["parsing"] if added["parsing"] > 0 else float("inf")
    figures = {
        "tokens": tokens,
        "runs": runs,
        "direct_ms": base,
        "added_by_parsing_ms": added["parsing"],
        "added_by_proxy_ms": added["proxy"],
        "ratio": ratio,
        "aim": {"ratio": AIM, "holds": ratio <= AIM},
    }
    words = (
        f"A request of {tokens:,} tokens takes {base:.1f} ms (medians of {runs}). A proxy that only parses and writes "
        f"JSON adds {added['parsing']:.1f} ms; reverie adds {added['proxy']:.1f} ms, {ratio:.2f} times as much "
        f"(aim: at most {AIM:.0f})."
    )
    return Result(figures, [words], holds=ratio <= AIM)


class _Talk:
    """A conversation that has its size from the start and grows by one round per request."""

    def __init__(self, tokens: int) -> None:
        self._rounds = 0
        self._messages: list[dict[str, Any]] = [
            {"role": "user", "content": [{"type": "text", "text": "Find the bug."}]}
        ]
        while 4 * tokens > len(json.dumps(self._messages)):
            self._add()

    def next(self) -> bytes:
        self._add()
        *before, last = self._messages
        marked = {**last, "content": [{**last["content"][0], "cache_control": _MARK}]}
        tool = {"name": "Bash", "description": "Runs a command.", "input_schema": {"type": "object"}}
        system = [{"type": "text", "text": "You are an agent. " * 400, "cache_control": _MARK}]
        body = {"model": _MODEL, "max_tokens": 900, "stream": True, "system": system, "tools": [tool]}
        return json.dumps({**body, "messages": [*before, marked]}).encode()

    def _add(self) -> None:
        name, number = f"toolu_{self._rounds}", self._rounds
        text = "".join(_WORDS.format(n=number, at=at) for at in range(_RESULT // len(_WORDS)))
        said = [{"type": "text", "text": _said(number)}, _call(number)]
        self._messages += [
            {"role": "assistant", "content": said},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": text}]},
        ]
        self._rounds += 1


def _said(number: int) -> str:
    return f"Step {number}: I look at one more part."


def _call(number: int) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": f"part {number}"}}


def _timed(url: str, raw: bytes) -> float:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        started = time.perf_counter()
        connection.request("POST", "/v1/messages", raw, _HEADERS)
        answer = connection.getresponse()
        said = answer.read()
        taken = time.perf_counter() - started
    finally:
        connection.close()
    if answer.status != 200 or b"message_stop" not in said:
        raise ReverieError(f"{url} answers {answer.status} {said[:200]!r}")
    return taken


def _settle(url: str) -> None:
    """Waits until the proxy has written its bills: a client has its tools to run meanwhile."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        connection.request("GET", "/reverie/stats")
        connection.getresponse().read()
    finally:
        connection.close()


# The three servers.


def _upstream() -> Starlette:
    """Answers at once, with the answer that the next request of the conversation has."""
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    from reverie.simulator.answer import events

    async def reply(request: Request) -> Response:
        raw = await request.body()
        number = raw.count(b'"tool_use_id"')
        message: dict[str, Any] = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": _MODEL,
            "content": [{"type": "text", "text": _said(number)}, _call(number)],
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 20, "cache_read_input_tokens": len(raw) // 4},
        }
        data = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events(message))
        return Response(data, media_type="text/event-stream")

    return Starlette(routes=[Route("/{path:path}", reply, methods=["POST"])])


def _parsing_proxy(upstream: str) -> Starlette:
    """The baseline: it parses the body, writes it again and passes the answer on."""
    import httpx
    from starlette.applications import Starlette
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    client = httpx.AsyncClient(timeout=60, trust_env=False)

    async def passed(answer: httpx.Response) -> AsyncIterator[bytes]:
        try:
            async for chunk in answer.aiter_raw():
                yield chunk
        finally:
            await answer.aclose()

    async def pass_on(request: Request) -> Response:
        body = json.dumps(await request.json()).encode()
        headers = {key: value for key, value in request.headers.items() if key not in ("host", "content-length")}
        sent = client.build_request("POST", f"{upstream}/v1/messages", headers=headers, content=body)
        answer = await client.send(sent, stream=True)
        return StreamingResponse(passed(answer), answer.status_code, {"content-type": answer.headers["content-type"]})

    return Starlette(routes=[Route("/v1/messages", pass_on, methods=["POST"])])


def _own_proxy(upstream: str, home: str) -> Starlette:
    from reverie.models.catalogue import Catalogue
    from reverie.proxy.bodies import APIS
    from reverie.proxy.server import create_app

    return create_app(Path(home), dict.fromkeys(APIS, upstream), Catalogue.load())


@contextmanager
def _process(make: Callable[..., Starlette], *given: str) -> Generator[str]:
    """A server in a process of its own; yields its address."""
    with listen(0) as listener:
        url = address(listener)
        process = multiprocessing.get_context("fork").Process(target=_serve, args=(listener, make, given), daemon=True)
        process.start()
    try:
        _wait(url)
        yield url
    finally:
        process.terminate()
        process.join(10)


def _serve(listener: socket.socket, make: Callable[..., Starlette], given: tuple[str, ...]) -> None:
    from reverie.proxy.server import serve

    serve(make(*given), listener)


def _wait(url: str) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        try:
            asked = HTTPConnection(urlsplit(url).netloc, timeout=5)
            asked.request("OPTIONS", "/")
            asked.getresponse().read()
            return
        except (OSError, HTTPException):
            time.sleep(0.1)
    raise ReverieError("a server did not start.")
