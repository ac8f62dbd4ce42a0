"""Remembers the definitions of MCP tools that the user let run: `<home>/mcp-tools.json`, private.

A server may change what a tool does after the user allowed it. So a permission belongs to a definition, and a new one
is asked for again. Only the newest definition of a tool is kept.
"""

from __future__ import annotations

import json
from dataclasses import field
from pathlib import Path
from typing import Any, cast

from reverie.errors import StorageError
from reverie.parsing import load_json
from reverie.quick import dataclass
from reverie.regular_files import read_regular
from reverie.storage.atomic import make_private_dir, write_atomic
from reverie.storage.locks import exclusive
from reverie.tools.mcp.definitions import ToolDefinition

FILE = "mcp-tools.json"
_WAIT_S = 2.0
_MOST_SERVERS = 200


@dataclass(frozen=True, slots=True)
class ApprovedTool:
    digest: str
    description: str


@dataclass(slots=True)
class ApprovedTools:
    """The definitions by the id of a server's entry and the server's own name of the tool."""

    home: Path
    _known: dict[str, dict[str, ApprovedTool]] | None = field(default=None, init=False)

    def get(self, server: str, tool: str) -> ApprovedTool | None:
        if self._known is None:
            self._known = self._read()
        return self._known.get(server, {}).get(tool)

    def note(self, server: str, tool: ToolDefinition) -> str | None:
        """Keeps the definition, if it is new; returns a problem with the file."""
        made = ApprovedTool(tool.digest, tool.description)
        if self.get(server, tool.raw) == made:
            return None
        try:
            make_private_dir(self.home)
            with exclusive(self.home / f".{FILE}.lock", timeout_s=_WAIT_S, what="The list of MCP tools"):
                known = self._read()
                tools = {**known.pop(server, {}), tool.raw: made}
                self._known = dict([*known.items(), (server, tools)][-_MOST_SERVERS:])
                write_atomic(self.home / FILE, self._to_json(self._known))
        except StorageError as error:
            self._known = {**(self._known or {}), server: {**(self._known or {}).get(server, {}), tool.raw: made}}
            return f"its tools cannot be remembered ({str(error).rstrip('.')})"
        return None

    def _read(self) -> dict[str, dict[str, ApprovedTool]]:
        """A missing or damaged file counts as empty: then nothing is known to have changed."""
        try:
            data = cast("dict[str, dict[str, dict[str, Any]]]", load_json(read_regular(self.home / FILE)))
            return {
                server: {tool: ApprovedTool(str(one["digest"]), str(one["description"])) for tool, one in tools.items()}
                for server, tools in data.items()
            }
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}

    @staticmethod
    def _to_json(known: dict[str, dict[str, ApprovedTool]]) -> bytes:
        data = {
            server: {tool: {"digest": one.digest, "description": one.description} for tool, one in tools.items()}
            for server, tools in known.items()
        }
        return (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "replace")
