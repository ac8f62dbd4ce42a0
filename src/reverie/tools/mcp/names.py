"""The names of MCP tools for the model: `mcp__server__tool`, within the limits of all APIs.

A name depends only on its server and tool, so it is the same in every session. A name that had to be changed ends in a
digest of the original, and so does one that only looks like that: two tools or servers never share a name.
"""

from __future__ import annotations

import hashlib

from reverie.text.patterns import late
from reverie.tools.base import BEHIND

LONGEST = 64
_LONGEST_SERVER = 24
_OTHER = late(r"[^A-Za-z0-9_-]")
_SEVERAL = late(r"_{2,}")
_DIGEST = 6
_LOOKS_MARKED = late(r"_[0-9a-f]{6}\Z")


def clean_server(name: str) -> str:
    """Returns the server's part of a name. It has no double underscore and none at its ends: `__` follows it."""
    made = _SEVERAL.sub("_", _OTHER.sub("_", name)).strip("_")
    return made if _is_plain(made, name, _LONGEST_SERVER) else _mark(made or "server", name, _LONGEST_SERVER)


def make_name(server: str, tool: str) -> str:
    """Returns the name of a tool for the model."""
    start = f"{BEHIND}{clean_server(server)}__"
    made = _OTHER.sub("_", tool)
    room = LONGEST - len(start)
    return start + (made if _is_plain(made, tool, room) else _mark(made or "tool", tool, room))


def server_rule(server: str) -> str:
    """Returns the permission rule for all tools of a server."""
    return BEHIND + clean_server(server)


def _is_plain(made: str, original: str, room: int) -> bool:
    return made == original and 0 < len(made) <= room and _LOOKS_MARKED.search(made) is None


def _mark(made: str, original: str, room: int) -> str:
    digest = hashlib.sha256(original.encode("utf-8", "replace")).hexdigest()[:_DIGEST]
    start = made[: room - _DIGEST - 1].rstrip("_")
    return f"{start}_{digest}"
