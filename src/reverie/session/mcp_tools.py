"""MCP servers in a session: starts them, tells the model about their tools, and the user about their problems.

The tools of a request never change because of a server. A tool whose definition changed after the user let it run is
shown, and its permission ends. A server never delays a message for more than a moment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from reverie.events import Event, Notice
from reverie.layers.base import Companion
from reverie.models.window import scaled
from reverie.paths import Places
from reverie.quick import dataclass
from reverie.session.gate import PermissionGate
from reverie.session.parts import SessionParts
from reverie.settings import Settings
from reverie.settings.schema import with_values
from reverie.storage.transcript.view import View
from reverie.tools.base import CALL_TOOL, Tool
from reverie.types import Block, TextBlock

if TYPE_CHECKING:
    from reverie.tools.mcp.server import McpServer
    from reverie.tools.mcp.servers import McpServers

_SHOWN = 300
_LOADING_S = 5.0
"""To load the library, and to end a server that did not start: its own time does not begin before."""
_LATER = (
    "This conversation began without MCP servers: their tools join it with the next compaction (/compact) or /clear."
)
_SCALED = ("listed_characters", "description_characters", "instructions_characters", "restore_characters")
"""Settings that shrink with the window."""


def open_servers(
    parts: SessionParts, emit: Callable[[Event], None], given: Mapping[str, object] | None = None
) -> McpServers | None:
    """Returns the servers of this folder and those that an editor gives, not started yet; None if there are none, or
    none may be used."""
    settings = parts.settings
    if settings.session.bare or not settings.mcp.enabled or not parts.flags.on("mcp"):
        return None
    if not given and not may_have_servers(parts.places, settings):
        return None
    from reverie.tools.mcp.config import find_servers
    from reverie.tools.mcp.servers import LONGEST_LOAD, McpServers

    found = find_servers(parts.places, settings, given or {})
    for problem in found.problems:
        emit(Notice(problem, "warning", "mcp"))
    if not found.servers:
        return None
    window = parts.limits.window
    smaller = {f"mcp.{name}": max(1, scaled(getattr(settings.mcp, name), window)) for name in _SCALED}
    return McpServers(
        found.servers,
        parts.places,
        with_values(settings, smaller),
        lambda: parts.flags.on("mcp"),
        longest_load=scaled(LONGEST_LOAD, window),
    )


def may_have_servers(places: Places, settings: Settings) -> bool:
    """Whether there is a file with servers. Most folders have none, and then nothing is loaded."""
    return (places.home / "mcp.json").exists() or (settings.mcp.project and (places.checkout / ".mcp.json").exists())


@dataclass(eq=False)
class SessionMcp(Companion):
    """The MCP servers of one session. Another session in this process may share them."""

    parts: SessionParts
    gate: PermissionGate
    emit: Callable[[Event], None]
    interactive: bool
    tools: Sequence[Tool]
    servers: McpServers | None = field(default=None, init=False)
    _is_owner: bool = field(default=False, init=False)
    _is_first: bool = field(default=True, init=False)
    _has_news: bool = field(default=False, init=False)
    _shown: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]], init=False)

    def __post_init__(self) -> None:
        caller = next((tool for tool in self.tools if tool.name == CALL_TOOL), None)
        self.servers = getattr(caller, "servers", None)
        if self.servers is not None and not self.servers.owned:
            self._is_owner = self.servers.owned = True
            self.servers.tell = lambda text: self.emit(Notice(text, "warning", "mcp"))
            self.servers.changed = self._changed

    def start(self) -> None:
        """Starts the servers in the background, once."""
        if self.servers is not None and self._is_owner:
            self.servers.start()

    async def new_reminders(self, view: View) -> list[TextBlock]:
        """Returns what the model does not know yet. The first message waits a moment for servers that are starting.

        Where nobody sits at the keyboard it waits longer: the first message may be the only one.
        """
        if self.servers is None:
            return []
        self.start()
        if not self._has_tools(view):
            self._tell_later()
            return []
        if self._is_first:
            self._is_first, limits = False, self.parts.settings.mcp
            await self.servers.settled(limits.first_wait_s if self.interactive else limits.start_s + _LOADING_S)
        return self._announce(view)

    def _tell_later(self) -> None:
        if ("", _LATER) not in self._shown:
            self._shown.add(("", _LATER))
            self.emit(Notice(_LATER, source="mcp"))

    async def between_rounds(self) -> Sequence[Block]:
        """Tells the model about tools that appeared or changed while it works."""
        return self._announce(self.parts.log.view) if self._has_news else ()

    def _has_tools(self, view: View) -> bool:
        """Whether the conversation began with the tools that load and call; else they come with a new prefix."""
        return view.header is None or any(tool.get("name") == CALL_TOOL for tool in view.header.tools)

    def _announce(self, view: View) -> list[TextBlock]:
        if self.servers is None or not self._has_tools(view):
            return []
        from reverie.tools.mcp.announcements import announce

        self._has_news = False
        return announce(self.servers, view, self.servers.settings.mcp)

    def attachments(self) -> list[TextBlock]:
        """Returns the lists and the loaded definitions, for the context after a compaction."""
        if self.servers is None:
            return []
        from reverie.tools.mcp.announcements import restore

        return restore(list(self.servers), self.parts.log.view, self.servers.settings.mcp)

    def listed(self) -> list[TextBlock]:
        """Returns the lists alone, for an agent with a context of its own."""
        if self.servers is None:
            return []
        from reverie.tools.mcp.announcements import announce

        return announce(self.servers, View(), self.servers.settings.mcp)

    def discovered(self) -> tuple[str, ...]:
        """Returns the names of the tools whose definitions the model has loaded."""
        if self.servers is None:
            return ()
        from reverie.tools.mcp.announcements import loaded

        return tuple(sorted(loaded(self.parts.log.view)))

    async def close(self) -> None:
        if self.servers is not None and self._is_owner:
            await self.servers.close()

    def _changed(self, server: McpServer) -> None:
        self._has_news = True
        if self.servers is None or not server.listed:
            return
        for tool, before in self.servers.changed_since_allowed(server):
            ended = self.gate.drop_rule(tool.name)
            if (tool.name, tool.digest) in self._shown:
                continue
            self._shown.add((tool.name, tool.digest))
            then = "You are asked again before it runs." if ended else "Look at it before you allow it again."
            same = "Its input has changed, its description has not." if before == tool.description else ""
            texts = f"Before: {before[:_SHOWN]!r} Now: {tool.description[:_SHOWN]!r}"
            self.emit(
                Notice(
                    f"MCP server {server.name} has changed the tool {tool.name}, which you have allowed before. "
                    f"{same or texts} {then}",
                    "warning",
                    "mcp",
                )
            )
