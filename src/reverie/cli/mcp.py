"""`reverie mcp`: serves the memory of a project to any client of the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from reverie.cli.below_agent import AgentsMay, agents_may
from reverie.cli.mcp_servers import COMMANDS
from reverie.cli.options import examples, folder_options, load_places
from reverie.cli.output import answer


@examples("reverie mcp", "reverie mcp --cwd ~/work/shop", "reverie mcp --http --port 8123", "reverie mcp list")
@agents_may(AgentsMay.ALL)
@click.group(name="mcp", invoke_without_command=True)
@click.option("--http", is_flag=True, help="Serve over HTTP on 127.0.0.1 instead of standard input and output.")
@click.option("--port", type=click.IntRange(0, 65_535), default=0, show_default="any free one", help="For --http.")
@folder_options
@click.pass_context
def command(ctx: click.Context, http: bool, port: int, as_json: bool, cwd: Path) -> int | None:
    """Serve memory to any MCP client; or list, add, remove and test the MCP servers that the agent uses.

    An agent or editor starts this command itself; `reverie connect` writes the configuration. It offers five tools
    (recall, remember, forget, read, history), every memory as a resource, and one prompt. What a model saves is marked
    as its note until you confirm it, and everything can be undone. With --http a client needs a token.

    Without --cwd, the project is the first root of the client, if it names one, else the current folder.

    Exit codes: 0: the client has closed the connection; 2: wrong usage, or the port cannot be used; 4: storage error.
    """
    if ctx.invoked_subcommand is not None:
        return None
    if port and not http:
        raise click.UsageError("--port is for --http.")
    from reverie.cli.event_loop import CommandSignals, run_async
    from reverie.connect.mcp.server import MemoryServer

    here, is_given = cwd.absolute(), ctx.get_parameter_source("cwd") is not ParameterSource.DEFAULT
    home = load_places(here)[1].home
    server = MemoryServer(home, here if is_given else None, here, is_alone=not http)

    async def serve(_signals: CommandSignals) -> int:
        from reverie.connect.mcp.http import PATH, load_token, serve_http, token_file
        from reverie.runtime.loopback import address, listen

        if not http:
            await server.serve_stdio()
            return 0
        token, listener = load_token(home), listen(port)
        url, file = f"{address(listener)}{PATH}", token_file(home)
        lines = (
            f"Memory of {here} at {url}. Ctrl-C ends it.",
            f"Clients send the header `Authorization: Bearer TOKEN`; the token is in {file}.",
        )
        answer(as_json, {"url": url, "token_file": str(file), "cwd": str(here)}, *lines)
        await serve_http(server, listener, token)
        return 0

    try:
        return run_async(serve)
    finally:
        server.close()


for _one in COMMANDS:
    command.add_command(_one)
