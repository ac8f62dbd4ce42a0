"""What the tools of a server cost: their number, and the bytes of their schemas, which every session pays for."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.mcp.servers import connect, node_option, own_server, server_memory, wire_bytes
from reverie.lab.measurement import Result, Table, measurement
from reverie.quick import dataclass

PUBLISHED: Final = (("basic-memory", 23, 42_500), ("context-mode", 11, 17_500), ("server-memory", 9, 11_500))
"""Measured by hand before, for servers that are not installed here."""


@dataclass(frozen=True, slots=True)
class Size:
    """One server. `is_measured`: now, on this machine; else a figure from before."""

    name: str
    tools: int
    bytes: int
    instructions: int
    is_measured: bool


@measurement("reverie lab mcp sizes --json")
@node_option
def sizes(node: Path) -> Result:
    """Measure the number of tools and the bytes of their schemas, beside other servers for memory."""
    servers = asyncio.run(measure_sizes(node))
    rows = sorted(servers, key=lambda one: one.bytes)
    return Result({"servers": servers}, [Table(rows, ("name", "tools", "bytes", "instructions", "is_measured"))])


async def measure_sizes(node: Path) -> list[Size]:
    """Ours and server-memory, if it is installed, and the figures of others."""
    found = list[Size]()
    with TemporaryDirectory(prefix="reverie-lab-") as folder:
        for server in (own_server(Path(folder)), server_memory(Path(folder), node)):
            if server is not None:
                async with connect(server) as client:
                    tools = (await client.list_tools()).tools
                    said = len((client.instructions or "").encode())
                    found.append(Size(server.name, len(tools), wire_bytes(tools), said, True))
    known = {one.name for one in found}
    return found + [Size(name, tools, size, 0, False) for name, tools, size in PUBLISHED if name not in known]
