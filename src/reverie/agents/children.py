"""Builds and runs the agents that another agent starts: threads of the same loop with their own log and permissions.

It does not decide whether an agent may start. Only the report of an agent reaches its parent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from reverie.agents.companion import AgentCompanion, Batch
from reverie.agents.fork import ForkPoint, recording_denials
from reverie.agents.messages.roster import Member
from reverie.agents.messages.structured import mark_cut_off
from reverie.context.conversation import Conversation
from reverie.events import Event, RoundFinished, TextStreamed, ThinkingStreamed, ToolStarted
from reverie.loop import Outcome, Thread, run
from reverie.origins import fence
from reverie.prompts import render
from reverie.quick import dataclass
from reverie.storage.transcript.view import View
from reverie.tools.base import Caller, PermissionFunction, ReadCache
from reverie.types import Json, Message, Origin, Purpose, TextBlock, ToolResultBlock, Usage

PLACEHOLDER = "Started. It continues in the background; its result will arrive as a message."
"""The result of every call of the message in a fork child, whatever the tool."""
MARKER = "<fork-directive>"
NO_REPORT = "(It ended without a report.)"
_LINE = 120


@dataclass(frozen=True, slots=True)
class AgentResult:
    """The result of an agent. `denied` lists the refused calls as `Tool: reason`."""

    reason: str
    text: str
    usage: Usage
    rounds: int
    denied: tuple[str, ...] = ()

    @property
    def report(self) -> str:
        """The text that the parent gets."""
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


@dataclass(frozen=True, slots=True)
class Running:
    """An agent that is ready to run. `denied` fills up while it runs."""

    thread: Thread
    conversation: Conversation
    denied: list[str]

    async def run(self) -> AgentResult:
        """Runs the agent to its end. Raises the errors of the model."""
        outcome: Outcome = await run(self.thread)
        thread = self.thread
        return AgentResult(outcome.reason, outcome.text, thread.usage, thread.rounds, tuple(self.denied))


@dataclass(frozen=True, slots=True)
class AgentSetup:
    """What every agent needs to run, whatever its context."""

    member: Member
    companion: AgentCompanion
    permission: PermissionFunction
    max_rounds: int
    emit: Callable[[Event], None]
    told: Sequence[TextBlock] = ()
    """What it is told besides its task."""


def fork_child(batch: Batch, directive: str, setup: AgentSetup, *, cwd: Path | None = None) -> Running:
    """Builds a fork child: the parent's bytes up to the directive. `cwd` is set when it works in another folder."""
    point = batch.point
    name = setup.member.id
    log = point.conversation.log.fork(name)
    log.view.cursors.clear()  # cursors belong to the background writers of the parent
    conversation = point.conversation.forked(log, purpose=Purpose.AGENT, thread=name, reused=setup.max_rounds > 1)
    results = tuple(ToolResultBlock(call.id, PLACEHOLDER, origin=Origin.CODE) for call in batch.calls)
    rules = TextBlock(render("reverie.agents", "fork.md"), Origin.AGENT)
    log.append_message(Message("user", (*results, rules, fence(Origin.AGENT, directive))), isMeta=True)
    messages = log.view.messages()
    conversation.shared = (len(messages) - 1, len(messages[-1].content) - 2)
    context = point.context
    cache = context.read_cache.copy() if cwd is None else ReadCache()  # another folder: nothing in it was read yet
    moved = replace(point, context=replace(context, read_cache=cache, cwd=cwd or context.cwd))
    return _running(moved, conversation, setup)


def fresh_agent(point: ForkPoint, prompt: str, setup: AgentSetup) -> Running:
    """Builds an agent that starts with only its prompt. `point` holds its own log, header, tools and context."""
    point.conversation.log.append_message(Message("user", (fence(Origin.AGENT, prompt),)))
    return _running(point, point.conversation, setup)


def _running(point: ForkPoint, conversation: Conversation, setup: AgentSetup) -> Running:
    if setup.told:
        conversation.log.append_message(Message("user", tuple(setup.told)), isMeta=True)
    denied = list[str]()
    around = conversation.around
    conversation.around = replace(around, companions=(*around.companions, setup.companion))
    thread = Thread(
        log=conversation.log,
        surroundings=conversation,
        tools=point.tools,
        context=replace(
            point.context,
            caller=Caller(Purpose.AGENT, setup.member.id),
            permission=recording_denials(setup.permission, denied),
            spawn=setup.companion.spawn,
        ),
        emit=setup.emit,
        max_rounds=setup.max_rounds,
        output_cap=point.output_cap,
        output_cap_raised=point.output_cap_raised,
        purpose=Purpose.AGENT,
        name=setup.member.id,
    )
    return Running(thread, conversation, denied)


def is_fork(view: View) -> bool:
    """Whether the conversation contains the marker of a fork. Its origin also shows this after a compaction."""
    return any(
        isinstance(block, TextBlock) and block.origin is Origin.AGENT and block.text.startswith(MARKER)
        for entry in view.entries
        for block in entry.message.content
    )


def has_begun(event: Event) -> bool:
    """Whether the event shows that a response has started, so that its prompt is in the cache."""
    return isinstance(event, TextStreamed | ThinkingStreamed | RoundFinished)


def step_line(event: ToolStarted) -> str:
    """Describes a tool call in a few words: the tool and its first argument."""
    given: Json = event.input
    words = [str(value) for value in given.values() if isinstance(value, str)] if isinstance(given, dict) else []  # pyright: ignore
    line = " ".join(f"{event.name} {words[0] if words else ''}".split())
    return line if len(line) <= _LINE else line[: _LINE - 1] + "…"
