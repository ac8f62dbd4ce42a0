"""SendMessage: writes to another agent, wherever it runs. The session's post finds the way; this only hands it over.

The schema is the same bytes in every session, whoever is there: who can be written to is told elsewhere, and a wrong
name is an error that lists the right ones.
"""

from __future__ import annotations

import json

from reverie.tools.base import BuiltIn, ToolContext, ToolOutput
from reverie.types import JsonObject

_PROPERTIES: JsonObject = {
    "to": {"type": "string", "description": "Who it is for: a name, *, a session's id, or uds:<path>"},
    "message": {"type": ["string", "object"], "description": "The message, or one of the few structured ones"},
    "summary": {"type": "string", "description": "What it is about, in five to ten words"},
}


class SendMessage(BuiltIn, prompt="send_message.md", properties=_PROPERTIES, required=["to", "message"]):
    """The SendMessage tool. It needs a context with a post."""

    async def run(self, given: JsonObject, context: ToolContext) -> ToolOutput:
        if context.post is None:
            return ToolOutput("Nobody can be written to from here: there are no other agents.", is_error=True)
        message = given["message"]
        text = message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)
        if not text.strip():
            return ToolOutput("The message is empty: write what the reader needs to know.", is_error=True)
        return ToolOutput(await context.post(context.caller, given["to"], text, given.get("summary", "")))
