"""The companion of one agent: it starts other agents for it, gives it its messages, and prepares its forks.

Every thread has one, including the main thread. It knows its member, so a fork is never mistaken for its parent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from typing import Any, cast

from reverie.agents.fork import ForkPoint
from reverie.agents.messages.message import message_blocks
from reverie.agents.messages.roster import AgentMode, Member
from reverie.context.conversation import Conversation
from reverie.errors import UserError
from reverie.layers.base import Companion
from reverie.loop import Thread
from reverie.quick import dataclass
from reverie.storage.transcript.view import View
from reverie.tools.base import AgentOrder, ToolOutput
from reverie.types import Block, JsonObject, ToolUseBlock

AGENT = "Agent"


@dataclass(slots=True)
class Batch:
    """The fork children of one message: their common start, and whether one of them has filled the cache."""

    point: ForkPoint
    calls: tuple[ToolUseBlock, ...]
    led: bool = False
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    def take_lead(self) -> bool:
        """True for the first caller: it runs ahead, and the others read its prompt from the cache."""
        first, self.led = not self.led, True
        return first


@dataclass(slots=True, eq=False)
class AgentCompanion(Companion):
    """The companion of one agent. With `waits`, the agent does not end while agents it started are running."""

    member: Member
    start: Callable[[AgentCompanion, AgentOrder], Awaitable[ToolOutput]]
    at_work: Callable[[str], Sequence[Member]]
    waits: bool = True
    may_end: Callable[[str], Awaitable[str | None]] | None = None
    _run: tuple[Thread, Conversation] | None = field(default=None, init=False)
    _batch: Batch | None = field(default=None, init=False)

    def attach(self, thread: Thread, conversation: Conversation) -> None:
        """Sets the thread and the conversation of this agent."""
        self._run = (thread, conversation)

    @property
    def thread(self) -> Thread:
        return self._attached()[0]

    @property
    def conversation(self) -> Conversation:
        return self._attached()[1]

    @property
    def view(self) -> View:
        return self.thread.log.view

    def _attached(self) -> tuple[Thread, Conversation]:
        assert self._run is not None, "an agent is attached before it runs"
        return self._run

    async def spawn(self, order: AgentOrder) -> ToolOutput:
        """Starts an agent for this one. A refusal becomes an error result with the reason."""
        try:
            return await self.start(self, order)
        except UserError as error:
            return ToolOutput(str(error), is_error=True)

    async def after_response(self) -> None:
        """Copies the conversation if forks are wanted: each fork starts before any call has run."""
        calls = self.view.open_calls
        wanted = any(_is_for_a_fork(call) for call in calls) and self.member.mode in (
            AgentMode.MAIN,
            AgentMode.SUB_AGENT,
        )
        self._batch = Batch(ForkPoint.of(*self._attached()).kept(), calls) if wanted else None

    def batch(self) -> Batch:
        """Returns the start of the fork children of the current response."""
        if self._batch is None:  # a hook turned a call into a fork
            self._batch = Batch(ForkPoint.of(*self._attached()).kept(), self.view.open_calls)
        return self._batch

    async def between_rounds(self) -> Sequence[Block]:
        return message_blocks(self.member.inbox.drain())

    async def may_stop(self, answer: str) -> str | Sequence[Block] | None:
        """Gives the agent its waiting messages before it ends. After that, the hooks may object."""
        await self.settle()
        waiting = message_blocks(self.member.inbox.drain())
        if waiting or self.may_end is None:
            return waiting or None
        return await self.may_end(answer)

    async def report_end(self, said: str) -> None:
        """Reports an end without an answer (no rounds left, or an error). Nobody can object to it."""
        if self.may_end is not None:
            await self.may_end(said)

    async def settle(self) -> None:
        """Waits for a message, or until no running agent is left that could write one."""
        while self.waits and not len(self.member.inbox) and self.at_work(self.member.id):
            await self.member.inbox.arrived.wait()  # every agent that ends leaves a message


def _is_for_a_fork(call: ToolUseBlock) -> bool:
    given: Any = call.input
    asked = cast(JsonObject, given) if isinstance(given, dict) else {}
    return call.name == AGENT and not asked.get("subagent_type") and not asked.get("teammate")
