"""The MCP server over HTTP, for clients that cannot start a program. It listens on 127.0.0.1 only. A client needs the
token, which is in a file that only this user can read; requests that name another host or page are refused."""

from __future__ import annotations

import hmac
import secrets
import socket
from pathlib import Path
from typing import Any, Final

from reverie.connect.mcp.server import MemoryServer
from reverie.errors import UserError
from reverie.regular_files import read_regular
from reverie.runtime.loopback import App, LoopbackOnly, Receive, Scope, Send
from reverie.storage.atomic import create_exclusive, make_private_dir, storage_error

PATH: Final = "/mcp"
_LEAST_TOKEN: Final = 32
_MOST_TOKEN: Final = 200
_CONNECTIONS: Final = 100
_WHY: Final = "Send the header `Authorization: Bearer TOKEN`; `reverie mcp --http` says where the token is."


def token_file(home: Path) -> Path:
    """Where the token is. It stays the same, so that the configuration of a client stays valid."""
    return home / "connect" / "mcp.token"


def load_token(home: Path) -> str:
    """The token; made at the first use. A file that others can read is refused."""
    path = token_file(home)
    try:
        if not path.exists():
            make_private_dir(path.parent)
            create_exclusive(path, f"{secrets.token_urlsafe(32)}\n".encode())  # if another server is first, its counts
        if path.stat().st_mode & 0o077:
            raise UserError(f"{path}: others can read it, so it is not a secret; delete it and start again.")
        token = read_regular(path, _MOST_TOKEN).decode("ascii", "replace").strip()
    except OSError as error:
        raise storage_error(error, path, "use the token in") from error
    if len(token) < _LEAST_TOKEN:
        raise UserError(f"{path}: is not a token; delete it and start again.")
    return token


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
    import uvicorn

    config = uvicorn.Config(
        app(server, token),  # type: ignore[arg-type]
        log_level="critical",
        access_log=False,
        ws="none",
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=1,
    )
    await uvicorn.Server(config).serve(sockets=[listener])
