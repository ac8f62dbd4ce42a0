"""Which tools there are, and in which order a request lists them.

The schemas are part of the cached prefix: built-ins come first in one fixed order, all others follow by name, and the
same tools always give the same bytes. It decides nothing about who may use them.
"""

from __future__ import annotations

from collections.abc import Iterable

from reverie.tools.base import Tool
from reverie.tools.bash import Bash
from reverie.tools.edit import Edit
from reverie.tools.glob import Glob
from reverie.tools.grep import Grep
from reverie.tools.read import Read
from reverie.tools.write import Write
from reverie.types import JsonObject

BUILT_IN_ORDER: tuple[str, ...] = ("Read", "Write", "Edit", "Grep", "Glob", "Bash", "Agent", "SendMessage")
"""The order of the built-ins in a request. New ones go to the end."""


def builtin_tools() -> tuple[Tool, ...]:
    """The tools that need nothing but a context, in the order a request lists them."""
    return (Read(), Write(), Edit(), Grep(), Glob(), Bash())


def in_order(tools: Iterable[Tool]) -> tuple[Tool, ...]:
    """Built-ins first, then the rest by name."""
    rank = {name: index for index, name in enumerate(BUILT_IN_ORDER)}
    return tuple(sorted(tools, key=lambda tool: (rank.get(tool.name, len(rank)), tool.name)))


def tool_schemas(tools: Iterable[Tool]) -> tuple[JsonObject, ...]:
    """What a request lists under `tools`."""
    return tuple(tool.schema for tool in in_order(tools))
