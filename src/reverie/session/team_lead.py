"""Runs the lead of a team: its turns, its teammates' questions, and the end of the team.

It asks all teammates to end when nothing more can happen, or when the team must end. It never kills a process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from reverie.agents.messages import structured
from reverie.agents.messages.message import AgentMessage
from reverie.agents.messages.roster import MemberState
from reverie.agents.team.handshake import Handshake, Patience
from reverie.agents.team.members import MemberLease
from reverie.errors import ReverieError
from reverie.events import Event
from reverie.permissions.rules import Allow, Deny, ToolCall
from reverie.session.gate import Requester
from reverie.session.session import Session
from reverie.session.team_member import MemberRunner
from reverie.types import Purpose

_STOPPED = "whoever runs the team wants it to end"
_DONE = "the work of the team is done"


class Lead(MemberRunner):
    """The lead. It ends when all teammates have ended, or the rest had enough time."""

    def __init__(self, session: Session, lease: MemberLease, show: Callable[[Event], None], *, color: str) -> None:
        super().__init__(session, lease, lease.name, show, color=color)
        self.handshake = Handshake(
            Patience(self.number("shutdown_s"), self.number("ask_again_s"), int(self.number("refusals")))
        )

    async def work(self, first: str) -> None:
        if first and not self.stopping:
            await self.turn(first)
        loop = asyncio.get_running_loop()
        before: Mapping[str, int] | None = None
        while True:
            if self.session.messages.waiting and not self.stopping:
                await self.turn()
                before = None
                continue
            self.lease.set_idle()
            self.handshake.insists = self.stopping
            names = await asyncio.to_thread(self._remaining)
            late = self.handshake.late(names, loop.time())
            if len(late) == len(names):
                if late:
                    self.tell(f"not gone in time: {', '.join(late)}", "warning")
                return
            quiet = await asyncio.to_thread(self.team.idle_wake_counts, self.name)
            is_over = quiet is not None and quiet == before and not self._has_agents_at_work()
            if self.stopping or is_over:
                for name in self.handshake.may_ask(names, loop.time()):
                    await self._ask_to_end(name, loop.time())
            before = quiet
            await self._pause()

    async def _pause(self) -> None:
        wait_s = self.number("poll_ms") / 1_000
        if self.stopping:
            await asyncio.sleep(wait_s)
        else:
            await self.wait_for_messages(wait_s)

    async def _ask_to_end(self, name: str, now: float) -> None:
        request = self.handshake.ask(name, now, _STOPPED if self.stopping else _DONE)
        try:
            await self.session.messages.messenger.tell(name, request, "please end")
        except ReverieError as error:  # it has ended in the meantime
            self.tell(str(error))

    def _has_agents_at_work(self) -> bool:
        """Agents that the lead itself started write to it when they are done."""
        messages = self.session.messages
        return any(member.state is MemberState.RUNNING for member in messages.roster if member is not messages.main)

    def _remaining(self) -> list[str]:
        others = [name for name in self.team.names() if name != self.name]
        return [name for name in others if self.team.is_reachable(name) or self.team.presence(name) is not None]

    def control(self, message: AgentMessage, content: structured.Structured) -> AgentMessage | None:
        match content:
            case structured.ShutdownResponse(approve, _, reason):
                now = asyncio.get_running_loop().time()
                if self.handshake.answered(message.sender, content, now) and approve:
                    return None
                if not approve:
                    self.tell(f"{message.sender} does not end yet: {reason or 'it gave no reason'}")
                return structured.describe(message, content)
            case structured.IdleNotification(state, text):
                # Nothing to report: it wrote its results itself, or has not started.
                return (
                    None
                    if state is structured.IdleState.AVAILABLE and not text
                    else structured.describe(message, content)
                )
            case structured.PermissionRequest():
                self.start(self._decide(message.sender, content))
                return None
            case structured.ShutdownRequest() | structured.PlanApprovalResponse() | structured.PermissionResponse():
                return message

    async def _decide(self, name: str, request: structured.PermissionRequest) -> None:
        call = ToolCall(
            request.request_id, request.tool, request.input, False, Path(request.cwd), Purpose.AGENT, agent_id=name
        )
        whose = Requester(name, wait_s=self.number("permission_s"))
        decision = await self.session.gate.judge(call, whose)
        if isinstance(decision, Allow) and decision.updated_input is not None:
            decision = Deny("A hook of the lead changes this call, and a teammate's call cannot be changed.")
        allowed = isinstance(decision, Allow)
        answer = structured.PermissionResponse(
            request.request_id, allowed, "" if isinstance(decision, Allow) else decision.reason
        )
        try:
            await self.session.messages.messenger.tell(name, answer, "permission")
        except ReverieError as error:  # it ended before the answer
            self.tell(str(error))
