"""Sends messages for everybody in one process: finds the receiver and returns what happened to the message.

The receiver is an agent here, a team member, another session of this user, or everybody; else an error lists them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import field
from pathlib import Path

from reverie.agents.messages.message import AgentMessage, new_message
from reverie.agents.messages.roster import EVERYONE, MAIN, AgentMode, Member, Roster
from reverie.agents.messages.structured import (
    FOR_MODELS,
    PlanApprovalResponse,
    ShutdownRequest,
    ShutdownResponse,
    Structured,
    parse,
    render,
)
from reverie.agents.team.members import Team
from reverie.errors import ReverieError, UserError
from reverie.quick import dataclass
from reverie.runtime.live_client import LiveSession, ask_live, is_own_socket, live_sessions
from reverie.types import JsonObject

BRIDGE = "bridge:"
SOCKET = "uds:"
_SHORTEST_ID = 8
_LONGEST_SUMMARY = 200


@dataclass(slots=True)
class TeamMembership:
    """The team that this process belongs to, its name there, and what it wants to know about sent messages."""

    team: Team
    name: str
    color: str = ""
    sent: Callable[[AgentMessage, Structured | None], None] = field(default=lambda _message, _structured: None)
    complete: Callable[[Structured], Structured] = field(default=lambda structured: structured)
    """Adds what a model does not have to give; raises a UserError if the message makes no sense now."""


@dataclass(slots=True, eq=False)
class Messenger:
    """Sends for everybody in this process. `limit` returns the longest message in characters."""

    roster: Roster
    session_id: str
    projects: Path
    limit: Callable[[], int]
    team: TeamMembership | None = None
    _seen: set[str] = field(default_factory=set[str], init=False)

    async def send(self, sender_id: str | None, to: str, text: str, summary: str = "") -> str:
        """Sends a message of a model and returns what happened. Raises a UserError with the possible receivers."""
        to = to.strip()
        sender = self._sender(sender_id)
        if len(text) > self.limit():
            raise UserError(
                f"The message has {len(text):,} characters and may have {self.limit():,}: "
                "write it to a file and send the file's path."
            )
        structured = self._check_structured(parse(text), sender, to)
        text = text if structured is None else render(structured)
        summary = " ".join(summary.split())[:_LONGEST_SUMMARY]
        self._seen |= set(self.roster.names())
        if to == EVERYONE:
            return await self._everyone(sender, text, summary)
        if to in (sender, sender_id, self.session_id) or (to == MAIN and sender_id is None):
            raise UserError(f"You are {sender} yourself; {self._who(sender)}")
        if to.startswith(BRIDGE):
            raise UserError(f"{to[:80]} is on another machine, and no bridge to other machines is configured.")
        if to.startswith(SOCKET):
            live = await asyncio.to_thread(self._listening_at, to.removeprefix(SOCKET))
            return await self._to_session(live, sender, text, summary)
        if (member := self._here(to)) is not None:
            return self._to_member(member, sender, text, summary)
        if self.team is not None and to in await asyncio.to_thread(self.team.team.names):
            return await self._to_team(to, sender, text, summary, structured)
        if (live := await asyncio.to_thread(self._session, to)) is not None:
            return await self._to_session(live, sender, text, summary)
        if to in self._seen:
            raise UserError(f"{to} has ended; {self._who(sender)}")
        raise UserError(f"There is nobody called {to[:80]!r}; {self._who(sender)}")

    async def tell(self, to: str, message: Structured, summary: str = "") -> None:
        """Sends a structured message of the program to a team member. Raises the same errors as `send`."""
        assert self.team is not None, "structured messages are for teams"
        await self._to_team(to, self.team.name, render(message), summary, message)

    def _to_member(self, member: Member, sender: str, text: str, summary: str) -> str:
        member.inbox.put(new_message(sender, member.name, text, summary=summary))
        return f"Sent to {member.name}, who reads it at the end of its round."

    async def _to_team(self, to: str, sender: str, text: str, summary: str, structured: Structured | None) -> str:
        assert self.team is not None
        team = self.team.team
        message = new_message(sender, to, text, summary=summary, color=self.team.color)
        if not await asyncio.to_thread(team.is_reachable, to):
            raise UserError(f"{to} has ended; {self._who(sender)}")
        await asyncio.to_thread(team.inbox(to).put, message, is_open=lambda: team.is_reachable(to))
        self.team.sent(message, structured)
        return f"Sent to {to}."

    async def _to_session(self, live: LiveSession, sender: str, text: str, summary: str) -> str:
        if live.socket is None:
            raise UserError(f"The session {live.id} is open (PID {live.pid}) but cannot be reached: it has no socket.")
        own = self.session_id if sender == MAIN else f"{sender} of {self.session_id}"
        message = new_message(own, live.id, text, summary=summary)
        request: JsonObject = {
            "do": "message",
            "id": message.id,
            "from": message.sender,
            "text": message.text,
            "summary": message.summary,
        }
        await asyncio.to_thread(ask_live, live.socket, request)
        return f"Sent to the session {live.id}; its answer comes from there, if any."

    async def _everyone(self, sender: str, text: str, summary: str) -> str:
        here = [
            member for member in self.roster if member.name != sender and member.mode is not AgentMode.SIDE_QUESTION
        ]
        for member in here:
            self._to_member(member, sender, text, summary)
        reached, missed = [member.name for member in here], list[str]()
        for name in await self._teammates(sender):
            try:
                await self._to_team(name, sender, text, summary, None)
                reached.append(name)
            except ReverieError as error:  # the others still get it
                missed.append(str(error).partition(";")[0].rstrip("."))
        if not reached:
            raise UserError(f"There is nobody to send it to. {'. '.join(missed)}".strip())
        left_out = f" Not sent: {'; '.join(missed)}." if missed else ""
        return f"Sent to {', '.join(reached)}.{left_out}"

    def _sender(self, sender_id: str | None) -> str:
        if sender_id is None:
            return self.team.name if self.team is not None else MAIN
        member = self.roster.find(sender_id)
        return member.name if member is not None else sender_id

    def _here(self, to: str) -> Member | None:
        found = self.roster.find(to)
        if found is None and to == MAIN:
            found = next((member for member in self.roster if member.mode is AgentMode.MAIN), None)
        return found

    async def _teammates(self, sender: str) -> list[str]:
        if self.team is None:
            return []
        own = self.team.name
        here = self.roster.names()
        return [n for n in await asyncio.to_thread(self.team.team.names) if n not in (own, sender, *here)]

    def _session(self, to: str) -> LiveSession | None:
        if len(to) < _SHORTEST_ID or not to.replace("-", "").isalnum():
            return None
        found = [live for live in live_sessions(self.projects, to) if live.id != self.session_id]
        exact = [live for live in found if live.id == to]
        if len(exact or found) > 1:
            raise UserError(f"{len(found)} live sessions start with {to}: give the whole id.")
        return (exact or found or [None])[0]

    def _listening_at(self, given: str) -> LiveSession:
        """The live session of this home with this socket path. No other socket of the machine is ever opened."""
        path = Path(given)
        if not path.is_absolute():
            raise UserError(f"{SOCKET}{given[:80]} is not an absolute path: give the whole path of a session's socket.")
        for live in live_sessions(self.projects):
            if live.id != self.session_id and live.socket == path and is_own_socket(path):
                return live
        raise UserError(f"No live session listens at {given[:200]}: you can write only to sessions of this home.")

    def _who(self, sender: str) -> str:
        names: Sequence[str] = [name for name in self.roster.names() if name != sender]
        if self.team is not None:
            team = self.team.team
            there = [name for name in team.names() if name not in (sender, *names) and team.is_reachable(name)]
            names = [*names, *there]
        return f"you can write to: {', '.join(names)}." if names else "there is nobody you can write to."

    def _check_structured(self, message: Structured | None, sender: str, to: str) -> Structured | None:
        """Checks what a model may send to a program: it can grant no permission and can only speak for itself."""
        if message is None:
            return None
        if not isinstance(message, FOR_MODELS):
            raise UserError(f"A {message.kind} is sent by the program, not by a message: write plain text.")
        if to == EVERYONE:
            raise UserError(f"A {message.kind} goes to one receiver: name the one you mean.")
        lead = self._lead_of(sender if isinstance(message, ShutdownResponse) else to)
        if lead is None:
            raise UserError(f"A {message.kind} is between a teammate and its lead only: write plain text.")
        if isinstance(message, ShutdownResponse) and to != lead:
            raise UserError(f"A shutdown_response goes from a teammate to its lead, {lead}.")
        if isinstance(message, ShutdownRequest | PlanApprovalResponse) and sender != lead:
            raise UserError(f"Only the lead, {lead}, sends a {message.kind}.")
        is_own = self.team is not None and sender == self.team.name
        return self.team.complete(message) if is_own and self.team is not None else message

    def _lead_of(self, name: str) -> str | None:
        """The lead of this teammate, in this process or in the team; None if it is not a teammate."""
        here = self._here(name)
        if here is not None and here.mode is AgentMode.TEAMMATE and here.parent is not None:
            parent = self.roster.find(here.parent)
            return parent.name if parent is not None else None
        if self.team is None:
            return None
        lead = self.team.team.lead
        return lead if name in self.team.team.names() and name != lead else None
