"""Turns calls and results into operations: one per tool call, with a line that says what happened. Never guesses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, cast

from reverie.layers.l4_compaction.by_code.definitions import definitions, enclosing, telling_line, without_numbers
from reverie.quick import dataclass
from reverie.storage.transcript.view import Entry
from reverie.text.patterns import late
from reverie.tools.base import unwrap_call
from reverie.types import Json, JsonObject, ToolResultBlock, ToolUseBlock

Kind = Literal["read", "write", "edit", "run", "search", "web", "agent", "tasks", "other"]

_TOOLS: dict[Kind, tuple[str, ...]] = {
    "read": ("Read", "NotebookRead"),
    "write": ("Write",),
    "edit": ("Edit", "MultiEdit", "NotebookEdit"),
    "run": ("Bash",),
    "search": ("Grep", "Glob", "LS"),
    "web": ("WebFetch", "WebSearch"),
    "agent": ("Task", "Agent"),
    "tasks": ("TodoWrite", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet"),
}
_KINDS: dict[str, Kind] = {tool: kind for kind, tools in _TOOLS.items() for tool in tools}
_LINE = 160
_COMMAND = 400
_EXIT = late(r"^(?:Error:\s*)?(?:Command failed with )?Exit code:? (\d+)\s*", re.IGNORECASE)
_TAG = late(r"</?[a-z_-]+>|\x1b\[[0-9;?]*[A-Za-z]")
_TELLING = late(
    r"error|fail|fatal|panic|exception|traceback|denied|not found|no such|cannot|undefined|invalid|refused|rejected|"
    r"missing",
    re.IGNORECASE,
)
_POINTS = late(
    r"(?:\[[\w:.-]+\] )?(?:\S+:\d+(?::\d+)?:? |E  +\w|(?:error|fatal|panic|FAIL|fail(?:ed|ure)?|Traceback)\b|--- FAIL|"
    r"[\w.]*(?:Error|Exception)\b)",
    re.IGNORECASE,
)
"""A line that points at the problem: a place in a file, or a word for it at the beginning."""

_WRAPS = late(r"task failed|exited? (?:with|code)|traceback \(most recent", re.IGNORECASE)
"""What a runner prints around the failure of its command."""

_REFUSED = late(r"user (doesn't want|refused|rejected)", re.IGNORECASE)
_SUMMING = late(r"\b(passed|failed|ok|FAIL|PASS|errors?|warnings?|issues?|tests?|changed|completed?|built)\b")
_SHOWS = late(
    r"^(?:cat|head|tail|sed -n|ls|find|tree|grep|rg|ag|jq|awk|less|wc|diff|git (?:diff|show|log|status|blame|"
    r"grep|ls-\w+|branch)|gh api)\b"
)
_WRITES = late(r">(?!&|/dev/null)|\btee\b|&&|;|\bxargs\b")
_PATH = late(
    r"(?<![\w.:/@$*%{+-])(?:~?/|\.{1,2}/)?(?:[\w.@+-]{1,120}+/)+[\w.@+-]{0,120}\w\.[a-z][a-z0-9]{0,7}(?![\w/*(@-])"
)
_HOST = late(r"[\w-]+(?:\.[\w-]+)*\.(?:com|org|io|net|dev)/")
_NONE_FOUND = late(r"No (?:matches|files|results)\b", re.IGNORECASE)
_ASIDE = late(r"Shell cwd was reset to |<system-reminder>")
_GO_THERE = late(r"^cd\s+(?:\"[^\"]*\"|'[^']*'|\S+)\s*&&\s*")
_FOUND_FILE = late(r"^((?:\.{0,2}/)?[\w@./+-]*\w\.\w{1,8})(?::|$)")


@dataclass(frozen=True, slots=True)
class Operation:
    """One tool call and its outcome. `target` is its path, command, pattern or address.

    `places`: the definitions that a change touched, or the files that a search found.
    """

    kind: Kind
    tool: str
    target: str
    ok: bool
    said: str
    order: int
    places: tuple[str, ...] = ()


def operations(entries: Sequence[Entry]) -> list[Operation]:
    """Returns every call of a conversation, in order. A call without a result does not count as failed."""
    results = {block.tool_use_id: block for entry in entries for block in entry.message.tool_results}
    found, files = list[Operation](), dict[str, str]()
    for entry in entries:
        for block in entry.message.tool_uses:
            found.append(_operation(unwrap_call(block), results.get(block.id), len(found), files))
    return found


def call_input(call: ToolUseBlock) -> JsonObject:
    """Returns a call's input; empty if the model did not send an object."""
    given: Json = call.input
    return cast(JsonObject, given) if isinstance(given, dict) else {}


def changes_of(call: ToolUseBlock) -> list[tuple[str, str]]:
    """Returns what a changing call takes out and puts in, one pair per edit; empty for other calls."""
    given = call_input(call)
    if call.name == "Write":
        return [("", str(given.get("content") or ""))]
    if call.name == "NotebookEdit":
        return [("", str(given.get("new_source") or ""))]
    if call.name == "Edit":
        return [(str(given.get("old_string") or ""), str(given.get("new_string") or ""))]
    if call.name == "MultiEdit" and isinstance(given.get("edits"), list):
        edits = [cast(JsonObject, one) for one in cast(list[Json], given["edits"]) if isinstance(one, dict)]
        return [(str(one.get("old_string") or ""), str(one.get("new_string") or "")) for one in edits]
    return []


def path_of(call: ToolUseBlock) -> str:
    """Returns the file of a call; empty if it names none."""
    given = call_input(call)
    return str(given.get("file_path") or given.get("notebook_path") or "")


def plain_command(command: str) -> str:
    """Returns a command on one line without a leading `cd`, so that two runs of it look the same."""
    return one_line(_GO_THERE.sub("", command.strip()), _COMMAND)


def only_shows(command: str) -> bool:
    """Returns whether a command, as `plain_command` returns it, only prints something."""
    return bool(_SHOWS.match(command)) and not _WRITES.search(command)


def paths_in_command(command: str) -> list[str]:
    """Returns the paths of files in a command: words with a folder and a file extension, not addresses."""
    return [word.removeprefix("./") for word in _PATH.findall(command) if not _HOST.match(word)]


def one_line(text: str, limit: int) -> str:
    """Returns the text without line breaks, cut with an ellipsis."""
    flat = " ".join(text[: 8 * limit].split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def _operation(call: ToolUseBlock, result: ToolResultBlock | None, order: int, files: dict[str, str]) -> Operation:
    kind = _KINDS.get(call.name, "other")
    given = call_input(call)
    text = result.text if result is not None else ""
    failed = result is not None and (bool(result.is_error) or bool(_EXIT.match(text)))
    target = _target(kind, call, given)
    places = tuple[str, ...]()
    if kind == "read" and not failed and result is not None:
        files[target] = text
    elif kind in ("edit", "write") and not failed:
        places = tuple(_touched_definitions(call, files.get(target, "")))
    elif kind == "search" and not failed:
        places = tuple(dict.fromkeys(m[1] for line in text.splitlines()[:80] if (m := _FOUND_FILE.match(line))))[:12]
    said = _failure(text) if failed else _outcome(kind, call, given, text)
    return Operation(kind, call.name, target, not failed, said, order, places)


def _target(kind: Kind, call: ToolUseBlock, given: JsonObject) -> str:
    match kind:
        case "read" | "write" | "edit":
            return path_of(call)
        case "run":
            return plain_command(str(given.get("command", "")))
        case "search":
            where = given.get("path") or given.get("glob") or ""
            return one_line(f"{given.get('pattern', '')}" + (f" in {where}" if where else ""), 200)
        case "web":
            return one_line(str(given.get("url") or given.get("query") or ""), 200)
        case "agent":
            return one_line(str(given.get("description") or given.get("prompt") or ""), 200)
        case "tasks" | "other":
            return one_line(", ".join(f"{key}={one_line(str(value), 40)}" for key, value in given.items()), _LINE)


def _touched_definitions(call: ToolUseBlock, file: str) -> list[str]:
    found = list[str]()
    text = without_numbers(file) if file else ""
    for old, new in changes_of(call):
        names = definitions(new) or definitions(old)
        around = enclosing(text, old) if not names and text else None
        found += names or ([around] if around else [])
    return list(dict.fromkeys(found))[:12]


def _failure(text: str) -> str:
    if _REFUSED.search(text):
        return "the user refused it"
    code = _EXIT.match(text)
    body = _TAG.sub("", text[code.end() :] if code else text)
    lines = [line.strip() for line in body.splitlines() if line.strip()]
    telling = (
        next((line for line in lines if _POINTS.match(line) and not _WRAPS.search(line)), None)
        or next((line for line in lines if _TELLING.search(line)), None)
        or (lines[0] if lines else "no output")
    )
    prefix = f"exit {code[1]}: " if code else ""
    return prefix + one_line(telling, _LINE)


def _outcome(kind: Kind, call: ToolUseBlock, given: JsonObject, text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip() and not _ASIDE.match(line)]
    match kind:
        case "read":
            return _stretch(given)
        case "edit" | "write":
            return _change(call)
        case "run":
            bare = [said for line in lines if (said := _TAG.sub("", line)).strip()]
            return _sum_up_output(str(given.get("command", "")), bare)
        case "search":
            return _lines(len(lines)) if lines and not _NONE_FOUND.match(lines[0]) else "nothing"
        case "web" | "agent" | "tasks" | "other":
            return one_line(lines[0], _LINE) if lines else "done"


def _stretch(given: JsonObject) -> str:
    first, count = given.get("offset"), given.get("limit")
    if not isinstance(first, int) and not isinstance(count, int):
        return "whole"
    start = first if isinstance(first, int) and first > 0 else 1
    return f"{start}–{start + count - 1}" if isinstance(count, int) else f"{start}–"


def _sum_up_output(command: str, lines: list[str]) -> str:
    if not lines:
        return "no output"
    if len(lines) > 1 and _SHOWS.match(plain_command(command)):
        return _lines(len(lines))
    summing = [line for line in lines if _SUMMING.search(line)]
    return one_line(summing[-1] if summing else lines[-1], _LINE)


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"


def _change(call: ToolUseBlock) -> str:
    pairs = changes_of(call)
    out, put = sum(len(old.splitlines()) for old, _ in pairs), sum(len(new.splitlines()) for _, new in pairs)
    size = f"written, {put} lines" if call.name == "Write" else f"−{out} +{put}"
    telling = next((line for old, new in pairs if (line := telling_line(old, new))), "")
    return f"{size}: {one_line(telling, 100)}" if telling else f"{size}, only removed" if out else size
