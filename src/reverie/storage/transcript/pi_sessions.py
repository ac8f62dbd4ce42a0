"""Reads session files of the pi coding agent: converts its messages and tools to our records.

A compaction of pi becomes a boundary with its summary and the kept messages. The source file never changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

from reverie.parsing import load_json
from reverie.regular_files import LARGEST, read_regular
from reverie.storage.atomic import storage_error
from reverie.storage.transcript.converted import compaction_records, name_record
from reverie.storage.transcript.file import BadLine, Loaded, parse_record
from reverie.types import Json, JsonObject, Record

_TOOLS = {"read": "Read", "write": "Write", "edit": "Edit", "bash": "Bash", "grep": "Grep", "find": "Glob"}
_INPUTS = {
    "Read": {"path": "file_path"},
    "Write": {"path": "file_path"},
    "Edit": {"path": "file_path", "oldText": "old_string", "newText": "new_string"},
}
_STOPS = {"toolUse": "tool_use", "stop": "end_turn", "length": "max_tokens"}


def is_pi_head(first: Json) -> bool:
    """Whether a file that begins with this value is a session of pi."""
    return isinstance(first, dict) and cast(JsonObject, first).get("type") == "session" and "cwd" in first


def read_pi_session(path: Path) -> Loaded:
    """Returns the session as our records, in order; the same file always gives the same records. A line that cannot be
    read is reported."""
    try:
        lines = read_regular(path, LARGEST).split(b"\n")
    except OSError as error:
        raise storage_error(error, path, "read the session") from error
    bad = list[BadLine]()
    return Loaded(list(_convert(path, lines, bad)), bad)


def _convert(path: Path, lines: list[bytes], bad: list[BadLine]) -> Iterator[Record]:
    parent: str | None = None
    common: JsonObject = {"sessionId": path.stem, "cwd": "", "version": "pi", "isSidechain": False, "gitBranch": ""}
    shown = dict[str, int]()
    """The messages of the context so far, each with the place of its entry in the file."""
    named = dict[str, int]()
    place = -1
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        place += 1
        try:
            entry: Json = load_json(line)
        except ValueError as error:
            if number == len(lines):
                return  # torn: the writer was stopped in the middle of its last line
            bad.append(BadLine(number, f"not JSON ({error})"))
            continue
        if not isinstance(entry, dict):
            bad.append(BadLine(number, "not a JSON object"))
            continue
        entry = cast(JsonObject, entry)
        if entry.get("type") == "session":
            common |= {"sessionId": entry.get("id", path.stem), "cwd": entry.get("cwd", "")}
        name = name_record(f"{common['sessionId']}:{number}")
        head: JsonObject = {"parentUuid": parent, **common, "uuid": name, "timestamp": entry.get("timestamp")}
        message = entry.get("message")
        named[str(entry.get("id"))] = place
        if entry.get("type") == "compaction":
            first = _first_kept(entry, named, place)
            shown = {one: at for one, at in shown.items() if at >= first}
            meta: JsonObject = {"preTokens": entry.get("tokensBefore")}
            boundary, summary = compaction_records(head, str(entry.get("summary") or ""), meta, list(shown))
            yield boundary
            yield summary
            parent = summary.uuid
            continue
        if entry.get("type") != "message" or not isinstance(message, dict):
            yield Record({**head, **entry, "type": f"pi:{entry.get('type')}", "uuid": name})
            continue
        try:
            converted = _message(cast(JsonObject, message), name)
        except (KeyError, TypeError, AttributeError) as error:
            bad.append(BadLine(number, f"not a message as pi writes it ({error!r})"))
            continue
        yield parse_record({**head, **converted})
        parent = name
        if not converted.get("isApiErrorMessage"):  # errors are not part of a context
            shown[name] = place


def _first_kept(entry: JsonObject, named: dict[str, int], place: int) -> int:
    """Returns the place of the first kept entry, which pi names by place or id; the current place if it does not."""
    index: Json = entry.get("firstKeptEntryIndex")
    if isinstance(index, int):
        return index
    return named.get(str(entry.get("firstKeptEntryId")), place)


def _message(given: JsonObject, name: str) -> JsonObject:
    match given.get("role"):
        case "assistant":
            if given.get("stopReason") in ("error", "aborted") and not given.get("content"):
                return {"type": "assistant", "isApiErrorMessage": True, "message": _assistant(given, name)}
            return {"type": "assistant", "message": _assistant(given, name)}
        case "toolResult":
            result: JsonObject = {
                "type": "tool_result",
                "tool_use_id": given["toolCallId"],
                "content": given["content"],
            }
            if given.get("isError"):
                result["is_error"] = True
            carried = {"type": "user", "message": {"role": "user", "content": [result]}}
            return {**carried, "toolUseResult": given.get("details") or {}}
        case "bashExecution":
            text = f"The user ran `{given.get('command')}` (exit {given.get('exitCode')}):\n{given.get('output')}"
            return {"type": "user", "isMeta": True, "message": {"role": "user", "content": text}}
        case role:  # messages of its extensions and compactions are not the user's
            put_in: JsonObject = {} if role == "user" else {"isMeta": True}
            content = given.get("content") or given.get("summary") or ""
            return {"type": "user", **put_in, "message": {"role": "user", "content": content}}


def _assistant(given: JsonObject, name: str) -> JsonObject:
    usage: JsonObject = given.get("usage") or {}
    return {
        "role": "assistant",
        "id": f"pi_{name}",
        "type": "message",
        "model": given.get("model", ""),
        "content": [_block(block) for block in cast(list[JsonObject], given.get("content", []))],
        "stop_reason": _STOPS.get(str(given.get("stopReason")), given.get("stopReason")),
        "usage": {
            "input_tokens": usage.get("input", 0),
            "output_tokens": usage.get("output", 0),
            "cache_read_input_tokens": usage.get("cacheRead", 0),
            "cache_creation_input_tokens": usage.get("cacheWrite", 0),
        },
    }


def _block(block: JsonObject) -> JsonObject:
    match block.get("type"):
        case "toolCall":
            own = str(block["name"])
            name = _TOOLS.get(own, own)
            names = _INPUTS.get(name, dict[str, str]())
            given: JsonObject = block.get("arguments") or {}
            renamed = {names.get(key, key): value for key, value in given.items()}
            return {"type": "tool_use", "id": block["id"], "name": name, "input": renamed}
        case "thinking":
            signed = {"signature": block["thinkingSignature"]} if "thinkingSignature" in block else {}
            return {"type": "thinking", "thinking": block.get("thinking", ""), **signed}
        case _:
            return block
