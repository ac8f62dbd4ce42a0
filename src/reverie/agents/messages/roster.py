"""Who lives in this process: the main agent and everyone it started, each with a name, an inbox and a parent.

A message to a name in this process is put into an inbox here and read at the end of the reader's tool round. One event
loop, no locks. It starts and stops nobody: it only knows who there is.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from reverie.errors import UserError

if TYPE_CHECKING:
    from reverie.agents.messages.message import AgentMessage

MAIN = "main"
"""The name of the agent a person talks to."""
EVERYONE = "*"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class AgentMode(StrEnum):
    """How an agent came to be, which decides its context, its prompt, its cache and whether it may start others."""

    MAIN = "main"
    SUB_AGENT = "sub-agent"
    FORK = "fork"
    WORKER = "worker"
    TEAMMATE = "teammate"
    SIDE_QUESTION = "side-question"


class MemberState(StrEnum):
    """What a member is doing. A member that is over is no longer in the roster."""

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
        """Adds a message; the order of each sender is kept."""
        self._messages.append(message)
        self.arrived.set()

    def drain(self) -> list[AgentMessage]:
        """Takes all messages out, oldest first."""
        messages, self._messages = self._messages, []
        self.arrived.clear()
        return messages


@dataclass(slots=True, eq=False)
class Member:
    """Somebody who can be written to. `parent` is the id of who started it; `step` is its last call.

    `summary` says in a few words what it is at; it holds until the next look, whatever is called meanwhile.
    """

    name: str
    id: str
    mode: AgentMode
    inbox: AgentInbox = field(default_factory=AgentInbox)
    parent: str | None = None
    state: MemberState = MemberState.RUNNING
    title: str = ""
    step: str = ""
    summary: str = ""

    @property
    def doing(self) -> str:
        """What it was last seen at."""
        return self.summary or self.step


class Roster:
    """The members of one process."""

    def __init__(self) -> None:
        self._members: dict[str, Member] = {}

    def __iter__(self) -> Iterator[Member]:
        return iter(tuple(self._members.values()))

    def names(self) -> list[str]:
        """Everyone's name, in the order they came."""
        return [member.name for member in self]

    def find(self, name_or_id: str) -> Member | None:
        """The member with this name, else with this id."""
        by_name = next((member for member in self if member.name == name_or_id), None)
        return by_name or self._members.get(name_or_id)

    def add(self, member: Member) -> Member:
        """Takes somebody in. Raises UserError for a name that is no name, or is taken."""
        if (reason := self.why_not(member.name)) is not None:
            raise UserError(reason)
        if member.id in self._members:
            raise UserError(f"there is an agent with the id {member.id} already")
        self._members[member.id] = member
        return member

    def remove(self, id: str) -> None:
        """Takes somebody out; one who is not there is no error."""
        self._members.pop(id, None)

    def why_not(self, name: str) -> str | None:
        """Why nobody can be given this name now, if so."""
        if not _NAME.fullmatch(name):
            return f"{name[:80]!r} is no name for an agent: messages, digits, '-', '_' and '.', at most 64"
        if any(name in (member.name, member.id) for member in self):
            return f"there is an agent called {name} already: choose another name"
        return None

    def free_name(self, wanted: str) -> str:
        """A name like this one that nobody has."""
        base = re.sub(r"[^A-Za-z0-9._-]+", "-", wanted).strip("-._")[:56] or "agent"
        name, number = base, 2
        while self.why_not(name) is not None:
            name, number = f"{base}-{number}", number + 1
        return name

    def children(self, id: str) -> list[Member]:
        """Those this one started that are still here."""
        return [member for member in self if member.parent == id]

    def depth(self, id: str) -> int:
        """How many stand above this one: 0 for the main agent."""
        member, depth = self._members.get(id), 0
        while member is not None and member.parent is not None and depth < len(self._members):
            member, depth = self._members.get(member.parent), depth + 1
        return depth
