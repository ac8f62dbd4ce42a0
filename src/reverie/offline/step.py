"""What the offline mind can do next: say something, or call tools. Each of its tasks decides in these terms."""

from __future__ import annotations

from typing import TypeAlias

from reverie.models.base import Request
from reverie.models.wire import as_object
from reverie.quick import dataclass
from reverie.types import JsonObject


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One tool call."""

    tool: str
    input: JsonObject


@dataclass(frozen=True, slots=True)
class Act:
    """Call these tools in parallel; `say` is the text before them."""

    say: str
    calls: tuple[PlannedCall, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer and finish."""

    text: str


Step: TypeAlias = Act | Answer


def offered_tools(request: Request) -> dict[str, JsonObject]:
    """The properties of each tool that may be called now, by the tool's name."""
    if as_object(request.tool_choice).get("type") == "none":
        return {}
    return {
        str(tool.get("name")): as_object(as_object(tool.get("input_schema")).get("properties"))
        for tool in request.tools
    }
