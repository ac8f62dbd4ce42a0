"""A side question: asked about the conversation as it stands, answered beside it, and forgotten.

It sees everything the agent sees, has one round, and every call it makes is denied. It writes no cache entry, leaves no
record but what it cost, and may be asked while a turn is running.
"""

from __future__ import annotations

from reverie.agents.fork import ForkPoint
from reverie.agents.messages.in_words import marked_cut_off
from reverie.errors import ReverieError
from reverie.permissions.rules import Decision, Deny, ToolCall
from reverie.prompts import render
from reverie.types import Purpose

DENIED = "A side question is answered from what is known, without tools."


async def ask_aside(point: ForkPoint, question: str) -> str:
    """The answer. Raises what a model raises, and ReverieError where it gave none."""

    async def deny(_call: ToolCall) -> Decision:
        return Deny(DENIED)

    directive, asked = render("reverie.agents", "side_question.md"), question.strip()
    result = await point.run(directive, purpose=Purpose.SIDE_QUESTION, permission=deny, max_rounds=1, question=asked)
    if result.text.strip():
        return marked_cut_off(result.text) if result.reason == "cut_off" else result.text
    if result.denied:
        raise ReverieError("The answer would need tools, and a side question has none: ask it as a message.")
    raise ReverieError("There was no answer to the side question.")
