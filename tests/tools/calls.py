"""A tool context on a scratch folder, and one call from start to result, for the tests of the tools."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from reverie.permissions.rules import Allow, Decision, ToolCall
from reverie.tools.base import Caller, ReadCache, Tool, ToolContext, ToolOutput
from reverie.tools.registry import make_builtin_tools

TOOLS: dict[str, Tool] = {tool.name: tool for tool in make_builtin_tools()}


async def allow_everything(call: ToolCall) -> Decision:
    del call
    return Allow()


def make_context(
    root: Path,
    *,
    permission: Callable[[ToolCall], Awaitable[Decision]] = allow_everything,
    **more: Any,
) -> ToolContext:
    cwd = root / "work"
    cwd.mkdir(exist_ok=True)
    return ToolContext(cwd, Caller(), permission, ReadCache(), root / "keep", **more)


def use(context: ToolContext, name: str, /, **given: Any) -> ToolOutput:
    """Runs one tool directly, as `run_calls` would after its checks."""
    return asyncio.run(TOOLS[name].run(given, context))


def text(output: ToolOutput) -> str:
    assert isinstance(output.content, str)
    return output.content


def refusal(output: ToolOutput) -> str:
    """The sentence of a refusal; fails if it was none."""
    assert output.is_error, output
    sentence = text(output)
    assert sentence.rstrip().endswith((".", "?")) and "Traceback" not in sentence, sentence
    return sentence
