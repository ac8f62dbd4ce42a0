"""The servers that are measured: ours, and those of others that are installed here, and what their tools cost. Each is
started as a client starts it, over standard input and output."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import click

from reverie.cli.output import warn
from reverie.lab.measurement import Result, Table, measurement
from reverie.quick import dataclass

if TYPE_CHECKING:
    from mcp.client.client import Client

SERVER_MEMORY: Final = Path("node_modules/@modelcontextprotocol/server-memory/dist/index.js")
NODE: Final = Path(".venv-clients/node")
"""Where `make integration` puts programs of npm."""


def _check_node(_ctx: click.Context, _param: click.Parameter, node: Path) -> Path:
    if not (node / SERVER_MEMORY).is_file():
        warn(f"server-memory is not installed in {node}, so it is not measured: npm install --prefix {node} …")
    return node


node_option = click.option(
    "--node",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=NODE,
    callback=_check_node,
    help="The folder in which npm has installed @modelcontextprotocol/server-memory.  [default: .venv-clients/node]",
)


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """How a server is started."""

    name: str
    command: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path


def own_server(folder: Path) -> ServerCommand:
    """Ours, with a home and a project below `folder`."""
    work = folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "HOME": str(folder), "REVERIE_HOME": str(folder / "home")}
    return ServerCommand("reverie", sys.executable, ("-m", "reverie", "mcp", "--cwd", str(work)), env, work)


def server_memory(folder: Path, node: Path) -> ServerCommand | None:
    """`@modelcontextprotocol/server-memory`, with its file below `folder`; None if it is not installed in `node`."""
    script = (node / SERVER_MEMORY).absolute()
    if not script.is_file():
        return None
    env = {**os.environ, "MEMORY_FILE_PATH": str(folder / "graph.jsonl")}
    return ServerCommand("server-memory", "node", (str(script),), env, folder)


@asynccontextmanager
async def connect(server: ServerCommand) -> AsyncGenerator[Client]:
    """A client of a server that runs for the time of the block. What the server says on standard error is dropped."""
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    parameters = StdioServerParameters(
        command=server.command, args=list(server.args), env=dict(server.env), cwd=server.cwd
    )
    with os.fdopen(os.open(os.devnull, os.O_WRONLY), "w") as nowhere:
        async with Client(stdio_client(parameters, errlog=nowhere)) as client:
            yield client


def wire_bytes(tools: Any) -> int:
    """The bytes of the tools as they are sent: names, descriptions, schemas, annotations."""
    import json

    listed = [one.model_dump(by_alias=True, exclude_none=True, mode="json") for one in tools]
    return len(json.dumps(listed, ensure_ascii=False, separators=(",", ":")).encode())


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
