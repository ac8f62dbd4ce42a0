"""Agent starts another agent with a task, and returns what it found; SendMessage writes to one, wherever it runs.

Both only ask: whoever the tool context belongs to decides what is started, within which limits, and its post finds the
way. Their schemas are the same bytes in every session: which kinds of agents a project defines, and who can be written
to, is told beside the conversation, and a wrong name is an error that lists the right ones.
"""

from __future__ import annotations

import json

from reverie.tools.base import AgentOrder, BuiltIn, ToolContext, ToolOutput
from reverie.types import JsonObject

_AGENT_PROPERTIES: JsonObject = {
    "description": {"type": "string", "description": "What it is for, in three to five words"},
    "prompt": {"type": "string", "description": "The task, complete, and what to report"},
    "subagent_type": {"type": "string", "description": "The kind of agent; left out: a fork of yourself"},
    "name": {"type": "string", "description": "What it is called, for messages to it"},
    "run_in_background": {"type": "boolean", "description": "Go on meanwhile; the result arrives as a message"},
    "isolation": {"type": "string", "enum": ["worktree"], "description": "Work in a git work tree of its own"},
    "teammate": {"type": "boolean", "description": "It stays after its task and waits for messages"},
    "model": {"type": "string", "description": "Another model than yours"},
}
UNAVAILABLE = "Agents cannot be started here: do the work yourself."


class Agent(BuiltIn, prompt="agent.md", properties=_AGENT_PROPERTIES, required=["description", "prompt"]):
    """The Agent tool."""

    def is_read_only(self, given: JsonObject) -> bool:
        """Starting an agent changes nothing by itself, and each of its calls is judged; a work tree is a change."""
        return given.get("isolation") is None

    async def run(self, given: JsonObject, context: ToolContext) -> ToolOutput:
        if context.spawn is None:
            return ToolOutput(UNAVAILABLE, is_error=True)
        if not given["prompt"].strip():
            return ToolOutput("The prompt is empty: say what the agent is to do.", is_error=True)
        return await context.spawn(read_order(given))


def read_order(given: JsonObject) -> AgentOrder:
    """What a call of the tool asks for. Empty texts count as left out."""
    return AgentOrder(
        description=" ".join(given["description"].split()) or "a task",
        prompt=given["prompt"],
        kind=(given.get("subagent_type") or "").strip() or None,
        name=(given.get("name") or "").strip() or None,
        background=given.get("run_in_background"),
        isolated=given.get("isolation") == "worktree",
        teammate=bool(given.get("teammate")),
        model=(given.get("model") or "").strip() or None,
    )


_MESSAGE_PROPERTIES: JsonObject = {
    "to": {"type": "string", "description": "Who it is for: a name, *, a session's id, or uds:<path>"},
    "message": {"type": ["string", "object"], "description": "The message, or one of the few structured ones"},
    "summary": {"type": "string", "description": "What it is about, in five to ten words"},
}


class SendMessage(BuiltIn, prompt="send_message.md", properties=_MESSAGE_PROPERTIES, required=["to", "message"]):
    """The SendMessage tool. It needs a context with a post."""

    async def run(self, given: JsonObject, context: ToolContext) -> ToolOutput:
        if context.post is None:
            return ToolOutput("Nobody can be written to from here: there are no other agents.", is_error=True)
        message = given["message"]
        text = message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)
        if not text.strip():
            return ToolOutput("The message is empty: write what the reader needs to know.", is_error=True)
        return ToolOutput(await context.post(context.caller, given["to"], text, given.get("summary", "")))
