"""Runs the tool calls of one response: checks the input, asks for permission, and gives exactly one result per call.

Calls in a row that only read run in parallel, all others alone and in order, so that each sees the changes before it. A
tool that fails never ends the turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from time import monotonic
from typing import TypeAlias, assert_never, cast

from reverie.errors import ReverieError
from reverie.permissions.rules import Allow, Ask, Deny, ToolCall
from reverie.quick import dataclass
from reverie.tools.base import CALL_TOOL, BuiltIn, Tool, ToolContext, ToolOutput, ToolsBehind, unwrap_call
from reverie.tools.text_form import replace_surrogates
from reverie.tools.validate import explain_invalid
from reverie.types import JsonObject, TextBlock, ToolUseBlock

MAX_PARALLEL = 10
"""How many read-only calls run at once."""

UNPARSED = "_unparsed"
"""The key for an input that was not valid JSON."""

OnStart: TypeAlias = Callable[[ToolUseBlock], None]
OnFinish: TypeAlias = Callable[[ToolUseBlock, ToolOutput, float], None]


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A checked call: a tool to run, or a refusal."""

    call: ToolUseBlock
    given: JsonObject
    tool: Tool | None
    refusal: str
    read_only: bool


async def run_calls(
    calls: Sequence[ToolUseBlock],
    tools: Mapping[str, Tool],
    context: ToolContext,
    *,
    on_start: OnStart = lambda _call: None,
    on_finish: OnFinish = lambda _call, _output, _seconds: None,
    parallel: int = MAX_PARALLEL,
) -> AsyncIterator[tuple[ToolUseBlock, ToolOutput]]:
    """Yields each call with its result as soon as it ends; calls that run in parallel come in the order of their ends.

    If it is cancelled or closed early (use `contextlib.aclosing`), it waits until the running tools have cleaned up.
    """
    for batch in _make_batches([_prepare(call, tools) for call in calls]):
        gate = asyncio.Semaphore(parallel)

        async def one(prepared: _Prepared, gate: asyncio.Semaphore = gate) -> ToolOutput:
            async with gate:
                started = monotonic()
                on_start(prepared.call)
                output = await _run(prepared, context)
                on_finish(prepared.call, output, monotonic() - started)
                return output

        running = {asyncio.ensure_future(one(prepared)): prepared for prepared in batch}
        try:
            waiting = set(running)
            while waiting:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in sorted(done, key=list(running).index):
                    yield running[task].call, task.result()
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)


def find_tool(name: str, tools: Mapping[str, Tool]) -> Tool | None:
    """Returns a tool of a conversation, or one behind its CallTool."""
    found, caller = tools.get(name), tools.get(CALL_TOOL)
    return caller.find(name) if found is None and isinstance(caller, ToolsBehind) else found


def meant_call(call: ToolUseBlock, tools: Mapping[str, Tool]) -> ToolUseBlock:
    """Returns the call that CallTool stands for, if there is such a tool, so that everybody judges that one."""
    meant = unwrap_call(call)
    return meant if find_tool(meant.name, tools) is not None else call


def _prepare(call: ToolUseBlock, tools: Mapping[str, Tool]) -> _Prepared:
    def refused(reason: str) -> _Prepared:
        return _Prepared(call, {}, None, reason, read_only=True)  # a refusal changes nothing

    tool = find_tool(call.name, tools)
    if tool is None:
        return refused(f"There is no tool named {call.name}: there are {', '.join(tools) or 'none'}.")
    given = cast("JsonObject", call.input)
    if not isinstance(given, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
        return refused(f"The input of {call.name} must be a JSON object: send the call again.")
    if UNPARSED in given:
        return refused(f"The input of {call.name} was not valid JSON and was not run: send the call again, complete.")
    if why := explain_invalid(given, tool.schema.get("input_schema", {})):
        return refused(f"The input of {call.name} does not fit: {why}")
    return _Prepared(call, given, tool, "", tool.is_read_only(given))


def _make_batches(prepared: Sequence[_Prepared]) -> list[list[_Prepared]]:
    batches: list[list[_Prepared]] = []
    for one in prepared:
        if one.read_only and batches and batches[-1][-1].read_only:
            batches[-1].append(one)
        else:
            batches.append([one])
    return batches


async def _run(prepared: _Prepared, context: ToolContext) -> ToolOutput:
    if prepared.tool is None:
        return _refuse(prepared.refusal)
    try:
        asked = _describe_call(prepared, prepared.tool, context)
        allowed = await _ask_permission(prepared, prepared.tool, asked, context)
        if isinstance(allowed, str):
            return _refuse(allowed)
        given = prepared.given if allowed.updated_input is None else allowed.updated_input
        started = monotonic()
        output = await prepared.tool.run(given, replace(context, profile=allowed.profile))
        took, asked_user = monotonic() - started, allowed.asked
        if output.widening is not None and allowed.may_widen:
            wider = await context.permission(replace(asked, input=given, widening=output.widening))
            if isinstance(wider, Allow):
                started, asked_user = monotonic(), asked_user or wider.asked
                output = await prepared.tool.run(given, replace(context, profile=wider.profile))
                took += monotonic() - started
            elif isinstance(output.content, str):
                output = replace(output, content=f"{output.content}\n[{wider.reason}]")
        return replace(_make_storable(output), seconds=took, how="asked" if asked_user else output.how)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # The call itself was not cancelled: something inside the tool was.
        return ToolOutput(f"{prepared.call.name} was cancelled before it had a result.", is_error=True)
    except ReverieError as error:
        return ToolOutput(str(error), is_error=True)
    except Exception as error:  # noqa: BLE001 (the edge of a tool: the turn continues and reports the failure)
        return ToolOutput(
            replace_surrogates(f"{prepared.call.name} failed: {type(error).__name__}: {error}"), is_error=True
        )


def _refuse(reason: str) -> ToolOutput:
    return ToolOutput(reason, is_error=True, ran=False)


def _describe_call(prepared: _Prepared, tool: Tool, context: ToolContext) -> ToolCall:
    call, caller = prepared.call, context.caller
    who = (context.cwd, caller.purpose, caller.agent_id)

    def must_fail(given: JsonObject) -> str | None:
        fits = explain_invalid(given, tool.schema.get("input_schema", {})) is None
        return tool.must_fail(given, context) if fits and isinstance(tool, BuiltIn) else None

    return ToolCall(call.id, call.name, prepared.given, prepared.read_only, *who, must_fail=must_fail)


async def _ask_permission(prepared: _Prepared, tool: Tool, asked: ToolCall, context: ToolContext) -> Allow | str:
    """Returns how to run the call, perhaps with an input that a hook changed; or the reason why it may not run."""
    decision = await context.permission(asked)
    match decision:
        case Allow(updated):
            if updated is not None and (why := explain_invalid(updated, tool.schema.get("input_schema", {}))):
                return f"A hook gave {prepared.call.name} an input that does not fit, so it did not run: {why}"
            return decision
        case Deny(reason):
            return reason
        case Ask(reason):  # the permission function asks by itself; an open question means no
            return f"{reason} Nobody answered, so the call is denied."
        case _:
            assert_never(decision)


def _make_storable(output: ToolOutput) -> ToolOutput:
    """Replaces half characters, so that a transcript can store the output."""
    if isinstance(output.content, str):
        return replace(output, content=replace_surrogates(output.content))
    blocks = tuple(
        replace(block, text=replace_surrogates(block.text)) if isinstance(block, TextBlock) else block
        for block in output.content
    )
    return replace(output, content=blocks)
