"""The servers that are measured: ours, and those of others that are installed here. Each is started as a client starts
it, over standard input and output."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from reverie.cli.output import warn
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
