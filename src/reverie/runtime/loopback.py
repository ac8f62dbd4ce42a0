"""What our local servers have in common: a socket on loopback, and a check that only this machine asks.

A page can make a browser send requests to 127.0.0.1, under its own name (Origin) or under a name that its DNS server
points here (Host). Both headers must name this machine. One ASGI middleware for every server, without state.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import struct
import subprocess
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from ipaddress import ip_address
from typing import Any, TypeAlias

from reverie.errors import UserError

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

_AUTHORITY = re.compile(r"(?:\[(?P<six>[0-9a-f:.]{2,45})\]|(?P<name>[a-z0-9.-]{1,253}))(?::\d{1,5})?", re.IGNORECASE)


_SOCK_DIAG, _BY_FAMILY = 4, 20
_USER_AT = 80
"""Where user and inode are in the answer: behind a header of 16 bytes, and 64 bytes of `inet_diag_msg`."""


class LoopbackOnly:
    """Passes on requests of local programs; answers everything else with `refuse(path, reason)`."""

    def __init__(self, app: App, refuse: Callable[[str, str], App]) -> None:
        self._app = app
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (reason := refusal_reason(scope["headers"])):
            await self._refuse(str(scope["path"]), reason)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def refusal_reason(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Why a request with these headers is refused; None if it is not."""
    found: dict[bytes, list[str]] = {}
    for name, value in headers:
        found.setdefault(name.lower(), []).append(value.decode("latin-1").strip())
    hosts, origins = found.get(b"host", []), found.get(b"origin", [])
    if len(hosts) != 1 or not is_here(hosts[0]):
        shown = ", ".join(hosts)[:80] or "missing"
        return f"Host: this server answers only to 127.0.0.1, localhost and [::1]; the header is {shown}"
    for origin in origins:
        scheme, _, authority = origin.partition("://")
        if scheme.lower() not in ("http", "https") or not is_here(authority):
            return f"Origin: pages of other hosts may not use this server; the header is {origin[:80]}"
    if not origins and "cross-site" in found.get(b"sec-fetch-site", []):
        return "Sec-Fetch-Site: pages of other hosts may not use this server"
    return None


def is_here(authority: str) -> bool:
    """Whether `host` or `host:port` names this machine by a name that no DNS server can change."""
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        return False
    if match["name"] is not None and match["name"].lower() == "localhost":
        return True
    try:
        return ip_address(match["six"] or match["name"]).is_loopback
    except ValueError:
        return False


def is_other_user(client: tuple[str, int] | None, server: tuple[str, int] | None) -> bool:
    """Whether this connection is not by a process of our user, or of root, who may do everything; also if the system
    does not say whose it is.

    Browsers send a cookie of 127.0.0.1 to every port, also to the server of another user, who could use it then.
    """
    owner = _owner(client, server) if client is not None and server is not None else None
    return owner not in (0, os.getuid())


def _owner(client: tuple[str, int], server: tuple[str, int]) -> int | None:
    """The user whose process has the other end of a connection; None if the system does not say.

    Asks the kernel for one socket by its addresses (`man 7 sock_diag`), which takes as long with many connections.
    """
    family: int | None = getattr(socket, "AF_NETLINK", None)
    if family is None:
        return _owner_by_lsof(client, server)
    try:
        ends = b"".join(socket.inet_aton(host).ljust(16, b"\0") for host, _ in (client, server))
        wanted = struct.pack(">HH", client[1], server[1]) + ends + bytes(4) + b"\xff" * 8
        body = struct.pack("=BBHI", socket.AF_INET, socket.IPPROTO_TCP, 0, 0) + wanted
        with socket.socket(family, socket.SOCK_DGRAM, _SOCK_DIAG) as kernel:
            kernel.settimeout(1)
            kernel.send(struct.pack("=IHHII", 16 + len(body), _BY_FAMILY, 1, 0, 0) + body)
            answer = kernel.recv(4_096)
        (kind,) = struct.unpack_from("=H", answer, 4)
        user, inode = struct.unpack_from("=II", answer, _USER_AT)
        # A socket that no process has any more is shown as one of root, without an inode.
        return user if kind == _BY_FAMILY and inode else None
    except (OSError, struct.error):
        return None


def _owner_by_lsof(client: tuple[str, int], server: tuple[str, int]) -> int | None:
    """The same on systems where only this program says it. It shows no sockets of others, except to root."""
    wanted = f"n{client[0]}:{client[1]}->{server[0]}:{server[1]}"
    command = ["lsof", "-nP", f"-iTCP@{client[0]}:{client[1]}", "-Fun"]
    path = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    try:
        lines = subprocess.run(command, capture_output=True, text=True, env=path, timeout=5).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return None
    user = None
    for line in lines:
        if line.startswith("u"):
            user = int(line[1:])
        elif line == wanted:
            return user
    return None


def listen(port: int, host: str = "127.0.0.1") -> socket.socket:
    """A socket on loopback, or on another address of this machine; port 0 means any free port. A bad port or host is a
    `UserError`."""
    listener = None
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # asyncio sends small packets at once (no Nagle, 40 ms) only on sockets that name their protocol.
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        # From here on a client waits, so the address can be printed before the server is up.
        listener.listen(128)
    except (OSError, OverflowError, UnicodeError) as error:
        if listener is not None:
            listener.close()
        reason = getattr(error, "strerror", None) or error
        is_elsewhere = getattr(error, "errno", None) == errno.EADDRNOTAVAIL
        if is_elsewhere or isinstance(error, socket.gaierror | UnicodeError):
            raise UserError(f"{host[:80]!r} is not an address of this machine: {reason}.") from error
        raise UserError(
            f"Port {port} cannot be used: {reason}. Choose another one with --port, or 0 for any."
        ) from error
    return listener


def address(listener: socket.socket) -> str:
    """The base URL of a listening socket."""
    host, port = str(listener.getsockname()[0]), int(listener.getsockname()[1])
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
