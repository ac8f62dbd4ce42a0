"""The fork: a background agent whose request starts with the same bytes as the conversation it comes from.

It shares the parent's system prompt, tools, model and messages, and therefore its cache. Cloned: the view with its
decisions, and the read cache. Fresh: its denials. Linked: cancellation, since it runs inside a task of the parent's
session. It changes nothing of the parent but for records that say what each of its requests cost. It leaves no
transcript.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from reverie.context.conversation import Conversation
from reverie.events import Event
from reverie.loop import Thread, run
from reverie.origins import task
from reverie.permissions.rules import Allow, Decision, Deny, ToolCall
from reverie.tools.base import Caller, PathMapping, Tool, ToolContext
from reverie.types import Message, Origin, Purpose, TextBlock, ToolUseBlock, Usage

_numbers = count(1)


@dataclass(frozen=True, slots=True)
class ForkResult:
    """What a fork came to. `denied` lists the calls it was refused, as `Tool: reason`."""

    reason: str
    text: str
    usage: Usage
    rounds: int
    denied: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ForkPoint:
    """What a fork starts from: the parent's conversation, tools and context."""

    conversation: Conversation
    tools: Mapping[str, Tool]
    context: ToolContext
    output_cap: int
    output_cap_raised: int


def kept_point(thread: Thread, conversation: Conversation) -> ForkPoint:
    """A conversation as it stands now, kept for a fork that is made later: what happens to it meanwhile is not seen."""
    account = conversation.account
    kept = replace(
        conversation,
        log=thread.log.forked("kept"),
        account=account.forked() if account is not None else None,  # what is cached now is what it will find
    )
    context = replace(thread.context, read_cache=thread.context.read_cache.copy())
    return ForkPoint(kept, thread.tools, context, thread.output_cap, thread.output_cap_raised)


async def run_fork(
    point: ForkPoint,
    directive: str,
    *,
    purpose: Purpose,
    permission: Callable[[ToolCall], Awaitable[Decision]],
    max_rounds: int,
    max_tokens: int | None = None,
    map_path: PathMapping | None = None,
    progress: Callable[[str], None] = lambda _text: None,
    emit: Callable[[Event], None] = lambda _event: None,
    kind: str = "",
    question: str = "",
    enough: Callable[[Sequence[ToolUseBlock]], bool] | None = None,
) -> ForkResult:
    """Runs one fork to its end. `permission` decides every call; the tool list stays the parent's, for the prefix.

    `question` is what the user asks, where they do. `emit` is told what it does; `kind` is in its name, which its
    requests are booked under. `enough` says of calls
    that went well whether the fork is done with them; one that may be done so soon writes no cache entry of its own.
    """
    name = f"{purpose.value}-{kind}-{next(_numbers)}" if kind else f"{purpose.value}-{next(_numbers)}"
    log = point.conversation.log.forked(name)
    denied = list[str]()

    async def decide(call: ToolCall) -> Decision:
        decision = await permission(call)
        if not isinstance(decision, Allow):
            denied.append(f"{call.tool}: {decision.reason}")
            return Deny(decision.reason)
        progress(call.tool)
        return decision

    thread = Thread(
        log=log,
        surroundings=point.conversation.forked(
            log, purpose=purpose, thread=name, reused=max_rounds > 1 and enough is None
        ),
        tools=point.tools,
        context=replace(
            point.context,
            caller=Caller(purpose, name),
            permission=decide,
            read_cache=point.context.read_cache.copy(),
            map_path=map_path or point.context.map_path,
            progress=progress,
        ),
        emit=emit,
        max_rounds=max_rounds,
        output_cap=max_tokens or point.output_cap,
        output_cap_raised=max_tokens or point.output_cap_raised,
        purpose=purpose,
        name=name,
        enough=enough or _never,
    )
    asked = (TextBlock(question, Origin.ENTERED),) if question else ()
    log.append_message(Message("user", (task(directive), *asked)), isMeta=True)
    outcome = await run(thread)
    return ForkResult(outcome.reason, outcome.text, thread.usage, thread.rounds, tuple(denied))


def _never(_calls: Sequence[ToolUseBlock]) -> bool:
    return False
