"""The one place where a listener that speaks HTTP is made. Who asks is always the real peer of the connection: headers
of a request say something about its sender only if the address of a reverse proxy is given."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reverie.errors import UserError

if TYPE_CHECKING:
    import asyncio

    import uvicorn


def make_server(
    app: Any,
    *,
    patience_s: int,
    has_lifespan: bool = False,
    log_level: str = "critical",
    most_connections: int | None = None,
    proxies: Sequence[str] = (),
    protocol: type[asyncio.Protocol] | None = None,
    certificate: Path | None = None,
    key: Path | None = None,
) -> uvicorn.Server:
    """A server that is not started. It gives requests `patience_s` seconds to end. `proxies` are the addresses whose
    `X-Forwarded-For` counts."""
    import uvicorn

    config = uvicorn.Config(
        app,
        log_level=log_level,
        access_log=False,
        lifespan="on" if has_lifespan else "off",
        ws="none",
        # h11 gives the target of a request as it came; the other parser would give the path of an address.
        http=protocol or "h11",
        server_header=False,
        limit_concurrency=most_connections,
        timeout_graceful_shutdown=patience_s,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        # uvicorn believes everybody on loopback otherwise, or whom the variable FORWARDED_ALLOW_IPS names.
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
    )
    return uvicorn.Server(config)


def check_proxy(address: str) -> None:
    """Refuses what is not the address or network of a reverse proxy; everybody is not one."""
    try:
        network = ip_network(address)
    except ValueError:
        network = None
    if network is None or network.prefixlen == 0:
        raise UserError(
            f"{address[:80]!r} is not the address of a reverse proxy: give the one that it connects from, such as "
            "127.0.0.1 or 10.0.3.0/28."
        )
