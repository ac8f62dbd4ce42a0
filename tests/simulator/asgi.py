"""Speaks to an ASGI application in process: a request in, status and body out. Thousands of them take seconds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

LOCAL = ("host", "127.0.0.1:8787")
KEYED = (LOCAL, ("x-api-key", "k"))


async def call(
    app: Any, method: str, path: str, body: bytes = b"", headers: Iterable[tuple[str, str]] = KEYED
) -> tuple[int, bytes]:
    """One request; an exception of the application comes out as it is."""
    path, _, query = path.partition("?")
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
        "scheme": "http",
        "server": ("127.0.0.1", 8787),
        "client": ("127.0.0.1", 5),
    }
    sent: list[dict[str, Any]] = []
    asked = False

    async def receive() -> dict[str, Any]:
        nonlocal asked
        if asked:  # the client stays, and says nothing more
            await asyncio.Event().wait()
        asked = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], b"".join(part.get("body", b"") for part in sent[1:])


def ask(app: Any, method: str, path: str, body: Any = b"", **more: Any) -> tuple[int, Any]:
    """The same from a test that is not async; JSON in, JSON out."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    status, answer = asyncio.run(call(app, method, path, raw, **more))
    return status, json.loads(answer)
