"""Layer 1 over the output of tools of Claude Code: texts anywhere in it are changed, its shape stays."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from reverie.types import JsonObject

ON_DISK: Final = ("Read", "Edit", "MultiEdit", "Write", "NotebookEdit", "NotebookRead")
"""Tools whose results are files already, and which limit them by themselves."""
_SMALL: Final = 2_000


def has_large_text(output: Any) -> bool:
    """Whether `with_texts` would change anything at all."""
    match output:
        case str():
            return len(output) > _SMALL
        case list():
            return any(map(has_large_text, cast("list[Any]", output)))
        case dict():
            return any(map(has_large_text, cast(JsonObject, output).values()))
        case _:
            return False


async def with_texts(output: Any, change: Callable[[str], Awaitable[str]]) -> Any:
    """The output in the same shape, with its large texts changed: Claude Code refuses another shape."""
    match output:
        case str():
            return await change(output) if len(output) > _SMALL else output
        case list():
            return [await with_texts(one, change) for one in cast("list[Any]", output)]
        case dict() if cast(JsonObject, output).get("type") != "image":
            return {key: await with_texts(one, change) for key, one in cast(JsonObject, output).items()}
        case _:
            return output
