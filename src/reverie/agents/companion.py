"""An agent's own side of starting others: its spawner, the messages that wait for it, and what its children start from.

Every thread has one, the main one too. It knows whose it is: that is how a fork is told from its parent, whatever its
history says.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from reverie.agents.children import Batch
from reverie.agents.fork import ForkPoint
from reverie.agents.messages.message import message_blocks
from reverie.agents.messages.roster import Member, AgentMode
from reverie.context.conversation import Conversation
from reverie.errors import UserError
from reverie.layers.base import Companion
from reverie.loop import Thread
from reverie.storage.transcript.view import View
from reverie.tools.base import AgentOrder, ToolOutput
from reverie.types import Block, JsonObject, ToolUseBlock

AGENT = "Agent"


class AgentCompanion(Companion):
    """Of one agent. `waits`: it does not end while agents it started are at work, since nobody else reads them."""

    def __init__(
        self,
        member: Member,
        start: Callable[[AgentCompanion, AgentOrder], Awaitable[ToolOutput]],
        at_work: Callable[[str], Sequence[Member]],
        *,
        waits: bool = True,
        may_end: Callable[[str], Awaitable[str | None]] | None = None,
    ) -> None:
        self.member = member
        self._start = start
        self._at_work = at_work
        self._waits = waits
        self._may_end = may_end
        self._run: tuple[Thread, Conversation] | None = None
        self._batch: Batch | None = None

    def attach(self, thread: Thread, conversation: Conversation) -> None:
        """Says which thread this is the side of."""
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
        assert self._run is not None, "an agent is seated before it runs"
        return self._run

    # -- what the rounds of its thread ask --------------------------------------------------------------------------

    async def spawn(self, order: AgentOrder) -> ToolOutput:
        """Starts an agent for this one. What cannot be is an error result with a reason."""
        try:
            return await self._start(self, order)
        except UserError as error:
            return ToolOutput(str(error), is_error=True)

    async def after_response(self) -> None:
        """Keeps the conversation as it is now if forks of it are wanted: each must start before any call has run."""
        calls = self.view.open_calls
        wanted = any(_is_for_a_fork(call) for call in calls) and self.member.mode in (AgentMode.MAIN, AgentMode.SUB_AGENT)
        self._batch = Batch(ForkPoint.of(*self._attached()).kept(), calls) if wanted else None

    def batch(self) -> Batch:
        """What the fork children of the response at hand start from."""
        if self._batch is None:  # a hook made a fork of what was none
            self._batch = Batch(ForkPoint.of(*self._attached()).kept(), self.view.open_calls)
        return self._batch

    async def between_rounds(self) -> Sequence[Block]:
        """The messages that came in meanwhile."""
        return message_blocks(self.member.inbox.drain())

    async def may_stop(self, answer: str) -> str | Sequence[Block] | None:
        """Messages that wait are answered before it ends; then whoever watches over it may object."""
        await self.settle()
        waiting = message_blocks(self.member.inbox.drain())
        if waiting or self._may_end is None:
            return waiting or None
        return await self._may_end(answer)

    async def report_end(self, said: str) -> None:
        """It ends before it is done (no rounds left, or an error): whoever watches is told and cannot object."""
        if self._may_end is not None:
            await self._may_end(said)

    async def settle(self) -> None:
        """Waits until a message is there, or nobody is at work who could write one."""
        while self._waits and not len(self.member.inbox) and self._at_work(self.member.id):
            await self.member.inbox.arrived.wait()  # whoever ends, however, leaves a message


def _is_for_a_fork(call: ToolUseBlock) -> bool:
    given: Any = call.input
    asked = cast(JsonObject, given) if isinstance(given, dict) else {}
    return call.name == AGENT and not asked.get("subagent_type") and not asked.get("teammate")
