"""The tool with which agents without a file tool read kept results back, in the form of each API."""

from __future__ import annotations

from typing import Any

from reverie.layers.l1_tool_results.replacement import READ_TOOL

__all__ = ["READ_ABOUT", "READ_TOOL", "read_tool"]

READ_ABOUT = (
    "Reads a tool result that was too large for the conversation and is kept in a file. "
    "Give the path that is shown in its place; continue with `offset` if there is more."
)
_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "The path of the kept result"},
        "offset": {"type": "integer", "description": "The character to begin at", "minimum": 0},
    },
    "required": ["path"],
    "additionalProperties": False,
}


def read_tool(wire: str) -> dict[str, Any]:
    """The definition for one API: messages, chat or responses."""
    told = {"name": READ_TOOL, "description": READ_ABOUT}
    if wire == "messages":
        return {**told, "input_schema": _SCHEMA}
    if wire == "chat":
        return {"type": "function", "function": {**told, "parameters": _SCHEMA}}
    return {"type": "function", **told, "parameters": _SCHEMA}
