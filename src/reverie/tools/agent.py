"""Agent starts another agent with a task and returns its report; SendMessage writes to an agent.

The session decides what is started, and with which limits. The schemas are the same bytes in every session: a reminder
lists the kinds of agents and their names, and a wrong name is an error that lists the right ones.
"""

from __future__ import annotations

import json

from reverie.errors import UserError
from reverie.tools.base import AgentOrder, BuiltIn, ToolContext, ToolOutput
from reverie.types import JsonObject

_AGENT_PROPERTIES: JsonObject = {
    "description": {"type": "string", "description": "The purpose, in three to five words"},
    "prompt": {"type": "string", "description": "The complete task, and what to report"},
    "subagent_type": {"type": "string", "description": "The kind of agent; if missing: a fork of yourself"},
    "name": {"type": "string", "description": "The name to use for messages to it"},
    "run_in_background": {"type": "boolean", "description": "Continue meanwhile; the result arrives as a message"},
    "isolation": {"type": "string", "enum": ["worktree"], "description": "Give the agent its own git worktree"},
    "teammate": {"type": "boolean", "description": "It stays after its task and waits for messages"},
    "model": {"type": "string", "description": "A different model"},
}


class Agent(BuiltIn, prompt="agent.md", properties=_AGENT_PROPERTIES, required=["description", "prompt"]):
    """The Agent tool."""

    def is_read_only(self, given: JsonObject) -> bool:
        """A new agent changes nothing by itself, and each of its calls is checked; a new worktree is a change."""
        return given.get("isolation") is None

    async def _run(self, given: JsonObject, context: ToolContext) -> ToolOutput:
        if context.spawn is None:
            raise UserError("Agents cannot be started here: do the work yourself.")
        if not given["prompt"].strip():
            raise UserError("The prompt is empty: describe the task of the agent.")
        return await context.spawn(read_order(given))


def read_order(given: JsonObject) -> AgentOrder:
    """Reads the input of a call. Empty texts count as missing."""
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
    "to": {"type": "string", "description": "The recipient: a name, *, the id of a session, or uds:<path>"},
    "message": {"type": ["string", "object"], "description": "The text, or one of the few structured messages"},
    "summary": {"type": "string", "description": "The topic, in five to ten words"},
}


class SendMessage(BuiltIn, prompt="send_message.md", properties=_MESSAGE_PROPERTIES, required=["to", "message"]):
    """The SendMessage tool."""

    async def _run(self, given: JsonObject, context: ToolContext) -> ToolOutput:
        if context.post is None:
            raise UserError("There are no other agents to write to.")
        message = given["message"]
        text = message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)
        if not text.strip():
            raise UserError("The message is empty: write what the reader needs to know.")
        return ToolOutput(await context.post(context.caller, given["to"], text, given.get("summary", "")))
