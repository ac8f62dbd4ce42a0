"""`/mcp` in the chat: the MCP servers of the session, their tools, and a way to connect again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from reverie.cli.output import columns, exact, one_line, plural, table
from reverie.errors import UserError

if TYPE_CHECKING:
    from reverie.cli.chat.loop import Chat
    from reverie.tools.mcp.server import McpServer


async def show_servers(chat: Chat, rest: str) -> None:
    """Lists the servers, the tools of one, or connects one again."""
    servers = chat.session.mcp.servers
    if servers is None:
        chat.view.tell("There are no MCP servers in this session. `reverie mcp add` adds one for the next session.")
        return
    chat.session.mcp.start()
    what, _, name = rest.partition(" ")
    if what == "reconnect":
        chosen = [_find(chat, name.strip())] if name.strip() else list(servers)
        for server in chosen:
            await server.restart()
            chat.view.tell(f"{exact(server.name)}: {_state(server)}")
        return
    if rest:
        server = _find(chat, rest)
        chat.view.tell(f"{exact(server.name)}: {_state(server)}")
        rows = [
            (tool.name, "only reads, it says" if tool.only_reads else "", one_line(tool.line)) for tool in server.tools
        ]
        chat.view.say_all(f"  {line}" for line in table(rows, room=columns() - 3, flexible=2, least=20))
        return
    loaded = set(chat.session.mcp.discovered())
    rows = [
        (
            exact(server.name),
            exact(_state(server)),
            plural(len(server.tools), "tool"),
            f"{sum(tool.name in loaded for tool in server.tools)} loaded",
            one_line(exact(server.config.shown)),
        )
        for server in servers
    ]
    chat.view.say_all(f"  {line}" for line in table(rows, room=columns() - 3, flexible=4, least=20))


def complete_servers(chat: Chat) -> Iterable[tuple[str, str]]:
    for server in chat.session.mcp.servers or ():
        yield server.name, "its tools"
        yield f"reconnect {server.name}", _state(server)


def _find(chat: Chat, name: str) -> McpServer:
    servers = chat.session.mcp.servers
    server = servers.get(name) if servers is not None else None
    if server is None:
        known = ", ".join(one.name for one in servers or ())
        raise UserError(
            f"There is no MCP server {name!r}; there are: {known}. Write /mcp, /mcp NAME or /mcp reconnect NAME."
        )
    return server


def _state(server: McpServer) -> str:
    return f"{server.state.value}: {server.problem}" if server.problem else server.state.value
