"""The agents in this process: the main agent and everyone it started, each with a name, an inbox and a parent.

A message to an agent here goes into its inbox and is read at the end of its tool round. It starts no agent.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING

from reverie.errors import UserError
from reverie.quick import dataclass

if TYPE_CHECKING:
    from reverie.agents.messages.message import AgentMessage

MAIN = "main"  # the name of the agent that the user talks to
EVERYONE = "*"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class AgentMode(StrEnum):
    """How an agent was started. This decides its context, prompt and cache, and whether it may start others."""

    MAIN = "main"
    SUB_AGENT = "sub-agent"
    FORK = "fork"
    WORKER = "worker"
    TEAMMATE = "teammate"
    SIDE_QUESTION = "side-question"


class MemberState(StrEnum):
    """What a member is doing. Members that have ended are not in the roster."""

    RUNNING = "running"
    IDLE = "idle"


class AgentInbox:
    """Messages that wait for one agent. `arrived` is set while there are any."""

    def __init__(self) -> None:
        self._messages: list[AgentMessage] = []
        self.arrived = asyncio.Event()

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[AgentMessage]:
        return iter(tuple(self._messages))

    def put(self, message: AgentMessage) -> None:
        self._messages.append(message)
        self.arrived.set()

    def drain(self) -> list[AgentMessage]:
        """Removes and returns all messages, oldest first."""
        messages, self._messages = self._messages, []
        self.arrived.clear()
        return messages


@dataclass(slots=True, eq=False)
class Member:
    """An agent that can receive messages. `step` is its last tool call, `summary` says what it does, in a few words."""

    name: str
    id: str
    mode: AgentMode
    inbox: AgentInbox = field(default_factory=AgentInbox)
    parent: str | None = None
    state: MemberState = MemberState.RUNNING
    title: str = ""
    kind: str = ""
    step: str = ""
    summary: str = ""

    @property
    def doing(self) -> str:
        return self.summary or self.step


class Roster:
    def __init__(self) -> None:
        self._members: dict[str, Member] = {}

    def __iter__(self) -> Iterator[Member]:
        return iter(tuple(self._members.values()))

    def names(self) -> list[str]:
        return [member.name for member in self]

    def find(self, name_or_id: str) -> Member | None:
        """Finds a member by name, else by id."""
        by_name = next((member for member in self if member.name == name_or_id), None)
        return by_name or self._members.get(name_or_id)

    def add(self, member: Member) -> Member:
        """Adds a member. Raises UserError if the name is not valid or is taken."""
        if (reason := self.why_not(member.name)) is not None:
            raise UserError(reason)
        if member.id in self._members:
            raise UserError(f"an agent with the id {member.id} exists already")
        self._members[member.id] = member
        return member

    def remove(self, id: str) -> None:
        self._members.pop(id, None)

    def why_not(self, name: str) -> str | None:
        """Why this name cannot be given now; None if it can."""
        if not _NAME.fullmatch(name):
            return f"{name[:80]!r} is not a valid agent name: use letters, digits, '-', '_' and '.', at most 64"
        if any(name in (member.name, member.id) for member in self):
            return f"an agent called {name} exists already: choose another name"
        return None

    def free_name(self, wanted: str) -> str:
        """Returns a similar name that is free."""
        base = re.sub(r"[^A-Za-z0-9._-]+", "-", wanted).strip("-._")[:56] or "agent"
        name, number = base, 2
        while self.why_not(name) is not None:
            name, number = f"{base}-{number}", number + 1
        return name

    def children(self, id: str) -> list[Member]:
        """The members that this one started and that are still here."""
        return [member for member in self if member.parent == id]

    def depth(self, id: str) -> int:
        """How many agents are above this one: 0 for the main agent."""
        member, depth = self._members.get(id), 0
        while member is not None and member.parent is not None and depth < len(self._members):
            member, depth = self._members.get(member.parent), depth + 1
        return depth
