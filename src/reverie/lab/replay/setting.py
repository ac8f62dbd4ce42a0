"""What every replayed session is given alike: a prompt of realistic size, a window, thresholds.

The prompt stands in for the one that was recorded, which transcripts do not hold. Its size matters, because it is read
with every request and no policy can save it; the text does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reverie.errors import UserError
from reverie.models.catalogue import Catalogue, ModelFacts
from reverie.models.window import OUTPUT_RESERVE, Thresholds, thresholds
from reverie.storage.transcript.records import SessionHeader
from reverie.types import JsonObject

PREFIX_TOKENS = 8_000
"""System prompt, instruction files and tool definitions together: what an agent with a dozen tools sends."""
WINDOW = 200_000
"""The window thresholds are set for, unless another is asked for."""
FOLDER = Path("/session/tool-results")
"""Where the sessions say that they keep their files; nothing is written there."""
TTL = "5m"
NEVER_FULL = 100_000_000
"""The window requests are billed in: no policy is refused, so that all are compared on the same messages."""

_TOOLS = ("Read", "Bash", "Grep", "Glob", "Edit", "Write", "WebFetch", "WebSearch", "Agent", "SendMessage", "Skill")
_SENTENCE = "Work step by step, look before you change anything, and say what you did. "
_TOOL_TOKENS = 250


@dataclass(frozen=True, slots=True)
class Setting:
    """One session's surroundings."""

    header: SessionHeader
    facts: ModelFacts
    limits: Thresholds

    @staticmethod
    def of(model: str, prefix_tokens: int = PREFIX_TOKENS, window: int = WINDOW) -> Setting:
        facts = Catalogue.load().facts(model)
        tools = tuple(_tool(name) for name in _TOOLS) if prefix_tokens else ()
        system = _text(4 * (prefix_tokens - _TOOL_TOKENS * len(tools)))
        header = SessionHeader(model=f"anthropic:{model}", system=(system,) if system else (), tools=tools, ttl=TTL)
        return Setting(header, facts, thresholds(window, facts.max_output))


def check_room(prefix_tokens: int, window: int) -> None:
    """UserError if the prompt alone would fill the window."""
    limit = thresholds(window, OUTPUT_RESERVE).autocompact
    if 2 * prefix_tokens > limit:
        raise UserError(
            f"A prefix of {prefix_tokens:,} tokens leaves too little of a window of {window:,}, which is compacted at "
            f"{limit:,}: lower --prefix-tokens or raise --window."
        )


def _tool(name: str) -> JsonObject:
    schema = {"type": "object", "properties": {"input": {"type": "string"}}}
    return {"name": name, "description": _text(3 * _TOOL_TOKENS - 110), "input_schema": schema}


def _text(size: int) -> str:
    return (_SENTENCE * (size // len(_SENTENCE) + 1))[: max(0, size)]
