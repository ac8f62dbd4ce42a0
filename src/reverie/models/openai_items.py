"""What OpenAI's two APIs have in common with ours: kinds of items, tools, usage and reasons to stop. Pure.

The simulator reads requests with it, our adapter reads responses, and the library reads both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reverie.models.wire import as_object
from reverie.types import JsonObject, Usage

CALLS = {"function_call": "arguments", "custom_tool_call": "input", "local_shell_call": "action"}
"""The items of the Responses API that call a tool, each with the field for its input."""
RESULTS = {f"{kind}_output": kind for kind in CALLS}
"""The items that answer a call, each with the kind of call."""
STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
    "max_output_tokens": "max_tokens",
}
_FREE_FORM = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


def chat_tool(tool: Mapping[str, Any]) -> JsonObject:
    """A tool of a chat request in the form of the Messages API."""
    return _tool(tool.get("function") or tool.get("custom") or tool, tool.get("type"))


def responses_tool(tool: Mapping[str, Any]) -> JsonObject:
    """A tool of the Responses API in the form of the Messages API; one of the server has its type."""
    made = _tool(tool, tool.get("type"))
    return made if tool.get("type") in ("function", "custom") else {**made, "type": tool.get("type")}


def _tool(given: Mapping[str, Any], kind: object) -> JsonObject:
    schema = _FREE_FORM if kind == "custom" else given.get("parameters")
    return {"name": given.get("name") or kind, "description": given.get("description"), "input_schema": schema}


def read_usage(raw: JsonObject) -> Usage | None:
    """The usage in our form, where the input tokens do not include the cached ones."""
    prompt = raw.get("prompt_tokens", raw.get("input_tokens"))
    if not isinstance(prompt, int):
        return None
    details = as_object(raw.get("prompt_tokens_details") or raw.get("input_tokens_details"))
    cached = details.get("cached_tokens") or raw.get("prompt_cache_hit_tokens") or 0
    cached = min(prompt, cached if isinstance(cached, int) else 0)
    output = raw.get("completion_tokens", raw.get("output_tokens"))
    return Usage(prompt - cached, output if isinstance(output, int) else 0, cache_read_input_tokens=cached)
