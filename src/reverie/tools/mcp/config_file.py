"""Adds servers to a file with MCP servers and removes them. Everything else in the file stays.

The file is written as a whole; the user's own file is private, because entries may hold keys.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from reverie.errors import UserError
from reverie.settings.claude_files import JsonFile
from reverie.storage.atomic import make_private_dir, write_atomic
from reverie.storage.locks import exclusive
from reverie.tools.mcp.config import ServerConfig, parse_server
from reverie.types import JsonObject

_WAIT_S = 10.0


def add_server(path: Path, name: str, entry: JsonObject, home: Path) -> None:
    """Adds an entry. Raises UserError if the name is taken or the entry has a mistake."""
    if not name.strip() or name != name.strip():
        raise UserError("The name of a server must not be empty or begin or end with a space.")
    # Variables may be missing now: they are filled in when the server starts.
    parse_server(ServerConfig(name, path, path.parent, written=entry), _AnyVariable())

    def change(servers: JsonObject) -> None:
        if name in servers:
            raise UserError(f"{path} already has a server {name!r}. Remove it first: `reverie mcp remove {name}`.")
        servers[name] = entry

    _change(path, change, home)


def remove_server(path: Path, name: str, home: Path) -> None:
    """Removes an entry. Raises UserError if there is none."""

    def change(servers: JsonObject) -> None:
        if servers.pop(name, None) is None:
            known = f"; there are: {', '.join(servers)}." if servers else ", and no other."
            raise UserError(f"{path} has no server {name!r}{known}")

    _change(path, change, home)


def _change(path: Path, change: Callable[[JsonObject], None], home: Path) -> None:
    make_private_dir(home)
    with exclusive(home / ".mcp.json.lock", timeout_s=_WAIT_S, what=f"The file {path}"):
        file = JsonFile.read(path) or JsonFile(path)
        if file.problem:
            raise UserError(f"Nothing was changed. {file.problem}")
        data = dict(file.data)
        servers: object = data.get("mcpServers", {})
        if not isinstance(servers, dict):
            raise UserError(f"Nothing was changed. {path}: `mcpServers` is not an object.")
        entries = dict(cast("dict[str, Any]", servers))
        change(entries)
        data["mcpServers"] = entries
        text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
        write_atomic(path, text.encode("utf-8", "surrogatepass"), mode=0o600 if path.parent == home else 0o644)


class _AnyVariable(dict[str, str]):
    """An environment in which every variable is set."""

    def get(self, key: str, default: Any = None) -> Any:
        return default or f"${{{key}}}"
