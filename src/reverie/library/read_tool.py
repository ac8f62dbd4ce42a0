"""The tool with which agents without a file tool read kept results back, in the form of each API."""

from __future__ import annotations

from typing import Any

from reverie.layers.l1_tool_results.replacement import READ_TOOL

__all__ = ["READ_ABOUT", "READ_TOOL", "read_tool"]

READ_ABOUT = "Reads a tool result that is kept in a file: give its path, and `offset` (in characters) to read on."


def read_tool(wire: str, *, key: str = "path", about: str = READ_ABOUT) -> dict[str, Any]:
    """The definition for one API: messages, chat or responses. `key` names what is read. Short, because it is in every
    request."""
    told = {"name": READ_TOOL, "description": about}
    schema = {
        "type": "object",
        "properties": {key: {"type": "string"}, "offset": {"type": "integer"}},
        "required": [key],
    }
    if wire == "messages":
        return {**told, "input_schema": schema}
    if wire == "chat":
        return {"type": "function", "function": {**told, "parameters": schema}}
    return {"type": "function", **told, "parameters": schema}
