"""Finds why one request does not continue another: every difference that loses cached tokens, in the server's order.

Objects are compared by identity first, so the shared part of two requests is cheap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from reverie.models.base import Request
from reverie.models.wire import Rendered, model_id
from reverie.quick import dataclass
from reverie.types import (
    Block,
    DocumentBlock,
    ImageBlock,
    JsonObject,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)

_EXCERPT = 32
_BEFORE = 12
_KINDS: dict[type, str] = {
    ThinkingBlock: "a thinking block",
    ImageBlock: "an image",
    DocumentBlock: "a document",
}


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason for a break: a word to count by, a sentence, and the path of the block that differs."""

    kind: str
    detail: str
    path: str = ""


def differences(before: Request, after: Request) -> Iterator[Cause]:
    """Yields what prevents `after` from continuing `before`, the most costly difference first."""
    yield from other_model(before.model, after.model)
    if before.betas != after.betas:
        changed = sorted(set(before.betas) ^ set(after.betas)) or ["their order"]
        yield Cause("betas", f"the beta features changed ({', '.join(changed)})", "betas")
    if before.tools is not after.tools and before.tools != after.tools:
        yield from _tools(before.tools, after.tools)
    if before.output_schema != after.output_schema:
        yield Cause("output_format", "another form of answer was asked for", "output_schema")
    if before.system is not after.system and before.system != after.system:
        yield _system(before.system, after.system)
    yield from _settings(before, after)
    first = _messages(before.messages, after.messages)
    if first is not None:
        yield first
    if not _continues(before.cache_edits, after.cache_edits):
        yield Cause("cache_edits", "a deletion in the cache was not sent again in its place", "cache_edits")


def other_model(before: str, after: str) -> Iterator[Cause]:
    """Yields the cause if another model is asked: each has a cache of its own."""
    if model_id(before) != model_id(after):
        yield Cause("model", f"the model changed from {model_id(before)} to {model_id(after)}", "model")


def _tools(before: Sequence[JsonObject], after: Sequence[JsonObject]) -> Iterator[Cause]:
    was, now = [_name(tool) for tool in before], [_name(tool) for tool in after]
    place = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(was), len(now)))
    path = f"tools[{place}]"
    added, removed = [n for n in now if n not in was], [n for n in was if n not in now]
    old = dict(zip(was, before, strict=True))
    changed = [name for name, tool in zip(now, after, strict=True) if name in old and old[name] != tool]
    if added:
        yield Cause("tools", f"{_name_tools(added)} added", path)
    if removed:
        yield Cause("tools", f"{_name_tools(removed)} removed", path)
    if changed:
        yield Cause("tools", f"{_name_tools(changed)} changed", path)
    if not (added or removed or changed):
        moved = next(a for a, b in zip(now, was, strict=True) if a != b)
        yield Cause("tools", f"the order of the tools changed, from {moved} on", path)


def _name(tool: JsonObject) -> str:
    return str(tool.get("name") or tool.get("type") or "?")


def _name_tools(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"the tool {shown} was" if len(names) == 1 else f"the tools {shown} were"


def _system(before: Sequence[str], after: Sequence[str]) -> Cause:
    for i, (old, new) in enumerate(zip(before, after, strict=False)):
        if old != new:
            return Cause("system", f"the system prompt changed: {_contrast(old, new)}", f"system[{i}]")
    count = min(len(before), len(after))
    return Cause("system", f"the system prompt has {len(after)} blocks and had {len(before)}", f"system[{count}]")


def _settings(before: Request, after: Request) -> Iterator[Cause]:
    if (before.tool_choice or _AUTO) != (after.tool_choice or _AUTO):
        yield Cause("tool_choice", "the choice of tools changed", "tool_choice")
    if (before.thinking or _OFF) != (after.thinking or _OFF):
        yield Cause(
            "thinking", f"thinking changed from {_mode(before.thinking)} to {_mode(after.thinking)}", "thinking"
        )
    if before.effort != after.effort:
        was, now = before.effort or "the default", after.effort or "the default"
        yield Cause("effort", f"the effort changed from {was} to {now}", "effort")
    if before.context_management != after.context_management:
        yield Cause("context_management", "the server was asked to edit the context differently", "context_management")
    yield from _images(before.messages, after.messages)


_AUTO: JsonObject = {"type": "auto"}
_OFF: JsonObject = {"type": "disabled"}


def _mode(thinking: JsonObject | None) -> str:
    given = thinking or _OFF
    budget = given.get("budget_tokens")
    return f"{given.get('type')} ({budget} tokens)" if budget else str(given.get("type"))


def _messages(before: Sequence[Message], after: Sequence[Message]) -> Cause | None:
    rendered = Rendered()
    last = len(before) - 1
    for i, old in enumerate(before):
        if i >= len(after):
            return _describe_change(old, 0, None, i)
        new = after[i]
        if old is new:
            continue
        was, now = rendered.parts(old), rendered.parts(new)
        if was == now or (i == last and was == now[: len(was)]):
            continue
        same = next((k for k, (a, b) in enumerate(zip(was, now, strict=False)) if a != b), min(len(was), len(now)))
        return _describe_change(old, same, new, i)
    return None


def _describe_change(old: Message, block: int, new: Message | None, index: int) -> Cause:
    path = f"messages[{index}].content[{block}]"
    was = old.content[block] if block < len(old.content) else None
    now = new.content[block] if new is not None and block < len(new.content) else None
    if was is None and now is not None:
        return Cause("messages", f"{_describe(now)} was put in", path)
    if was is None:
        return Cause("messages", "the history changed", path)
    if now is None:
        return Cause("messages", f"{_describe(was)} is gone", path)
    old_text, new_text = _text(was), _text(now)
    if type(was) is type(now) and old_text != new_text:
        return Cause("messages", f"{_describe(was)} changed: {_contrast(old_text, new_text)}", path)
    return Cause("messages", f"{_describe(was)} changed", path)


def _describe(block: Block) -> str:
    match block:
        case TextBlock():
            return f"the text {_quote(block.text)}"
        case ToolUseBlock():
            return f"the call of {block.name} ({block.id})"
        case ToolResultBlock():
            return f"the result {block.tool_use_id}"
        case _:
            return _KINDS.get(type(block), "a block")


def _text(block: Block) -> str:
    match block:
        case TextBlock() | ToolResultBlock():
            return block.text
        case ThinkingBlock():
            return block.thinking
        case ToolUseBlock():
            return str(block.input)
        case _:
            return ""


def _contrast(old: str, new: str) -> str:
    at = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    return f"it was {_quote(old, at)}, it is {_quote(new, at)}"


def _quote(text: str, at: int = 0) -> str:
    start = max(0, at - _BEFORE)
    piece = " ".join(text[start : start + _EXCERPT].split())
    return f"“{'…' if start else ''}{piece}{'…' if start + _EXCERPT < len(text) else ''}”"


def _images(before: Sequence[Message], after: Sequence[Message]) -> Iterator[Cause]:
    """Messages are cached differently with and without images, so the first and the last image are a cause."""
    shared = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a is not b), len(before))
    had, has = _first_image(before, shared), _first_image(after, shared)
    if (had is None) != (has is None) and _first_image(before[:shared]) is None:
        detail = "the first image came into the conversation" if had is None else "the last image left the conversation"
        yield Cause("images", detail, has or had or "")


def _first_image(messages: Sequence[Message], start: int = 0) -> str | None:
    for i in range(start, len(messages)):
        for j, block in enumerate(messages[i].content):
            inner = block.content if isinstance(block, ToolResultBlock) and isinstance(block.content, tuple) else ()
            if any(isinstance(part, ImageBlock) for part in chain((block,), inner)):
                return f"messages[{i}].content[{j}]"
    return None


def _continues(before: JsonObject | None, after: JsonObject | None) -> bool:
    old: list[object] = (before or {}).get("edits") or []
    new: list[object] = (after or {}).get("edits") or []
    return new[: len(old)] == old


def has_thinking(messages: Sequence[Message], is_signed: Callable[[ThinkingBlock], bool]) -> bool:
    """Returns whether any thinking was sent with these messages."""
    return any(isinstance(b, ThinkingBlock) and is_signed(b) for message in messages for b in message.content)
