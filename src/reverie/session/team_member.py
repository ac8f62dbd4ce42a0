"""Runs one member of a team in its own process: one turn per batch of messages, idle in between, until it may end.

A teammate asks the lead for permissions, reports when it is idle, and ends when the lead asks and it agrees.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any

from reverie.agents.messages import structured
from reverie.agents.messages.message import AgentMessage
from reverie.agents.messages.messenger import TeamMembership
from reverie.agents.messages.roster import AgentMode
from reverie.agents.team.members import MemberLease, MembershipState
from reverie.errors import ReverieError, UserError
from reverie.events import Event, Notice, PermissionAsked, ToolStarted, TurnEnded
from reverie.permissions.policy import PolicyMode
from reverie.session.session import Session

_LONGEST_REPORT = 4_000
_LONGEST_QUESTION = 200_000
_BUSY_PAUSE_S = 0.1


class MemberRunner(ABC):
    """The common part of lead and teammate. `show` gets every event of the session."""

    def __init__(
        self, session: Session, lease: MemberLease, lead: str, show: Callable[[Event], None], *, color: str = ""
    ) -> None:
        self.session = session
        self.team = lease.team
        self.name = lease.name
        self.lead = lead
        self.stopping = False
        self.code = 0
        self.lease = lease
        self._show = show
        self._background = set[asyncio.Task[None]]()
        self._wrote_to_lead = False
        session.listen(show)
        session.messages.join(TeamMembership(self.team, self.name, color, self.sent, self.complete), self.control)

    def stop(self) -> bool:
        """Stops the running turn and starts the end, because the process that runs the team wants it."""
        self.stopping = True
        self.session.messages.main.inbox.arrived.set()  # wakes whoever waits for messages
        self.session.cancel()
        return True

    async def run(self, first: str = "") -> int:
        """Runs from the first message (empty: it waits for messages) to the end. Returns the exit code."""
        try:
            await self.work(first)
        finally:
            for task in tuple(self._background):
                task.cancel()
            await asyncio.gather(*self._background, return_exceptions=True)
            await self.session.messages.look()
            await asyncio.to_thread(self.team.depart, self.name, MembershipState.ENDED)
        return self.code

    @abstractmethod
    async def work(self, first: str) -> None:
        """Runs turns and waits, until it may end."""

    @abstractmethod
    def control(self, message: AgentMessage, content: structured.Structured) -> AgentMessage | None:
        """Acts on a message for the program. Returns what the model sees of it."""

    def sent(self, message: AgentMessage, content: structured.Structured | None) -> None:
        """Called with each message that this process sent to the team."""
        is_word = content is None or isinstance(content, structured.FOR_MODELS)
        if message.to == self.lead and message.sender == self.name and is_word:
            self._wrote_to_lead = True

    def complete(self, content: structured.Structured) -> structured.Structured:
        """Returns a structured message of the model with the fields that the program adds."""
        return content

    async def turn(self, text: str = "") -> TurnEnded:
        """Runs one turn: with a text, or for the waiting messages."""
        self.lease.set_busy()
        self._wrote_to_lead = False
        while self.session.busy:  # noqa: ASYNC110 (somebody compacts it from outside)
            await asyncio.sleep(_BUSY_PAUSE_S)
        ended: TurnEnded | None = None
        async with aclosing(self.session.send(text)) as events:
            async for event in events:
                self._show(event)
                if isinstance(event, ToolStarted):
                    self.lease.set_doing(event.name)
                elif isinstance(event, PermissionAsked):
                    self.asked(event)
                elif isinstance(event, TurnEnded):
                    ended = event
        assert ended is not None, "a turn ends with TurnEnded"
        self.code = ended.exit_code
        await self.session.messages.look()
        return ended

    def asked(self, event: PermissionAsked) -> None:
        """Handles a permission question. The lead's questions go to the reader of its events."""
        del event

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs work next to the turns; it ends with the member."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def tell(self, text: str, level: str = "info") -> None:
        self._show(Notice(text, level, "team"))

    async def wait_for_messages(self, timeout_s: float | None = None) -> None:
        """Waits for a message for the model, for the end of the team, or for the timeout."""
        arrived = self.session.messages.main.inbox.arrived
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while not self.session.messages.waiting and not self.stopping:
                    arrived.clear()
                    await arrived.wait()

    def number(self, key: str) -> float:
        parts = self.session.parts
        return parts.flags.number(f"messages.{key}", getattr(parts.settings.messages, key))


class Teammate(MemberRunner):
    """A teammate. With `plan`, it only reads until the lead approves its plan."""

    def __init__(
        self, session: Session, lease: MemberLease, lead: str, show: Callable[[Event], None], *, color: str, plan: bool
    ) -> None:
        super().__init__(session, lease, lead, show, color=color)
        session.messages.main.mode = AgentMode.TEAMMATE
        self._shutdown: structured.ShutdownRequest | None = None
        self._leaving = False
        self._questions: dict[str, asyncio.Future[structured.PermissionResponse]] = {}
        self._mode_after_plan = session.gate.mode if plan else None
        if plan:
            session.gate.mode = PolicyMode.READ_ONLY

    async def work(self, first: str) -> None:
        ended = await self.turn(first) if first else None
        while not self.stopping:
            if not self.session.messages.waiting:
                try:
                    if await self._may_leave():
                        return
                    await self._report(ended)
                except ReverieError as error:
                    self.tell(f"the lead cannot be reached any longer, so this member ends: {error}", "warning")
                    return
                self.lease.set_idle()
            await self.wait_for_messages()
            if not self.stopping:
                ended = await self.turn()

    async def _may_leave(self) -> bool:
        if self._shutdown is not None and not self._leaving:
            await self._to_lead(structured.ShutdownResponse(True, self._shutdown.request_id))
            self._leaving = True
        return self._leaving

    async def _report(self, ended: TurnEnded | None) -> None:
        text, state = "", structured.IdleState.AVAILABLE
        if ended is not None and ended.reason == "cancelled":
            state = structured.IdleState.INTERRUPTED
        elif ended is not None and ended.reason in ("failed", "blocked"):
            state, text = structured.IdleState.FAILED, ended.error or "the turn ended without an answer"
        elif ended is not None and not self._wrote_to_lead:
            text = ended.text.strip()
        if len(text) > _LONGEST_REPORT:
            text = f"{text[:_LONGEST_REPORT]}… [{len(text):,} characters]"
        if text and ended is not None and ended.reason == "cut_off":
            text = structured.mark_cut_off(text)
        await self._to_lead(structured.IdleNotification(state, text))

    async def _to_lead(self, content: structured.Structured) -> None:
        await self.session.messages.messenger.tell(self.lead, content, content.kind.replace("_", " "))

    def control(self, message: AgentMessage, content: structured.Structured) -> AgentMessage | None:
        if message.sender != self.lead:
            return message  # only messages of the lead count; others are text
        match content:
            case structured.ShutdownRequest():
                self._shutdown = content
            case structured.PlanApprovalResponse(approve):
                if approve and self._mode_after_plan is not None:
                    self.session.gate.mode, self._mode_after_plan = self._mode_after_plan, None
            case structured.PermissionResponse(request_id):
                question = self._questions.get(request_id)
                if question is not None and not question.done():
                    question.set_result(content)
                return None
            case structured.ShutdownResponse() | structured.IdleNotification() | structured.PermissionRequest():
                return message
        return structured.describe(message, content)

    def complete(self, content: structured.Structured) -> structured.Structured:
        if not isinstance(content, structured.ShutdownResponse):
            return content
        if self._shutdown is None:
            raise UserError("Nobody asked you to end, so there is nothing to answer.")
        return replace(content, request_id=self._shutdown.request_id)

    def sent(self, message: AgentMessage, content: structured.Structured | None) -> None:
        super().sent(message, content)
        if isinstance(content, structured.ShutdownResponse) and self._shutdown is not None:
            self._leaving = content.approve
            self._shutdown = None

    def asked(self, event: PermissionAsked) -> None:
        self.start(self._ask_lead(event))

    async def _ask_lead(self, event: PermissionAsked) -> None:
        wait_s = self.number("permission_s")
        request = structured.PermissionRequest(
            structured.new_request_id(), event.tool, event.input, event.reason, str(self.session.places.cwd)
        )
        answer: asyncio.Future[structured.PermissionResponse] = asyncio.get_running_loop().create_future()
        self._questions[request.request_id] = answer
        try:
            if len(structured.render(request)) > _LONGEST_QUESTION:
                raise ReverieError(f"The {event.tool} call is too long to be asked about; make it smaller.")
            await self._to_lead(request)
            async with asyncio.timeout(wait_s):
                said = await answer
        except TimeoutError:
            said = structured.PermissionResponse("", False, f"{event.reason} Nobody answered within {wait_s:g} s.")
        except ReverieError as error:
            said = structured.PermissionResponse("", False, str(error))
        finally:
            del self._questions[request.request_id]
        self.session.gate.answer(event.id, allow=said.allow, reason=said.reason or f"{self.lead} refused this call")
