"""What an agent asks for when it wants another one started. Plain data between the Agent tool and whoever starts it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AgentOrder:
    """One call of the Agent tool. What is None was left to whoever starts the agent."""

    description: str
    """What it is for, in a few words a person reads."""
    prompt: str
    kind: str | None = None
    """One of the kinds that are defined; None: whatever the session makes of an agent without a kind."""
    name: str | None = None
    background: bool | None = None
    isolated: bool = False
    """In a work tree of its own."""
    teammate: bool = False
    model: str | None = None
