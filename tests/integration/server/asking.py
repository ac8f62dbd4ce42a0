"""Requests to a server without the SDK."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import quote, urlsplit

from tests.integration.server.conftest import Served


class Caller:
    """One connection that stays open, with a token."""

    def __init__(self, url: str, token: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        self._token = token

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Status and JSON; `headers` are our own (`reason`, `session`, `message`)."""
        given = {"x-api-key": self._token, "content-type": "application/json"}
        given |= {f"x-reverie-{name}": quote(value) for name, value in headers.items()}
        self._connection.request(method, path, None if body is None else json.dumps(body), given)
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read())

    def close(self) -> None:
        self._connection.close()


def ask(served: Served, token: str, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    """One request on a connection of its own."""
    caller = Caller(served.url, token)
    try:
        return caller.ask(method, path, body, **headers)
    finally:
        caller.close()
