"""What the tools of a server cost: their number, and the bytes of their schemas, which every session pays for."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.mcp.servers import connect, own_server, server_memory, wire_bytes
from reverie.text.columns import table as columns
from reverie.types import JsonObject

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


def summary(sizes: list[Size]) -> JsonObject:
    return {"servers": [asdict(one) for one in sizes]}


def table(sizes: list[Size]) -> str:
    rows = [("server", "tools", "bytes", "instructions", "")]
    rows += [
        (one.name, str(one.tools), f"{one.bytes:,}", f"{one.instructions:,}" if one.instructions else "",
         "measured now" if one.is_measured else "from before")
        for one in sorted(sizes, key=lambda one: one.bytes)
    ]  # fmt: skip
    return "\n".join(columns(rows, right={1, 2, 3}))
