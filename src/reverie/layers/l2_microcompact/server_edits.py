"""Asks the server to clear by itself: the `context_management` of every request.

Thinking comes first, as the API requires: all of it is kept until the conversation paused for more than an hour, and
that of the last turn from then on. Tool results are cleared from a trigger on, down to a target.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from reverie.layers.l2_microcompact.results import CLEARABLE, ResultIndex
from reverie.models.window import scaled
from reverie.storage.transcript.records import SessionHeader
from reverie.storage.transcript.view import View
from reverie.types import JsonObject

BETA = "context-management-2025-06-27"
THINKING = "clear_thinking_20251015"
TOOL_USES = "clear_tool_uses_20250919"
_PAUSE_S = 3_600
_LAST_TURN: JsonObject = {"type": "thinking_turns", "value": 1}


def wanted(
    view: View, index: ResultIndex, now: datetime, *, trigger: int, target: int, keep_recent: int, window: int
) -> JsonObject:
    """Returns the body for the next requests. `trigger` is for this window, `target` for a window of 200K."""
    edits = list[JsonObject]()
    header = view.header
    if header is not None and (header.thinking or {}).get("type") in ("enabled", "adaptive"):
        edits.append({"type": THINKING, "keep": _LAST_TURN if _rested(view, index, now) else "all"})
    clearing: JsonObject = {
        "type": TOOL_USES,
        "trigger": {"type": "input_tokens", "value": trigger},
        "keep": {"type": "tool_uses", "value": max(1, keep_recent)},
        "clear_at_least": {"type": "input_tokens", "value": max(1, trigger - scaled(target, window))},
    }
    never = _never_cleared(header)
    edits.append({**clearing, "exclude_tools": never} if never else clearing)
    return {"edits": edits}


def _rested(view: View, index: ResultIndex, now: datetime) -> bool:
    """Whether the conversation ever paused for more than an hour. What was sent once stays."""
    for edit in _edits(view.server_edits):
        if edit.get("type") == THINKING and edit.get("keep") == _LAST_TURN:
            return True
    return index.answered_at is not None and (now - index.answered_at).total_seconds() > _PAUSE_S


def _edits(management: JsonObject) -> list[dict[str, Any]]:
    return list(management.get("edits") or ())


def _never_cleared(header: SessionHeader | None) -> list[str]:
    names = [str(tool.get("name", "")) for tool in header.tools] if header is not None else []
    return [name for name in names if name and name not in CLEARABLE]
