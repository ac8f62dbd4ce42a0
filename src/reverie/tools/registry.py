"""Makes the built-in tools and puts tools in the order of a request.

The schemas are part of the cached prefix: built-ins come first in a fixed order, the others follow by name, and the
same tools always give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from reverie.models.window import scaled
from reverie.settings.sections import ToolSettings
from reverie.tools.agent import Agent, SendMessage
from reverie.tools.base import Tool
from reverie.tools.bash import Bash
from reverie.tools.edit import Edit
from reverie.tools.glob import Glob
from reverie.tools.grep import Grep
from reverie.tools.read import Read
from reverie.tools.validate import explain_invalid
from reverie.tools.write import Write
from reverie.types import JsonObject

BUILT_IN_ORDER: tuple[str, ...] = ("Read", "Write", "Edit", "Grep", "Glob", "Bash", "Agent", "SendMessage")
"""The order of the built-ins in a request. Add new ones at the end."""


def make_builtin_tools(given: ToolSettings | None = None, *, window: int = 200_000) -> tuple[Tool, ...]:
    """Returns the built-in tools in the order of a request, with limits for the size of the window."""
    given = given or ToolSettings()
    read = Read(
        max_lines=max(1, scaled(given.read_lines, window)),
        max_line_chars=given.read_line_chars,
        max_bytes=max(1, scaled(given.read_bytes, window)),
        max_image_bytes=given.read_image_bytes,
    )
    grep = Grep(timeout_s=given.grep_timeout_s)
    glob = Glob(shown_files=given.glob_files, timeout_s=given.grep_timeout_s)
    bash = Bash(timeout_ms=round(given.bash_timeout_s * 1_000), max_timeout_ms=round(given.bash_timeout_max_s * 1_000))
    return (read, Write(), Edit(), grep, glob, bash, Agent(), SendMessage())


def sort_tools(tools: Iterable[Tool]) -> tuple[Tool, ...]:
    """Sorts built-ins first, then the rest by name."""
    rank = {name: index for index, name in enumerate(BUILT_IN_ORDER)}
    return tuple(sorted(tools, key=lambda tool: (rank.get(tool.name, len(rank)), tool.name)))


def list_schemas(tools: Iterable[Tool]) -> tuple[JsonObject, ...]:
    """Returns the schemas of a request, in order."""
    return tuple(tool.schema for tool in sort_tools(tools))


def make_read_only_check(tools: Iterable[Tool]) -> Callable[[str, JsonObject], bool]:
    """Returns a check whether a call, by the tool's name, changes nothing; an unknown tool may change anything."""
    known = {tool.name: tool for tool in tools}

    def is_read_only(name: str, given: JsonObject) -> bool:
        tool = known.get(name)
        if tool is None or explain_invalid(given, tool.schema.get("input_schema", {})):
            return False
        return tool.is_read_only(given)

    return is_read_only
