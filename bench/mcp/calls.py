"""Does a model call `recall` when memory is needed, and leave it when it is not? A scripted client with a real server.

Each prompt is a conversation of its own: the instructions and tools of the real server go to the model, and its calls
to the server, until it answers. A model is any that `--model` can name, also a person or an agent behind a bridge.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, cast

from bench.mcp.servers import connect, own_server
from bench.scratch import at_once, file_argument, jobs_option, model_option, open_named_model, read_json_lines
from reverie.errors import ReverieError, UserError
from reverie.lab.measurement import Result, measurement, plain
from reverie.models.base import Finished, Model, Request, Response
from reverie.models.sending import RetryPolicy, send
from reverie.prompts import render
from reverie.text.cutting import shorten
from reverie.types import JsonObject, Message, Origin, TextBlock, ToolResultBlock, ToolUseBlock

if TYPE_CHECKING:
    from mcp.client.client import Client

PREFIX: Final = "mcp__reverie__"
_ROUNDS: Final = 8
_TOKENS: Final = 2_000
_EMPTY: Final = "Nothing was found: the folder is empty."
_OTHERS: Final[tuple[JsonObject, ...]] = tuple(
    {
        "name": name,
        "description": description,
        "input_schema": {"type": "object", "properties": {key: {"type": "string"}}, "required": [key]},
    }
    for name, description, key in (
        ("Read", "Read a file of the project", "path"),
        ("Grep", "Search the files of the project", "pattern"),
        ("Bash", "Run a command in the project", "command"),
    )
)
"""Other tools that an agent has: it could look there instead."""


@dataclass(frozen=True, slots=True)
class CallCase:
    """One prompt. `needs`: whether a good answer needs memory. `memories`: what the user said before, besides those of
    the whole file."""

    id: str
    prompt: str
    needs: bool
    memories: tuple[str, ...] = ()


@dataclass(slots=True)
class CallResult:
    """What a model did with a prompt."""

    case: CallCase
    calls: list[str] = field(default_factory=list[str])
    """The names of the tools that it called, in order."""
    found: bool = False
    """Whether a recall showed a memory."""
    answer: str = ""
    problem: str = ""

    @property
    def recalled(self) -> bool:
        return "recall" in self.calls

    @property
    def is_right(self) -> bool:
        return not self.problem and self.recalled == self.case.needs


def read_cases(file: Path) -> tuple[list[CallCase], list[str]]:
    """The cases of a file, and the memories that all of them have. Each line is a case or `{"memory": TEXT}`."""
    lines = read_json_lines(file, _parse, "a case with `prompt` and `needs`, or a `memory`")
    cases = [one for one in lines if isinstance(one, CallCase)]
    if not cases:
        raise UserError(f"{file} has no cases.")
    return cases, [one for one in lines if isinstance(one, str)]


def _parse(raw: JsonObject) -> CallCase | str:
    if "memory" in raw:
        return str(raw["memory"])
    if not isinstance(raw["needs"], bool):
        raise ValueError("`needs` is not true or false")
    memories = tuple(map(str, cast("list[Any]", raw.get("memories", []))))
    return CallCase(str(raw.get("id", "")), str(raw["prompt"]), raw["needs"], memories)


@measurement("reverie lab mcp calls evals/mcp-calls.jsonl -m anthropic:claude-sonnet-5-5 --jobs 8")
@file_argument
@model_option()
@jobs_option("Cases")
def calls(file: Path, model: str | None, jobs: int) -> Result:
    """Measure whether a model calls `recall` when it needs memory, and not when it does not.

    FILE has one case per line: {"id": "n01", "prompt": "…", "needs": true}, and lines {"memory": "…"} with what the
    user said before, for all cases ("memories": ["…"] in a case: for this one). Each case is a conversation of its own
    with a real server. docs/mcp.md describes it.
    """
    cases, memories = read_cases(file)
    return report(asyncio.run(measure_calls(cases, memories, model, jobs)))


async def measure_calls(
    cases: Sequence[CallCase], memories: Sequence[str], model: str | None, jobs: int = 1
) -> list[CallResult]:
    """Runs all cases, `jobs` at the same time."""
    opened, settings = open_named_model(model)
    policy = RetryPolicy.of(settings)
    try:
        return await at_once(cases, lambda case: _run_case(case, memories, opened, policy), jobs)
    finally:
        await opened.close()


async def _run_case(case: CallCase, memories: Sequence[str], model: Model, policy: RetryPolicy) -> CallResult:
    result = CallResult(case)
    with TemporaryDirectory(prefix="reverie-lab-") as folder:
        await _remember(Path(folder), [*memories, *case.memories])
        async with connect(own_server(Path(folder))) as client:
            try:
                await _talk(client, result, model, policy)
            except ReverieError as error:
                result.problem = str(error)
    return result


async def _remember(folder: Path, texts: Sequence[str]) -> None:
    """Puts what the user said before into the memory of a case, as the user's own words."""
    from reverie import Memory

    server = own_server(folder)
    async with Memory.open(cwd=server.cwd, home=Path(server.env["REVERIE_HOME"])) as memory:
        for text in texts:
            await memory.remember(text, origin="typed")


async def _talk(client: Client, result: CallResult, model: Model, policy: RetryPolicy) -> None:
    """One conversation, until the model answers without a call."""
    tools = [
        {"name": f"{PREFIX}{one.name}", "description": one.description or "", "input_schema": one.input_schema}
        for one in (await client.list_tools()).tools
    ]
    system = render("bench.mcp", "system.md", {"instructions": client.instructions or ""})
    messages = [Message("user", (TextBlock(result.case.prompt, Origin.ENTERED),))]
    for _ in range(_ROUNDS):
        request = Request(model.name, (system,), (*tools, *_OTHERS), tuple(messages), _TOKENS)
        response = await _send(model, request, policy)
        calls = [block for block in response.content if isinstance(block, ToolUseBlock)]
        messages.append(Message("assistant", response.content))
        if not calls:
            texts = [block.text for block in response.content if isinstance(block, TextBlock)]
            result.answer = "\n".join(texts)
            return
        results = [await _call(client, one, result) for one in calls]
        messages.append(Message("user", tuple(results)))
    result.problem = f"it made calls for {_ROUNDS} rounds and gave no answer"


async def _send(model: Model, request: Request, policy: RetryPolicy) -> Response:
    async with aclosing(send(model, request, policy=policy)) as events:
        async for event in events:
            if isinstance(event, Finished):
                return event.response
    raise ReverieError("The model gave no answer.")


async def _call(client: Client, call: ToolUseBlock, result: CallResult) -> ToolResultBlock:
    if not call.name.startswith(PREFIX):
        result.calls.append(call.name)
        return ToolResultBlock(call.id, _EMPTY)
    name = call.name.removeprefix(PREFIX)
    result.calls.append(name)
    raw: Any = call.input
    given = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
    from mcp.shared.exceptions import MCPError

    try:
        answer = await client.call_tool(name, given)
    except MCPError as error:
        return ToolResultBlock(call.id, str(error), True)
    text = "\n".join(str(getattr(block, "text", "")) for block in answer.content)
    result.found = result.found or (name == "recall" and "\n## " in f"\n{text}")
    return ToolResultBlock(call.id, text, True if answer.is_error else None)


def report(results: Sequence[CallResult]) -> Result:
    """How often a model called `recall` with and without a need, and every case that went wrong."""
    needed, others = ([one for one in results if one.case.needs is wanted] for wanted in (True, False))
    figures = {
        "needs_memory": len(needed),
        "recalled": sum(one.recalled for one in needed),
        "found": sum(one.found for one in needed),
        "needs_none": len(others),
        "left_alone": sum(not one.recalled and not one.problem for one in others),
        "problems": sum(bool(one.problem) for one in results),
        "cases": [{**plain(one), "recalled": one.recalled, "right": one.is_right} for one in results],
    }
    lines = [
        f"prompts that need memory: {figures['recalled']} of {len(needed)} led to a recall, "
        f"which showed a memory in {figures['found']}",
        f"prompts that do not:      {figures['left_alone']} of {len(others)} led to none",
    ]
    for one in results:
        if not one.is_right:
            why = one.problem or f"calls: {', '.join(one.calls) or 'none'}"
            needs = "needs memory" if one.case.needs else "needs none"
            lines.append(f"  {one.case.id or '-'}  {needs}; {why}: {shorten(one.case.prompt, 80)}")
    return Result(figures, lines)
