"""The query loop: run → step → query + execute. It contains no policy and no output.

A turn is a list of rounds; a round is one request and its tool results. Every step is appended to the log before the
next one starts, so a conversation can continue after a kill. A `Thread` contains all decisions that are made elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Protocol, assert_never

from reverie.context.conversation import WindowBudget
from reverie.errors import BlockingLimit, PromptTooLong
from reverie.events import (
    AnswerRestarted,
    Event,
    RoundFinished,
    TextStreamed,
    ThinkingStreamed,
    ToolFinished,
    ToolStarted,
)
from reverie.models.base import Finished, Request, Response, TextDelta, ThinkingDelta, ToolCallStarted
from reverie.models.sending import Restarted, SendEvent
from reverie.origins import fence
from reverie.quick import dataclass
from reverie.storage.transcript.records import ForkUsage
from reverie.storage.transcript.session_log import SessionLog
from reverie.tools.base import Tool, ToolContext, ToolOutput
from reverie.tools.run import MAX_PARALLEL, meant_call, run_calls
from reverie.types import Block, Message, Origin, Purpose, Record, TextBlock, ToolResultBlock, ToolUseBlock, Usage

GO_ON = (
    "<system-reminder>\nYour answer was cut off at the output limit. Go on exactly where it stopped; do not repeat or "
    "summarise.\n</system-reminder>"
)
INTERRUPTED = "[Interrupted by the user.]"
MAX_NUDGES = 3
CUT_OFF = ("max_tokens", "model_context_window_exceeded")


class Surroundings(Protocol):
    """Every decision that is not the loop's own."""

    async def prepare(self, max_tokens: int) -> Request:
        """Runs the layers and assembles the next request."""
        ...

    async def recover(self, error: PromptTooLong) -> bool:
        """Tries once to make the context shorter; returns whether it did."""
        ...

    def send(self, request: Request) -> AsyncIterator[SendEvent]: ...

    def budget(self) -> WindowBudget: ...

    async def observe(self, response: Response) -> None: ...

    async def after_response(self) -> None:
        """Called when a response is recorded, before its tools run."""
        ...

    async def keep(self, call: ToolUseBlock, output: ToolOutput) -> ToolOutput:
        """Returns the result to record: unchanged, or a preview if the whole is on disk."""
        ...

    async def after_result(self, call: ToolUseBlock, output: ToolOutput) -> Sequence[Block]:
        """Called for every result; returns what the model sees next to the results."""
        ...

    async def between_rounds(self) -> Sequence[Block]: ...

    async def may_stop(self, answer: str) -> str | Sequence[Block] | None:
        """Called when the model is done; returns a reason or new messages if it must go on."""
        ...


@dataclass(slots=True)
class Thread:
    """One conversation that the loop can run: the main one, or a fork's."""

    log: SessionLog
    surroundings: Surroundings
    tools: Mapping[str, Tool]
    context: ToolContext
    emit: Callable[[Event], None]
    max_rounds: int
    output_cap: int
    output_cap_raised: int
    parallel: Callable[[], int] = lambda: MAX_PARALLEL
    max_nudges: int = MAX_NUDGES
    purpose: Purpose = Purpose.MAIN
    name: str = "main"
    enough: Callable[[Sequence[ToolUseBlock]], bool] = lambda _calls: False
    """Called when all calls of a response succeeded: True ends the turn without another request."""
    usage: Usage = field(default_factory=Usage)
    rounds: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a turn ended: answered, cut_off, refused or max_rounds. `text` is the whole last answer."""

    reason: str
    text: str


async def run(thread: Thread) -> Outcome:
    """Runs the conversation until the model answers without a tool call."""
    cap, nudges, so_far, text = thread.output_cap, 0, "", ""
    thread.rounds, thread.usage = 0, Usage()
    while thread.rounds - nudges < thread.max_rounds:  # finishing a sentence does not count as a round
        response = await step(thread, cap)
        if response is None:  # cut off at the lower cap: the same request again, with the higher one
            cap = thread.output_cap_raised
            continue
        thread.rounds += 1
        text = so_far + Message("assistant", response.content).text
        so_far = ""
        calls = Message("assistant", response.content).tool_uses
        if calls:
            if await execute(thread, calls) and thread.enough(calls):
                return Outcome("answered", text)
        elif response.stop_reason == "max_tokens" and nudges < thread.max_nudges:
            nudges, so_far = nudges + 1, text
            say(thread, [TextBlock(GO_ON, Origin.CODE)])
        elif response.stop_reason == "refusal":
            return Outcome("refused", text)
        elif (more := await thread.surroundings.may_stop(text)) is not None:
            say(thread, [fence(Origin.HOOK, more)] if isinstance(more, str) else more)
        else:
            return Outcome("cut_off" if response.stop_reason in CUT_OFF else "answered", text)
    return Outcome("max_rounds", text)


async def step(thread: Thread, cap: int) -> Response | None:
    """Sends one request and records its response. None: it was cut off and can be sent with a higher cap."""
    around = thread.surroundings
    request = await around.prepare(cap)
    if (budget := around.budget()).blocking is not None and budget.used >= budget.blocking:
        raise BlockingLimit(
            f"the context holds about {budget.used:,} tokens and the limit is {budget.blocking:,}: send less, "
            "compact it with /compact (or `reverie compact`), or start again with an empty conversation (/clear)"
        )
    try:
        response = await query(thread, request)
    except PromptTooLong as error:
        if not await around.recover(error):
            raise
        response = await query(thread, await around.prepare(cap))
    thread.usage += response.usage
    response = replace(response, content=thread.log.view.with_unique_calls(response.content))
    if response.stop_reason == "max_tokens" and cap < thread.output_cap_raised:
        thread.log.append(ForkUsage(thread.purpose.value, response.model, response.usage.wire(), thread.name))
        thread.emit(AnswerRestarted("the answer was cut off; asking again with a higher limit"))
        return None
    await around.observe(response)
    budget = around.budget()
    cut_off = response.stop_reason == "max_tokens" and not Message("assistant", response.content).tool_uses
    thread.emit(RoundFinished(response.usage, budget.used, budget.window, budget.percent_left, cut_off))
    await around.after_response()
    return response


async def query(thread: Thread, request: Request) -> Response:
    """Sends one request and passes its stream on."""
    response: Response | None = None
    async for event in thread.surroundings.send(request):
        match event:
            case TextDelta():
                thread.emit(TextStreamed(event.text))
            case ThinkingDelta():
                thread.emit(ThinkingStreamed(event.text))
            case Restarted():
                thread.emit(AnswerRestarted(event.reason))
            case ToolCallStarted():
                pass
            case Finished():
                response = event.response
            case _:
                assert_never(event)
    assert response is not None, "a stream must end with its response"
    return response


async def execute(thread: Thread, calls: Sequence[ToolUseBlock]) -> bool:
    """Runs the calls of one response and records each result at once. False if one of them failed."""
    fine, started = True, dict[str, float]()
    calls = [meant_call(call, thread.tools) for call in calls]
    beside = list[Block]()

    def on_start(call: ToolUseBlock) -> None:
        started[call.id] = time.monotonic()
        thread.emit(ToolStarted(call.id, call.name, call.input))

    async for call, raw in run_calls(
        calls, thread.tools, thread.context, on_start=on_start, parallel=thread.parallel()
    ):
        fine = fine and not raw.is_error
        output = await thread.surroundings.keep(call, raw)
        record_result(thread.log, call.id, output)
        beside += await thread.surroundings.after_result(call, output)
        seconds = time.monotonic() - started.get(call.id, time.monotonic())
        thread.emit(ToolFinished(call.id, call.name, text_of(output), output.is_error, seconds, output.how))
    beside += await thread.surroundings.between_rounds()
    if beside:
        say(thread, beside)
    return fine


def record_result(log: SessionLog, call_id: str, output: ToolOutput) -> Record:
    """Records one result, in the form that tools for Claude Code's transcripts know."""
    block = ToolResultBlock(call_id, output.content, output.is_error or None, output.origin)
    structured = output.structured if output.structured is not None else text_of(output)
    kept = {"keptBytes": output.kept_bytes} if output.kept_bytes else {}
    return log.append_message(Message("user", (block,)), toolUseResult=structured, **kept)


def close_open_calls(log: SessionLog, reason: str) -> int:
    """Records an answer for every call without a result; returns how many there were."""
    calls = log.view.open_calls
    for call in calls:
        record_result(log, call.id, ToolOutput(reason, is_error=True, origin=Origin.CODE))
    return len(calls)


def say(thread: Thread, blocks: Sequence[Block]) -> Record:
    """Appends blocks that the user did not type."""
    return thread.log.append_message(Message("user", tuple(blocks)), isMeta=True)


def text_of(output: ToolOutput) -> str:
    if isinstance(output.content, str):
        return output.content
    return "\n".join(block.text for block in output.content if isinstance(block, TextBlock))
