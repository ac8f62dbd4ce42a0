"""Runs one member of a team in its own process: a turn for every batch of letters, idle in between, until it may end.

A teammate asks the lead for permissions, says when it is idle, and ends when the lead asks and its model does not
refuse. What the lead does beside that is in `team_lead.py`. Neither starts nor kills a process.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any

from reverie.agents.messages.message import Letter
from reverie.agents.messages.post import TeamPost
from reverie.agents.messages.roster import Mode as Kind
from reverie.agents.messages.structured import (
    FOR_MODELS,
    IdleNotification,
    IdleState,
    PermissionRequest,
    PermissionResponse,
    PlanApprovalResponse,
    ShutdownRequest,
    ShutdownResponse,
    Structured,
    in_words,
    marked_cut_off,
    new_request_id,
    render,
)
from reverie.agents.team.members import Place, Seat
from reverie.errors import ReverieError, UserError
from reverie.events import Event, Notice, PermissionAsked, ToolStarted, TurnEnded
from reverie.permissions.policy import PolicyMode
from reverie.session.session import Session

_LONGEST_REPORT = 4_000
_LONGEST_QUESTION = 200_000
_BUSY_PAUSE_S = 0.1


class Host(ABC):
    """What lead and teammate have in common. `show` gets every event of the session."""

    def __init__(
        self, session: Session, seat: Seat, lead: str, show: Callable[[Event], None], *, color: str = ""
    ) -> None:
        self.session = session
        self.team = seat.team
        self.name = seat.name
        self.lead = lead
        self.stopping = False
        self.code = 0
        self.seat = seat
        self._show = show
        self._background = set[asyncio.Task[None]]()
        self._wrote_to_lead = False
        session.listen(show)
        session.letters.join(TeamPost(self.team, self.name, color, self.sent, self.complete), self.control)

    def stop(self) -> bool:
        """Whoever runs the team wants it to end: what is under way is stopped, and the end begins."""
        self.stopping = True
        self.session.letters.main.inbox.arrived.set()  # whoever waits for letters looks up
        self.session.cancel()
        return True

    async def run(self, first: str = "") -> int:
        """From the first message (empty: it waits for letters) to the end; the exit code."""
        try:
            await self.work(first)
        finally:
            for task in tuple(self._background):
                task.cancel()
            await asyncio.gather(*self._background, return_exceptions=True)
            await self.session.letters.look()
            await asyncio.to_thread(self.team.depart, self.name, Place.ENDED)
        return self.code

    @abstractmethod
    async def work(self, first: str) -> None:
        """Turns and waiting, until it may end."""

    @abstractmethod
    def control(self, letter: Letter, message: Structured) -> Letter | None:
        """Acts on a letter for the program; what the model is to see of it."""

    def sent(self, letter: Letter, message: Structured | None) -> None:
        """Learns what left this process for the team."""
        is_word = message is None or isinstance(message, FOR_MODELS)
        if letter.to == self.lead and letter.sender == self.name and is_word:
            self._wrote_to_lead = True

    def complete(self, message: Structured) -> Structured:
        """A structured message that the model wants to send, with what the model need not know."""
        return message

    async def turn(self, text: str = "") -> TurnEnded:
        """One turn: with a text, or about the letters that wait."""
        self.seat.busy()
        self._wrote_to_lead = False
        while self.session.busy:  # noqa: ASYNC110 (somebody compacts it from outside, who knows nothing of us)
            await asyncio.sleep(_BUSY_PAUSE_S)
        ended: TurnEnded | None = None
        async with aclosing(self.session.send(text)) as events:
            async for event in events:
                self._show(event)
                if isinstance(event, ToolStarted):
                    self.seat.doing(event.name)
                elif isinstance(event, PermissionAsked):
                    self.asked(event)
                elif isinstance(event, TurnEnded):
                    ended = event
        assert ended is not None, "a turn ends with TurnEnded"
        self.code = ended.exit_code
        await self.session.letters.look()
        return ended

    def asked(self, event: PermissionAsked) -> None:
        """A call needs a permission. The lead's questions are for whoever reads its events."""
        del event

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs beside the turns; ended with the member."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def tell(self, text: str, level: str = "info") -> None:
        self._show(Notice(text, level, "team"))

    async def wait_for_letters(self, timeout_s: float | None = None) -> None:
        """Until a letter for the model is there, somebody wants the end, or the time is over."""
        arrived = self.session.letters.main.inbox.arrived
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while not self.session.letters.waiting and not self.stopping:
                    arrived.clear()
                    await arrived.wait()

    def number(self, key: str) -> float:
        parts = self.session.parts
        return parts.flags.number(f"messages.{key}", getattr(parts.settings.messages, key))


class Teammate(Host):
    """A teammate. `plan`: until the lead approves its plan it only reads; then `mode` holds."""

    def __init__(
        self, session: Session, seat: Seat, lead: str, show: Callable[[Event], None], *, color: str, plan: bool
    ) -> None:
        super().__init__(session, seat, lead, show, color=color)
        session.letters.main.mode = Kind.TEAMMATE
        self._shutdown: ShutdownRequest | None = None
        self._leaving = False
        self._questions: dict[str, asyncio.Future[PermissionResponse]] = {}
        self._mode_after_plan = session.gate.mode if plan else None
        if plan:
            session.gate.mode = PolicyMode.READ_ONLY

    async def work(self, first: str) -> None:
        ended = await self.turn(first) if first else None
        while not self.stopping:
            if not self.session.letters.waiting:
                try:
                    if await self._may_leave():
                        return
                    await self._report(ended)
                except ReverieError as error:
                    self.tell(f"the lead cannot be reached any more, so this is the end: {error}", "warning")
                    return
                self.seat.idle()
            await self.wait_for_letters()
            if not self.stopping:
                ended = await self.turn()

    async def _may_leave(self) -> bool:
        """Whether it was asked to end and agrees: by its own word, or by having seen the request and said nothing."""
        if self._shutdown is not None and not self._leaving:
            await self._to_lead(ShutdownResponse(True, self._shutdown.request_id))
            self._leaving = True
        return self._leaving

    async def _report(self, ended: TurnEnded | None) -> None:
        text, state = "", IdleState.AVAILABLE
        if ended is not None and ended.reason == "cancelled":
            state = IdleState.INTERRUPTED
        elif ended is not None and ended.reason in ("failed", "blocked"):
            state, text = IdleState.FAILED, ended.error or "the turn ended without an answer"
        elif ended is not None and not self._wrote_to_lead:
            text = ended.text.strip()
        if len(text) > _LONGEST_REPORT:
            text = f"{text[:_LONGEST_REPORT]}… [{len(text):,} characters]"
        if text and ended is not None and ended.reason == "cut_off":
            text = marked_cut_off(text)
        await self._to_lead(IdleNotification(state, text))

    async def _to_lead(self, message: Structured) -> None:
        await self.session.letters.post.tell(self.lead, message, message.kind.replace("_", " "))

    # -- what arrives ---------------------------------------------------------------------------------------------

    def control(self, letter: Letter, message: Structured) -> Letter | None:
        if letter.sender != self.lead:
            return letter  # only the lead's word counts; from others it is text
        match message:
            case ShutdownRequest():
                self._shutdown = message
            case PlanApprovalResponse(approve):
                if approve and self._mode_after_plan is not None:
                    self.session.gate.mode, self._mode_after_plan = self._mode_after_plan, None
            case PermissionResponse(request_id):
                question = self._questions.get(request_id)
                if question is not None and not question.done():
                    question.set_result(message)
                return None
            case ShutdownResponse() | IdleNotification() | PermissionRequest():
                return letter
        return in_words(letter, message)

    def complete(self, message: Structured) -> Structured:
        if not isinstance(message, ShutdownResponse):
            return message
        if self._shutdown is None:
            raise UserError("Nobody asked you to end, so there is nothing to answer.")
        return replace(message, request_id=self._shutdown.request_id)

    def sent(self, letter: Letter, message: Structured | None) -> None:
        super().sent(letter, message)
        if isinstance(message, ShutdownResponse) and self._shutdown is not None:
            self._leaving = message.approve
            self._shutdown = None

    # -- permissions ----------------------------------------------------------------------------------------------

    def asked(self, event: PermissionAsked) -> None:
        self.start(self._ask_lead(event))

    async def _ask_lead(self, event: PermissionAsked) -> None:
        wait_s = self.number("permission_s")
        request = PermissionRequest(
            new_request_id(), event.tool, event.input, event.reason, str(self.session.places.cwd)
        )
        answer: asyncio.Future[PermissionResponse] = asyncio.get_running_loop().create_future()
        self._questions[request.request_id] = answer
        try:
            if len(render(request)) > _LONGEST_QUESTION:
                raise ReverieError(f"The {event.tool} call is too long to be asked about; make it smaller.")
            await self._to_lead(request)
            async with asyncio.timeout(wait_s):
                said = await answer
        except TimeoutError:
            said = PermissionResponse("", False, f"{event.reason} Nobody answered within {wait_s:g} s.")
        except ReverieError as error:
            said = PermissionResponse("", False, str(error))
        finally:
            del self._questions[request.request_id]
        self.session.gate.answer(event.id, allow=said.allow, reason=said.reason or f"{self.lead} refused this call")
