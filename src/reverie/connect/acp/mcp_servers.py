"""The MCP servers that an editor names in `session/new`, in the form of `.mcp.json`. They are the user's own."""

from __future__ import annotations

from collections.abc import Sequence

from acp import schema

from reverie.types import JsonObject


def server_entries(given: Sequence[object] | None) -> dict[str, object]:
    """The servers by name. A kind that we do not know is left out: its entry would start nothing."""
    found = dict[str, object]()
    for one in given or ():
        match one:
            case schema.McpServerStdio():
                found[one.name] = {"command": one.command, "args": list(one.args), "env": _table(one.env)}
            case schema.HttpMcpServer() | schema.SseMcpServer():
                found[one.name] = {"type": one.type, "url": one.url, "headers": _table(one.headers)}
            case _:
                pass
    return found


def _table(pairs: Sequence[schema.EnvVariable] | Sequence[schema.HttpHeader]) -> JsonObject:
    return {pair.name: pair.value for pair in pairs}
