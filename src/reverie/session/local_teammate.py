"""A teammate in this process: another session, with one turn per batch of messages.

It sends and gets messages by its name in the session that started it, and asks there for permissions. It ends when that
session asks it to and its model does not refuse, when it is killed, or with the session. `reverie team` runs teams of
processes.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from reverie.agents.children import step_line
from reverie.agents.messages import structured
from reverie.agents.messages.message import new_message
from reverie.agents.messages.roster import AgentMode, Member, MemberState
from reverie.events import Event, ToolStarted, TurnEnded
from reverie.memory.evidence import gather_evidence
from reverie.models.base import Capabilities, Model, ModelEvent, Request
from reverie.quick import dataclass
from reverie.session.agent_memories import KindMemory
from reverie.session.hook_points import AskStop
from reverie.session.messages import SessionMessages
from reverie.settings import Settings
from reverie.storage.transcript.session_log import SessionLog
from reverie.tools.base import AgentOrder, Caller, PermissionFunction, Tool, ToolContext, ToolOutput
from reverie.types import Origin, Purpose, ToolUseBlock

OpenSession: TypeAlias = Callable[..., Awaitable[Any]]
"""`Session.open`, passed in, because a session starts teammates, and a teammate is a session."""


class TeammateSession(Protocol):
    """What a teammate needs from its session."""

    @property
    def messages(self) -> SessionMessages: ...

    @property
    def log(self) -> SessionLog: ...

    @property
    def tool_context(self) -> ToolContext: ...

    def send(self, text: str) -> AsyncGenerator[Event, None]: ...

    async def __aenter__(self) -> Any: ...

    async def __aexit__(self, *error: Any) -> None: ...


class SharedModel:
    """A model that somebody else closes."""

    def __init__(self, inner: Model) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def capabilities(self) -> Capabilities:
        return self._inner.capabilities

    def stream(self, request: Request) -> AsyncIterator[ModelEvent]:
        return self._inner.stream(request)

    async def close(self) -> None:
        """Does nothing: the owner closes the model."""


@dataclass(slots=True, eq=False)
class LocalTeammate:
    """One teammate: a `member` of the session with these `messages`. `keep` and `on_message` belong to that session."""

    member: Member
    messages: SessionMessages
    settings: Settings
    open_session: OpenSession
    keep: Callable[[ToolUseBlock, ToolOutput], Awaitable[ToolOutput]]
    on_message: Callable[[Member, str], None]
    permission: PermissionFunction
    memory: KindMemory | None
    tools: tuple[Tool, ...]
    progress: Callable[[str], None]
    may_end: AskStop
    _refused: bool = field(default=False, init=False)

    async def run(self, order: AgentOrder, prompt: str, model: str | Model, cwd: Path) -> str:
        """Runs from its first task to its end. Returns its last answer."""
        member = self.member
        member.inbox.put(new_message(self._lead.name, member.name, order.prompt, summary=order.description))
        session: TeammateSession = await self.open_session(
            cwd=cwd, model=model, settings=self.settings, prompt=prompt, tools=self.tools
        )
        async with session:
            self._join(session)
            said = ""
            asked: structured.ShutdownRequest | None = None
            while True:
                asked = self._take_requests() or asked
                self._refused = False
                ended = await self._turn(session)
                said = ended.text or said
                is_idle = not len(member.inbox)
                if self._refused:
                    asked = None
                if asked is not None and is_idle:
                    if (objection := await self.may_end(said)) is None:
                        await self._tell_lead(structured.ShutdownResponse(True, asked.request_id), "leaves")
                        return said
                    member.inbox.put(new_message("hook", member.name, objection, summary="you may not end yet"))
                elif is_idle:
                    await self._tell_lead(_idle(ended), "is idle")
                    member.state = MemberState.IDLE
                    await member.inbox.arrived.wait()
                member.state = MemberState.RUNNING

    @property
    def _lead(self) -> Member:
        return self.messages.roster.find(self.member.parent or "") or self.messages.main

    def _join(self, session: TeammateSession) -> None:
        """Gives it the messages, permissions and memory of a member of the parent's process."""
        session.messages.main.mode = AgentMode.TEAMMATE
        session.messages.main.inbox = self.member.inbox
        context = session.tool_context
        context.permission = self.permission
        caller, post = Caller(Purpose.AGENT, self.member.id), self.messages.send
        memory, keeper = self.memory, context.keeper

        async def send(_caller: Caller, to: str, text: str, summary: str) -> str:
            answer = structured.parse(text)
            self._refused |= isinstance(answer, structured.ShutdownResponse) and not answer.approve
            return await post(caller, to, text, summary)

        context.post = send
        if memory is not None:
            log = session.log
            context.keeper = lambda path: memory.keeper(path, lambda: gather_evidence(log.view.history)) or keeper(path)

    def _take_requests(self) -> structured.ShutdownRequest | None:
        """Returns the lead's request to end, if there is one; its model reads it as text."""
        asked, inbox = None, self.member.inbox
        for message in inbox.drain():
            content = structured.parse(message.text) if message.sender == self._lead.name else None
            asked = content if isinstance(content, structured.ShutdownRequest) else asked
            inbox.put(message if content is None else structured.describe(message, content))
        return asked

    async def _turn(self, session: TeammateSession) -> TurnEnded:
        ended: TurnEnded | None = None
        async with aclosing(session.send("")) as events:
            async for event in events:
                if isinstance(event, ToolStarted):
                    self.member.step = step_line(event)
                    if not self.member.summary:
                        self.progress(self.member.step)
                elif isinstance(event, TurnEnded):
                    ended = event
        assert ended is not None, "a turn ends with TurnEnded"
        return ended

    async def _tell_lead(self, content: structured.Structured, summary: str) -> None:
        lead, name = self._lead, self.member.name
        message = structured.describe(new_message(name, lead.name, "", summary=f"{name} {summary}"), content)
        call = ToolUseBlock(f"report-{message.id}", "Agent", {})
        kept = await self.keep(call, ToolOutput(message.text, origin=Origin.AGENT))
        lead.inbox.put(replace(message, text=kept.content) if isinstance(kept.content, str) else message)
        self.on_message(lead, name)


def _idle(ended: TurnEnded) -> structured.IdleNotification:
    if ended.reason == "answered":
        return structured.IdleNotification(structured.IdleState.AVAILABLE, ended.text.strip())
    if ended.reason == "cut_off":
        return structured.IdleNotification(structured.IdleState.AVAILABLE, structured.mark_cut_off(ended.text.strip()))
    return structured.IdleNotification(
        structured.IdleState.FAILED, ended.error or f"the turn ended without an answer ({ended.reason})"
    )
