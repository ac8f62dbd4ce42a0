"""From calls and results to operations: one a tool call, with a line that says what happened."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

from reverie.storage.view import Entry
from reverie.types import Json, JsonObject, Origin, TextBlock, ToolResultBlock, ToolUseBlock

Kind = Literal["read", "write", "edit", "run", "search", "web", "agent", "other"]

_KINDS: dict[str, Kind] = {
    "Read": "read",
    "Write": "write",
    "Edit": "edit",
    "MultiEdit": "edit",
    "NotebookEdit": "edit",
    "Bash": "run",
    "Grep": "search",
    "Glob": "search",
    "WebFetch": "web",
    "WebSearch": "web",
    "Task": "agent",
    "Agent": "agent",
}
_LINE = 160
_EXIT = re.compile(r"^Exit code (\d+)\s*", re.IGNORECASE)
_TAG = re.compile(r"</?[a-z_-]+>")
_TELLING = re.compile(
    r"error|fail|fatal|panic|exception|traceback|denied|not found|no such|cannot|undefined|invalid|refused|rejected",
    re.IGNORECASE,
)
_REFUSED = re.compile(r"user (doesn't want|refused|rejected)", re.IGNORECASE)
_SUMMING = re.compile(r"\b(passed|failed|ok|FAIL|PASS|errors?|warnings?|issues?|tests?)\b")


@dataclass(frozen=True, slots=True)
class Operation:
    """One tool call and what came of it. `target` is its path, command, pattern or address."""

    kind: Kind
    tool: str
    target: str
    ok: bool
    said: str
    order: int
    turn: int
    answered: bool = True


def operations(entries: Sequence[Entry]) -> list[Operation]:
    """Every call of a conversation, in order. A call without a result did not fail: it is not known."""
    results = {
        block.tool_use_id: block
        for entry in entries
        for block in entry.message.content
        if isinstance(block, ToolResultBlock)
    }
    found, turn = list[Operation](), 0
    for entry in entries:
        for block in entry.message.content:
            if isinstance(block, TextBlock) and block.origin is Origin.PERSON:
                turn += 1
            elif isinstance(block, ToolUseBlock):
                found.append(_operation(block, results.get(block.id), len(found), turn))
    return found


def given_to(call: ToolUseBlock) -> JsonObject:
    """A call's input; empty where the model sent something else than an object."""
    given: Json = call.input
    return cast(JsonObject, given) if isinstance(given, dict) else {}


def _operation(call: ToolUseBlock, result: ToolResultBlock | None, order: int, turn: int) -> Operation:
    kind = _KINDS.get(call.name, "other")
    given = given_to(call)
    text = result.text if result is not None else ""
    failed = result is not None and (bool(result.is_error) or bool(_EXIT.match(text)))
    said = _failure(text) if failed else _outcome(kind, given, text)
    return Operation(kind, call.name, _target(kind, given), not failed, said, order, turn, result is not None)


def _target(kind: Kind, given: JsonObject) -> str:
    match kind:
        case "read" | "write" | "edit":
            return str(given.get("file_path") or given.get("notebook_path") or "")
        case "run":
            return one_line(str(given.get("command", "")), 400)
        case "search":
            where = given.get("path") or given.get("glob") or ""
            return one_line(f"{given.get('pattern', '')}" + (f" in {where}" if where else ""), 200)
        case "web":
            return one_line(str(given.get("url") or given.get("query") or ""), 200)
        case "agent":
            return one_line(str(given.get("description") or given.get("prompt") or ""), 200)
        case "other":
            return one_line(", ".join(f"{key}={_short(value)}" for key, value in given.items()), 160)


def _short(value: Json) -> str:
    return one_line(str(value), 40)


def _failure(text: str) -> str:
    """How it failed: the exit code and the line that tells why."""
    if _REFUSED.search(text):
        return "the user refused it"
    code = _EXIT.match(text)
    body = _TAG.sub("", text[code.end() :] if code else text)
    lines = [line.strip() for line in body.splitlines() if line.strip()]
    telling = next((line for line in lines if _TELLING.search(line)), lines[0] if lines else "no output")
    prefix = f"exit {code[1]}: " if code else ""
    return prefix + one_line(telling, _LINE)


def _outcome(kind: Kind, given: JsonObject, text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    match kind:
        case "read":
            if given.get("offset") or given.get("limit"):
                first = int(given.get("offset") or 1)
                return f"from line {first}" + (f", {given['limit']} lines" if given.get("limit") else "")
            return "whole"
        case "edit":
            return _change(str(given.get("old_string", "")), str(given.get("new_string", "")))
        case "write":
            content = str(given.get("content", ""))
            return f"written, {len(content.splitlines())} lines"
        case "run":
            summing = [line for line in lines if _SUMMING.search(line)]
            last = summing[-1] if summing else lines[-1] if lines else ""
            return one_line(last, _LINE) if last else "no output"
        case "search":
            return f"{len(lines)} lines" if lines else "nothing"
        case "web" | "agent" | "other":
            return one_line(lines[0], _LINE) if lines else "done"


def _change(old: str, new: str) -> str:
    """An edit in a few words: the first line that is new, and by how much the text grew."""
    before = {line.strip() for line in old.splitlines()}
    fresh = [line.strip() for line in new.splitlines() if line.strip() and line.strip() not in before]
    size = f"−{len(old.splitlines())} +{len(new.splitlines())} lines"
    return f"{size}: {one_line(fresh[0], 100)}" if fresh else f"{size}, only removed"


def one_line(text: str, limit: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
