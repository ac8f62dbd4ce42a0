"""Layer 1 inside Claude Code: large texts in the output of a tool go to disk, their beginning and the path stay.

The file goes beside Claude Code's own large outputs, where it may read without asking. What is on disk already is left
alone. Codex 0.166 cannot replace output: it ignores `updatedMCPToolOutput` too.
"""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any, Final, cast

from reverie.context.effects import ResultKeeper
from reverie.daemon.hook_call import RESULTS, HookCall
from reverie.daemon.projects import Project
from reverie.library.tool_output import ON_DISK, has_large_text, with_texts
from reverie.tools.base import ToolOutput
from reverie.types import JsonObject, ToolUseBlock

_WINDOW: Final = 200_000
"""The window that the numbers in the settings are for: hooks do not say which one the agent has."""


def keep_large(call: HookCall, project: Project) -> JsonObject:
    """Returns the output with its large texts on disk, as a field of the answer; nothing if none is large."""
    output: Any = call.payload.get("tool_response")
    name, id = call.text("tool_name"), call.text("tool_use_id")
    if call.agent != "claude-code" or not project.settings.connect.large_results or name in ON_DISK or not id:
        return {}
    if isinstance(output, dict) and cast(JsonObject, output).get("persistedOutputPath"):
        return {}
    if not has_large_text(output):
        return {}
    folder = call.files / RESULTS if call.files is not None else project.places.tool_results(call.session)
    keeper = ResultKeeper(project.settings.tool_results, project.flags, _WINDOW, folder)
    names = (id if number == 0 else f"{id}-{number}" for number in count())

    async def keep(text: str) -> str:
        kept = (await keeper.keep(ToolUseBlock(next(names), name, {}), ToolOutput(text))).content
        return kept if isinstance(kept, str) else text

    made: Any = asyncio.run(with_texts(output, keep))
    return {"updatedToolOutput": made} if made != output else {}
