"""LoadTools, CallTool, and a tool per definition of a server.

Only the first two are in the tools of a request: their bytes never change, so the cached prefix does not depend on what
servers list. A call of CallTool is a call of the tool that it names: permissions, hooks and limits see that name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from reverie.errors import UserError
from reverie.quick import dataclass
from reverie.tools.base import BuiltIn, Tool, ToolContext, ToolOutput
from reverie.tools.mcp.definitions import ToolDefinition, find_tools, join_definitions
from reverie.tools.mcp.server import McpServer, ServerState
from reverie.types import JsonObject

if TYPE_CHECKING:
    from reverie.tools.mcp.servers import McpServers

LOAD, CALL = "LoadTools", "CallTool"
_MOST_FOUND = 8
_LOAD_PROPERTIES: JsonObject = {
    "names": {"type": "array", "items": {"type": "string"}, "description": "Full names of tools"},
    "query": {"type": "string", "description": "Words to search for"},
}
_CALL_PROPERTIES: JsonObject = {
    "tool": {"type": "string", "description": "The full name of the tool"},
    "input": {"type": "object", "description": "The input of the tool"},
}


@dataclass(frozen=True, slots=True)
class McpTool:
    """One tool of a server, under its full name."""

    server: McpServer
    definition: ToolDefinition
    ran: Callable[[McpServer, ToolDefinition], None]

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def schema(self) -> JsonObject:
        made = self.definition
        return {"name": made.name, "description": made.description, "input_schema": made.schema}

    def is_read_only(self, given: JsonObject) -> bool:
        """Nobody can know it: what a server says about itself decides nothing."""
        del given
        return False

    async def run(self, given: JsonObject, context: ToolContext) -> ToolOutput:
        from reverie.tools.mcp.results import make_output

        self.ran(self.server, self.definition)  # before: also a call that fails was allowed for this definition
        result = await self.server.call(self.definition, given, context.progress)
        return make_output(result, context.keep_dir)


@dataclass(frozen=True)
class LoadTools(BuiltIn, prompt="load_tools.md", properties=_LOAD_PROPERTIES, required=[], reads_only=True):
    """The LoadTools tool."""

    servers: McpServers

    async def _run(self, given: JsonObject, context: ToolContext) -> ToolOutput:
        del context
        names, query = list[str](given.get("names") or []), str(given.get("query") or "")
        if not names and not query.strip():
            raise UserError("Give the names of tools, or a query.")
        await self.servers.wait_for(names)
        wanted = dict.fromkeys(names)
        known = self.servers.definitions()
        found = [known[name] for name in wanted if name in known]
        missing = [name for name in wanted if name not in known]
        if query.strip():
            found += [tool for tool in find_tools(query, known.values(), _MOST_FOUND) if tool.name not in wanted]
        if not found:
            raise UserError(self._explain_missing(missing, query))
        text, left = join_definitions([tool.text() for tool in found], self.servers.longest_load)
        if left:
            text += f"\n\n({len(left)} more did not fit: load them with another call.)"
        if missing:
            text += f"\n\n({self._explain_missing(missing, '')})"
        return ToolOutput(text)

    def _explain_missing(self, missing: Sequence[str], query: str) -> str:
        what = f"There is no tool named {', '.join(missing)[:500]}" if missing else f"No tool fits {query[:200]!r}"
        down = [f"{one.name} ({one.problem or one.state.value})" for one in self.servers if one.state in _DOWN]
        return f"{what}. Servers that do not run: {', '.join(down)}." if down else f"{what}."


_DOWN = (ServerState.FAILED, ServerState.WAITING, ServerState.STARTING)


@dataclass(frozen=True)
class CallTool(BuiltIn, prompt="call_tool.md", properties=_CALL_PROPERTIES, required=["tool"]):
    """The CallTool tool. `find` gives the tool behind it; it runs nothing itself."""

    servers: McpServers

    def find(self, name: str) -> Tool | None:
        return self.servers.find(name)

    async def _run(self, given: JsonObject, context: ToolContext) -> ToolOutput:
        del context
        await self.servers.wait_for([str(given.get("tool"))])
        if self.find(str(given.get("tool"))) is not None:
            raise UserError(f"{given['tool']} has just become available: call it again.")
        raise UserError(
            f"There is no tool named {str(given.get('tool'))[:200]!r} of an MCP server. LoadTools finds tools."
        )
