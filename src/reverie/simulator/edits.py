"""What the server removes from the messages before the model sees them.

Context edits (`clear_tool_uses_20250919`, `clear_thinking_20251015`), the messages before a compaction block, and the
thinking that older models drop at a new user turn. It is computed from the full history for every request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, cast

from reverie.quick import dataclass
from reverie.simulator.check import check_objects, check_strings
from reverie.simulator.errors import invalid
from reverie.simulator.tokens import Block, block_tokens

CLEARED_RESULT = "[This tool result was removed to make room. Run the tool again if it is needed.]"
DEFAULT_TRIGGER = 100_000
DEFAULT_KEEP_TOOL_USES = 3
DEFAULT_KEEP_THINKING = 1
DEFAULT_COMPACT_TRIGGER = 150_000
LEAST_COMPACT_TRIGGER = 50_000
_TOOL_EDIT = "clear_tool_uses_20250919"
_THINKING_EDIT = "clear_thinking_20251015"
_COMPACT_EDIT = "compact_20260112"
_THINKING = ("thinking", "redacted_thinking")


@dataclass(slots=True)
class MessageView:
    """One message as the server reads it: blocks keep their place, and a removed block is None."""

    index: int
    role: str
    blocks: Sequence[Block | None]
    altered: str = ""
    """Why the blocks differ from those that were sent; empty if they do not."""
    markable: bool = True
    """Whether a cache marker can be on its blocks."""


@dataclass(frozen=True, slots=True)
class Compact:
    """A `compact_20260112` edit."""

    trigger: int
    pause: bool
    instructions: str | None


@dataclass(slots=True)
class EditedMessages:
    """The messages after all edits, and what the response says about the edits."""

    views: list[MessageView]
    applied: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    compact: Compact | None = None


def views_of(messages: Sequence[Mapping[str, Any]]) -> list[MessageView]:
    """The messages from the last compaction block on, without system messages for a turn that is over."""
    views: list[MessageView] = []
    passing: list[MessageView] = []
    for number, message in enumerate(messages):
        content = message.get("content")
        blocks: Sequence[Block | None]
        if isinstance(content, str):
            blocks = ({"type": "text", "text": content},) if content else ()
        else:
            blocks = cast("Sequence[Block]", content or ())
        views.append(MessageView(number, cast("str", message["role"]), blocks))
        if "clear_at" in message and message["clear_at"] == "next_user_message":
            views[-1].markable = False
            passing.append(views[-1])
    shown = _from_last_compaction(views)
    last = max((view.index for view in shown if view.role == "user"), default=-1) if passing else -1
    for view in passing:
        if view.index < last:
            view.blocks = ()
    return shown


def _from_last_compaction(views: list[MessageView]) -> list[MessageView]:
    for start in range(len(views) - 1, -1, -1):
        view = views[start]
        if start and view.role != "assistant":
            continue
        for place in range(len(view.blocks) - 1, -1, -1):
            block = view.blocks[place]
            if block is not None and block.get("type") == "compaction" and block.get("content"):
                kept = [None] * place + list(view.blocks[place:])
                return [MessageView(view.index, view.role, kept, "compaction"), *views[start + 1 :]]
    return views


def strip_old_thinking(views: Sequence[MessageView]) -> None:
    """Drops the thinking before the last user turn, as older models do. Changes `views`."""
    last_turn = -1
    for number, view in enumerate(views):
        if view.role == "user" and any(b is not None and b.get("type") != "tool_result" for b in view.blocks):
            last_turn = number
    for view in views[: max(last_turn, 0)]:
        _drop_thinking(view, "thinking_stripped")


def apply_edits(
    views: list[MessageView],
    management: Mapping[str, Any] | None,
    *,
    keeps_thinking: bool,
    count: Callable[[], int],
) -> EditedMessages:
    """Applies the edits of a request. `count` returns the tokens of the whole prompt."""
    edits = check_objects((management or {}).get("edits"), "context_management.edits")
    result = EditedMessages(views)
    if not keeps_thinking and not any(edit.get("type") == _THINKING_EDIT for edit in edits):
        strip_old_thinking(views)
    for number, edit in enumerate(edits):
        path = f"context_management.edits.{number}"
        match edit.get("type"):
            case "clear_thinking_20251015":
                if number != 0:
                    raise invalid(f"{path}: `{_THINKING_EDIT}` must be first in `edits`")
                _clear_thinking(result, edit, path)
            case "clear_tool_uses_20250919":
                _clear_tool_uses(result, edit, path, count)
            case "compact_20260112":
                result.compact = _compact(edit, path)
            case other:
                raise invalid(
                    f"{path}: Input tag '{other}' found using 'type' does not match any of the expected tags: "
                    f"'{_TOOL_EDIT}', '{_THINKING_EDIT}', '{_COMPACT_EDIT}'"
                )
    return result


def _value(edit: Mapping[str, Any], name: str, path: str, kinds: tuple[str, ...]) -> tuple[str, int] | None:
    given = edit.get(name)
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise invalid(f"{path}.{name}: Input should be an object")
    table = cast("Mapping[str, Any]", given)
    if table.get("type") not in kinds:
        raise invalid(f"{path}.{name}.type: Input should be {' or '.join(repr(kind) for kind in kinds)}")
    value = table.get("value")
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise invalid(f"{path}.{name}.value: Input should be a valid integer")
    return cast("str", table["type"]), value


def _clear_thinking(result: EditedMessages, edit: Mapping[str, Any], path: str) -> None:
    keep = edit.get("keep")
    if keep == "all" or (isinstance(keep, Mapping) and cast("Mapping[str, Any]", keep).get("type") == "all"):
        return
    wanted = _value(edit, "keep", path, ("thinking_turns",))
    turns = DEFAULT_KEEP_THINKING if wanted is None else wanted[1]
    if turns < 1:
        raise invalid(f"{path}.keep.value: Input should be greater than or equal to 1")
    thinking = [view for view in result.views if view.role == "assistant" and any(map(_is_thinking, view.blocks))]
    cleared = 0
    for view in thinking[:-turns]:
        cleared += _drop_thinking(view, "context_management")
    if len(thinking) > turns:
        counts = {"cleared_thinking_turns": len(thinking) - turns, "cleared_input_tokens": cleared}
        result.applied.append({"type": _THINKING_EDIT, **counts})


def _is_thinking(block: Block | None) -> bool:
    return block is not None and block.get("type") in _THINKING


def _drop_thinking(view: MessageView, why: str) -> int:
    if view.role != "assistant" or not any(map(_is_thinking, view.blocks)):
        return 0
    dropped = sum(block_tokens(block) for block in view.blocks if block is not None and _is_thinking(block))
    view.blocks = [None if _is_thinking(block) else block for block in view.blocks]
    view.altered = why
    return dropped


def _clear_tool_uses(result: EditedMessages, edit: Mapping[str, Any], path: str, count: Callable[[], int]) -> None:
    check_strings(edit.get("exclude_tools"), f"{path}.exclude_tools")
    if isinstance(edit.get("clear_tool_inputs"), list):
        check_strings(edit["clear_tool_inputs"], f"{path}.clear_tool_inputs")
    kind, threshold = _value(edit, "trigger", path, ("input_tokens", "tool_uses")) or ("input_tokens", DEFAULT_TRIGGER)
    keep = (_value(edit, "keep", path, ("tool_uses",)) or ("", DEFAULT_KEEP_TOOL_USES))[1]
    least = (_value(edit, "clear_at_least", path, ("input_tokens",)) or ("", 0))[1]
    calls = [
        block
        for view in result.views
        if view.role == "assistant"
        for block in view.blocks
        if block is not None and block.get("type") == "tool_use"
    ]
    reached = len(calls) if kind == "tool_uses" else count()
    if reached <= threshold:
        return
    excluded = set(cast("list[str]", edit.get("exclude_tools") or ()))
    candidates = [call for call in calls if call.get("name") not in excluded]
    clear = {str(call.get("id")) for call in (candidates[:-keep] if keep else candidates)}
    inputs = _inputs_to_clear(edit.get("clear_tool_inputs"), candidates)
    changed, cleared, saved = _without(result.views, clear, inputs)
    if not cleared or saved < least:
        return
    for view, blocks in changed:
        view.blocks = blocks
        view.altered = "context_management"
    result.applied.append({"type": _TOOL_EDIT, "cleared_tool_uses": cleared, "cleared_input_tokens": max(0, saved)})


def _inputs_to_clear(wanted: object, calls: Sequence[Block]) -> set[str]:
    """Ids of the calls whose inputs can be cleared too: all of them, or those of the named tools."""
    if isinstance(wanted, list):
        return {str(call.get("id")) for call in calls if call.get("name") in cast("list[str]", wanted)}
    return {str(call.get("id")) for call in calls} if wanted else set()


def _without(
    views: Sequence[MessageView], clear: set[str], inputs: set[str]
) -> tuple[list[tuple[MessageView, list[Block | None]]], int, int]:
    """The views that would change, the number of results that would go, and the tokens saved."""
    changed: list[tuple[MessageView, list[Block | None]]] = []
    cleared = saved = 0
    for view in views:
        blocks: list[Block | None] = []
        for block in view.blocks:
            kept: Block | None = block
            if block is not None and block.get("type") == "tool_result" and block.get("tool_use_id") in clear:
                kept = {"type": "tool_result", "tool_use_id": block["tool_use_id"], "content": CLEARED_RESULT}
                cleared += 1
            elif block is not None and block.get("type") == "tool_use" and block.get("id") in clear & inputs:
                kept = {**block, "input": {}}
            if kept is not block and kept is not None and block is not None:
                saved += block_tokens(block) - block_tokens(kept)
            blocks.append(kept)
        if any(new is not old for new, old in zip(blocks, view.blocks, strict=True)):
            changed.append((view, blocks))
    return changed, cleared, saved


def _compact(edit: Mapping[str, Any], path: str) -> Compact:
    trigger = (_value(edit, "trigger", path, ("input_tokens",)) or ("", DEFAULT_COMPACT_TRIGGER))[1]
    if trigger < LEAST_COMPACT_TRIGGER:
        raise invalid(f"{path}.trigger.value: Input should be greater than or equal to {LEAST_COMPACT_TRIGGER}")
    return Compact(trigger, bool(edit.get("pause_after_compaction")), edit.get("instructions"))
