"""Who was at work when a session ended without them: known from its transcript, so that the agent is told on resume.

An agent in the background dies with its process. Its start is on record and its report is not; what it left is in the
files it changed and in its transcript. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from reverie.types import JsonObject, Origin, Record, TextBlock

_LETTER = re.compile(r'<letter id="[0-9a-f]{16}" from="([^"]+)"[^\n]*>\n[^\n]*\n([^\n]*)')


@dataclass(frozen=True, slots=True)
class Lost:
    """An agent that never reported."""

    id: str
    name: str


def lost_agents(records: Sequence[Record]) -> list[Lost]:
    """The agents that were started in the background and are not known to have ended, oldest first."""
    at_work: dict[str, Lost] = {}
    for record in records:
        result: Any = record.data.get("toolUseResult")
        started = cast(JsonObject, result) if isinstance(result, dict) else {}
        if started.get("background") and isinstance(started.get("name"), str):
            at_work[str(started["name"])] = Lost(str(started.get("agent")), str(started["name"]))
        for block in record.message.content if record.message is not None else ():
            if isinstance(block, TextBlock) and block.origin is Origin.AGENT and (letter := _LETTER.match(block.text)):
                name, said = letter[1], letter[2]
                if said.startswith((f"{name} is done (", f"{name} (", f"{name} ends", f"{name} was at work")):
                    at_work.pop(name, None)
    return list(at_work.values())
