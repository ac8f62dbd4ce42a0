"""The tool with which agents without a file tool read kept results back, in the form of each API."""

from __future__ import annotations

from typing import Any

from reverie.layers.l1_tool_results.replacement import READ_TOOL

__all__ = ["READ_ABOUT", "READ_TOOL", "read_tool"]

READ_ABOUT = "Reads a tool result that is kept in a file: give its path, and `offset` (in characters) to read on."
_SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "offset": {"type": "integer"}},
    "required": ["path"],
}
"""Short, because it is in every request."""


def read_tool(wire: str) -> dict[str, Any]:
    """The definition for one API: messages, chat or responses."""
    told = {"name": READ_TOOL, "description": READ_ABOUT}
    if wire == "messages":
        return {**told, "input_schema": _SCHEMA}
    if wire == "chat":
        return {"type": "function", "function": {**told, "parameters": _SCHEMA}}
    return {"type": "function", **told, "parameters": _SCHEMA}
