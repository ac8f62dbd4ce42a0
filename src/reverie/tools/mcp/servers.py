"""All MCP servers of one session: started together in the background, found by the names of their tools.

It reports each problem once, and never stops a session. Definitions that the user let run are kept in the home;
`changed_since_allowed` finds those that have changed since then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from reverie.paths import Places
from reverie.quick import dataclass
from reverie.settings import Settings
from reverie.tools.base import BEHIND, Tool
from reverie.tools.mcp.approved import ApprovedTools
from reverie.tools.mcp.config import ServerConfig
from reverie.tools.mcp.definitions import ToolDefinition
from reverie.tools.mcp.leash import Leash
from reverie.tools.mcp.names import clean_server
from reverie.tools.mcp.server import McpServer, ServerState
from reverie.tools.mcp.tools import CallTool, LoadTools, McpTool

LONGEST_LOAD = 40_000
"""In characters: a result of LoadTools stays below the limit of layer 1, so the model sees all of it."""


@dataclass(slots=True, eq=False)
class McpServers:
    """The servers of one session. `tell` gets sentences for the user; `changed` is called with a changed server."""

    configs: Sequence[ServerConfig]
    places: Places
    settings: Settings
    is_on: Callable[[], bool] = lambda: True
    """Asked at each use: a kill switch also stops sessions that run."""
    tell: Callable[[str], None] = lambda _text: None
    changed: Callable[[McpServer], None] = lambda _server: None
    longest_load: int = LONGEST_LOAD
    owned: bool = field(default=False, init=False)
    """Whether a session has taken them: it starts and closes them."""
    approved: ApprovedTools = field(init=False)
    _servers: dict[str, McpServer] = field(default_factory=dict[str, McpServer], init=False)
    _leash: Leash = field(default_factory=Leash, init=False)
    _told: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]], init=False)
    _started: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.approved = ApprovedTools(self.places.home)
        for config in self.configs:
            self._servers[config.name] = McpServer(
                config,
                self.settings.mcp,
                self.settings.env,
                _root_of(self.places),
                self._leash,
                self._note_change,
                self._report,
            )

    def __iter__(self) -> Iterator[McpServer]:
        return iter(self._servers.values())

    def __len__(self) -> int:
        return len(self._servers)

    def get(self, name: str) -> McpServer | None:
        return self._servers.get(name)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools of a request: always the same two."""
        return (LoadTools(self), CallTool(self))

    def start(self) -> None:
        """Starts all servers in the background, once."""
        if not self._started:
            self._started = True
            for server in self:
                server.start()

    async def settled(self, seconds: float) -> None:
        """Waits until every server is ready or has failed, at most this long."""
        waiting = [asyncio.ensure_future(one.settled()) for one in self if one.state is ServerState.STARTING]
        if waiting:
            _, left = await asyncio.wait(waiting, timeout=seconds)
            for one in left:
                one.cancel()

    async def wait_for(self, names: Sequence[str]) -> None:
        """Waits for the servers of these tools, if they are still starting."""
        wanted = [one for one in self if any(name.startswith(f"{BEHIND}{clean_server(one.name)}__") for name in names)]
        await asyncio.gather(*(one.settled() for one in wanted if one.state is ServerState.STARTING))

    def definitions(self) -> Mapping[str, ToolDefinition]:
        """The tools of all servers by their names, in order."""
        found = {tool.name: tool for server in self for tool in server.tools} if self.is_on() else {}
        return {name: found[name] for name in sorted(found)}

    def find(self, name: str) -> McpTool | None:
        found = ((server, server.find(name)) for server in self)
        server, definition = next(((one, tool) for one, tool in found if tool is not None), (None, None))
        if server is None or definition is None or not self.is_on():
            return None
        return McpTool(server, definition, self._note_run)

    def changed_since_allowed(self, server: McpServer) -> list[tuple[ToolDefinition, str]]:
        """Returns the tools whose definition is not the one that the user let run, with their old descriptions."""
        return [
            (tool, before.description)
            for tool in server.tools
            if (before := self.approved.get(server.config.id, tool.raw)) is not None and before.digest != tool.digest
        ]

    async def close(self) -> None:
        """Ends all servers and every process that they left."""
        await asyncio.gather(*(one.close() for one in self))
        await asyncio.to_thread(self._leash.release)

    def _note_run(self, server: McpServer, tool: ToolDefinition) -> None:
        if (problem := self.approved.note(server.config.id, tool)) is not None:
            self._report(server, problem)
        if server.find(tool.name) != tool:
            self.changed(server)  # it changed while the user was asked: what they answered was about the old one

    def _note_change(self, server: McpServer) -> None:
        if server.state is ServerState.FAILED:
            self._report(server, f"not available: {server.problem}")
        self.changed(server)

    def _report(self, server: McpServer, text: str) -> None:
        text = server.config.hide(text)
        if (server.name, text) not in self._told:
            self._told.add((server.name, text))
            self.tell(f"MCP server {server.name}: {text}.")


def _root_of(places: Places) -> Path:
    return places.checkout if places.cwd.is_relative_to(places.checkout) else places.cwd
