"""The MCP server over HTTP, for clients that cannot start a program. It listens on 127.0.0.1 only. A client needs the
token, which is in a file that only this user can read; requests that name another host or page are refused."""

from __future__ import annotations

import hmac
import socket
from pathlib import Path
from typing import Any, Final

from reverie.connect.mcp.server import MemoryServer
from reverie.runtime.loopback import App, LoopbackOnly, Receive, Scope, Send
from reverie.storage.token_file import load_secret

PATH: Final = "/mcp"
_CONNECTIONS: Final = 100
_WHY: Final = "Send the header `Authorization: Bearer TOKEN`; `reverie mcp --http` says where the token is."


def token_file(home: Path) -> Path:
    """Where the token is. It stays the same, so that the configuration of a client stays valid."""
    return home / "connect" / "mcp.token"


def load_token(home: Path) -> str:
    """The token; made at the first use."""
    return load_secret(token_file(home))


class _NeedsToken:
    """Passes on requests that have the token."""

    def __init__(self, app: App, token: str) -> None:
        self._app = app
        self._wanted = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = [value for name, value in scope.get("headers", ()) if name.lower() == b"authorization"]
        is_known = len(given) == 1 and hmac.compare_digest(given[0], self._wanted)
        if scope["type"] == "http" and not is_known:
            await _refusal(401, _WHY)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _refusal(status: int, why: str) -> App:
    from starlette.responses import PlainTextResponse

    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    return PlainTextResponse(f"{why}\n", status, headers)


def app(server: MemoryServer, token: str) -> App:
    """The ASGI application: first where a request comes from, then the token, then the protocol."""
    served: Any = server.sdk.streamable_http_app(streamable_http_path=PATH)
    return LoopbackOnly(_NeedsToken(served, token), lambda _path, reason: _refusal(403, reason))


async def serve_http(server: MemoryServer, listener: socket.socket, token: str) -> None:
    """Serves until it is ended."""
    from reverie.runtime.http import make_server

    served = make_server(app(server, token), patience_s=1, has_lifespan=True, most_connections=_CONNECTIONS)
    await served.serve(sockets=[listener])
