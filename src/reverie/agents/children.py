"""How a started agent is made and run: a thread of the same loop, over a log, tools and permissions of its own.

The modes differ in what the thread is made of, never in how it runs. Nothing here decides whether an agent may be
started, and nothing an agent does reaches its parent but its report.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from reverie.agents.fork import ForkPoint, recording_denials
from reverie.agents.messages.roster import Member
from reverie.agents.messages.structured import mark_cut_off
from reverie.context.conversation import Conversation
from reverie.events import Event, RoundFinished, TextStreamed, ThinkingStreamed, ToolStarted
from reverie.loop import Outcome, Thread, run
from reverie.origins import fence
from reverie.prompts import render
from reverie.storage.transcript.view import View
from reverie.tools.base import AgentOrder, Caller, PermissionFunction, ReadCache, ToolOutput
from reverie.types import Block, Json, Message, Origin, Purpose, TextBlock, ToolResultBlock, ToolUseBlock, Usage

PLACEHOLDER = "Started. It goes on in the background; what comes of it will arrive as a message."
"""The result that every call of the message has in a fork child, whatever the tool."""
MARKER = "<fork-directive>"
NO_REPORT = "(It ended without a report.)"
_LINE = 120


@dataclass(frozen=True, slots=True)
class AgentResult:
    """What an agent came to. `denied` lists the calls it was refused, as `Tool: reason`."""

    reason: str
    text: str
    usage: Usage
    rounds: int
    denied: tuple[str, ...] = ()

    @property
    def report(self) -> str:
        """What its parent is told."""
        said = self.text.strip() or NO_REPORT
        match self.reason:
            case "answered":
                return said
            case "cut_off":
                return mark_cut_off(said)
            case "max_rounds":
                return f"It was stopped after {self.rounds} rounds, before it was done. It said last:\n\n{said}"
            case reason:
                return f"It ended without finishing ({reason}). It said last:\n\n{said}"


class Spawning(Protocol):
    """An agent's own side of starting others: what the rounds of its thread ask."""

    async def spawn(self, order: AgentOrder) -> ToolOutput: ...

    async def after_response(self) -> None: ...

    async def between_rounds(self) -> Sequence[Block]: ...

    async def may_stop(self, answer: str) -> str | Sequence[Block] | None: ...


@dataclass(slots=True)
class Batch:
    """The fork children of one message: what all of them start from, and whether one has filled the cache."""

    point: ForkPoint
    calls: tuple[ToolUseBlock, ...]
    led: bool = False
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    def take_lead(self) -> bool:
        """True for the first who asks: it goes ahead, and the others read what it leaves in the cache."""
        first, self.led = not self.led, True
        return first


@dataclass(frozen=True, slots=True)
class Running:
    """An agent that is about to run. `denied` fills while it does."""

    thread: Thread
    conversation: Conversation
    denied: list[str]

    async def run(self) -> AgentResult:
        """To its end. Raises what a model raises."""
        outcome: Outcome = await run(self.thread)
        thread = self.thread
        return AgentResult(outcome.reason, outcome.text, thread.usage, thread.rounds, tuple(self.denied))


def fork_child(
    batch: Batch,
    member: Member,
    own: Spawning,
    directive: str,
    *,
    permission: PermissionFunction,
    max_rounds: int,
    emit: Callable[[Event], None],
    cwd: Path | None = None,
) -> Running:
    """A fork child: the parent's bytes up to the directive. `cwd`: it works in another folder, which it was told."""
    point = batch.point
    log = point.conversation.log.fork(member.id)
    log.view.cursors.clear()  # what a writer of the parent's has looked at is the parent's business
    conversation = point.conversation.forked(log, purpose=Purpose.AGENT, thread=member.id, reused=max_rounds > 1)
    results = tuple(ToolResultBlock(call.id, PLACEHOLDER, origin=Origin.CODE) for call in batch.calls)
    rules = TextBlock(render("reverie.agents", "fork.md"), Origin.AGENT)
    log.append_message(Message("user", (*results, rules, fence(Origin.AGENT, directive))), isMeta=True)
    messages = log.view.messages()
    conversation.shared = (len(messages) - 1, len(messages[-1].content) - 2)
    context = point.context
    cache = context.read_cache.copy() if cwd is None else ReadCache()  # another folder: nothing in it was read yet
    moved = replace(point, context=replace(context, read_cache=cache, cwd=cwd or context.cwd))
    return _running(moved, conversation, member, own, permission, max_rounds, emit)


def fresh_agent(
    point: ForkPoint,
    member: Member,
    own: Spawning,
    prompt: str,
    *,
    permission: PermissionFunction,
    max_rounds: int,
    emit: Callable[[Event], None],
) -> Running:
    """An agent that begins with nothing but its prompt. `point` is its own: log, header, tools and context."""
    point.conversation.log.append_message(Message("user", (fence(Origin.AGENT, prompt),)))
    return _running(point, point.conversation, member, own, permission, max_rounds, emit)


def _running(
    point: ForkPoint,
    conversation: Conversation,
    member: Member,
    own: Spawning,
    permission: PermissionFunction,
    max_rounds: int,
    emit: Callable[[Event], None],
) -> Running:
    denied = list[str]()
    around = conversation.around
    conversation.around = replace(around, companions=(*around.companions, own))
    thread = Thread(
        log=conversation.log,
        surroundings=conversation,
        tools=point.tools,
        context=replace(
            point.context,
            caller=Caller(Purpose.AGENT, member.id),
            permission=recording_denials(permission, denied),
            spawn=own.spawn,
        ),
        emit=emit,
        max_rounds=max_rounds,
        output_cap=point.output_cap,
        output_cap_raised=point.output_cap_raised,
        purpose=Purpose.AGENT,
        name=member.id,
    )
    return Running(thread, conversation, denied)


def is_fork(view: View) -> bool:
    """Whether a conversation shows that it is a fork's; its origin says so first, and also after a compaction."""
    return any(
        isinstance(block, TextBlock) and block.origin is Origin.AGENT and block.text.startswith(MARKER)
        for entry in view.entries
        for block in entry.message.content
    )


def has_begun(event: Event) -> bool:
    """Whether this event shows that an answer is on its way: from here on its prompt can be read from the cache."""
    return isinstance(event, TextStreamed | ThinkingStreamed | RoundFinished)


def step_line(event: ToolStarted) -> str:
    """A call in a few words: the tool, and what it is used on."""
    given: Json = event.input
    words = [str(value) for value in given.values() if isinstance(value, str)] if isinstance(given, dict) else []  # pyright: ignore
    line = " ".join(f"{event.name} {words[0] if words else ''}".split())
    return line if len(line) <= _LINE else line[: _LINE - 1] + "…"
