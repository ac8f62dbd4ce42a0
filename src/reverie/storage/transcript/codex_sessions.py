"""Reads session files of Codex ("rollouts"): converts its messages, tool calls and results to our records.

Reasoning, events and system prompts are left out. A compaction becomes a boundary with its summary. The source file
never changes. The reader can stop after any line and continue there later.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from typing import Any, cast

from reverie.parsing import load_json
from reverie.storage.transcript.converted import compaction_records, name_record
from reverie.storage.transcript.file import BadLine, parse_record
from reverie.storage.transcript.foreign import is_injected
from reverie.types import Json, JsonObject, Origin, Record

_TOOLS = {"exec_command": "Bash", "shell": "Bash", "shell_command": "Bash", "local_shell": "Bash"}
_EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (\d+)", re.MULTILINE)
_HEAD_CHARACTERS = 400
"""The exit code of a command is in the first lines of its output."""
_KEPT = "\n\nMessages of the user before this point:\n\n"
_START: JsonObject = {"line": 0, "parent": None, "model": "", "common": None}


def is_codex_head(first: Json) -> bool:
    """Whether a file that begins with this value is a session of Codex."""
    return isinstance(first, dict) and cast(JsonObject, first).get("type") == "session_meta" and "payload" in first


class CodexReader:
    """Converts the lines of one file. `state` is what it needs to continue after the last line; pass it to the next."""

    def __init__(self, name: str, state: JsonObject | None = None) -> None:
        self._name = name
        self.state: JsonObject = {**_START, **(state or {})}
        self.bad: list[BadLine] = []
        self._blocks: list[JsonObject] = []
        self._head: JsonObject = {}

    def feed(self, lines: Iterable[bytes]) -> Iterator[Record]:
        """Yields the records of these lines. Empty lines do not count; a line that cannot be read is in `bad`."""
        for line in filter(bytes.strip, lines):
            self.state["line"] += 1
            try:
                entry: Any = load_json(line)
                payload = cast(JsonObject, entry["payload"])
                if not isinstance(cast(object, payload), dict):
                    raise TypeError("no payload")
                yield from self._entry(cast(JsonObject, entry), payload)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                self.bad.append(BadLine(self.state["line"], str(error) or type(error).__name__))
        yield from self._end_response(None)

    def _entry(self, entry: JsonObject, payload: JsonObject) -> Iterator[Record]:
        match entry.get("type"), payload.get("type"):
            case "session_meta", _ if self.state["common"] is None:  # a fork repeats those of the session it is from
                self.state["common"] = self._read_common(payload)
            case "turn_context", _:
                self.state["model"] = str(payload.get("model") or self.state["model"])
            case "token_usage_record", _:
                yield from self._end_response(payload.get("usage"))
            case "event_msg", "token_count":
                info = cast(JsonObject, payload.get("info") or {})
                yield from self._end_response(info.get("last_token_usage"))
            case "compacted", _:
                yield from self._end_response(None)
                yield from self._compaction(self._new(entry), payload)
            case "response_item", kind:
                yield from self._item(entry, payload, str(kind))
            case _:
                return

    def _read_common(self, meta: JsonObject) -> JsonObject:
        git: JsonObject = meta.get("git") or {}
        return {
            "sessionId": str(meta.get("id") or self._name),
            "cwd": str(meta.get("cwd") or ""),
            "version": f"codex {meta.get('cli_version') or ''}".strip(),
            "gitBranch": str(git.get("branch") or ""),
            "isSidechain": _is_of_agent(meta),
        }

    def _item(self, entry: JsonObject, item: JsonObject, kind: str) -> Iterator[Record]:
        if kind == "message" and item.get("role") == "assistant":
            self._add(entry, *({"type": "text", "text": text} for text in _texts(item.get("content")) if text))
        elif kind in ("function_call", "custom_tool_call", "local_shell_call"):
            self._add(entry, _call(item, kind))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            yield from self._end_response(None)
            yield self._message(entry, {"type": "user"}, [_result(item)])
        elif kind == "message":
            content = [_part(part) for part in cast(list[JsonObject], item.get("content") or [])]
            origins = _origins(item, content)
            if item.get("role") == "user" or Origin.HOOK in origins:  # else a part of the system prompt
                yield from self._end_response(None)
                claimed: JsonObject = {"origins": [one.value for one in origins]} if origins else {}
                yield self._message(entry, {"type": "user", **claimed}, content)

    def _add(self, entry: JsonObject, *blocks: JsonObject) -> None:
        if blocks and not self._blocks:
            self._head = self._new(entry)
        self._blocks += blocks

    def _end_response(self, usage: Json) -> Iterator[Record]:
        """Ends the response whose parts were read so far. Codex writes its usage after its last part."""
        if not self._blocks:
            return
        blocks, self._blocks = self._blocks, []
        message: JsonObject = {
            "role": "assistant",
            "id": f"codex_{self._head['uuid']}",
            "type": "message",
            "model": self.state["model"],
            "content": blocks,
            "stop_reason": "tool_use" if any(one["type"] == "tool_use" for one in blocks) else "end_turn",
        }
        if isinstance(usage, dict):
            message["usage"] = _usage(cast(JsonObject, usage))
        self.state["parent"] = self._head["uuid"]
        yield parse_record({**self._head, "type": "assistant", "message": message})

    def _message(self, entry: JsonObject, fields: JsonObject, content: list[JsonObject]) -> Record:
        head = self._new(entry)
        self.state["parent"] = head["uuid"]
        return parse_record({**head, **fields, "message": {"role": "user", "content": content}})

    def _compaction(self, head: JsonObject, payload: JsonObject) -> Iterator[Record]:
        history = cast(list[JsonObject], payload.get("replacement_history") or [])
        users = [one for one in history if one.get("type") == "message" and one.get("role") == "user"]
        kept = [text for one in users for text in _texts(one.get("content")) if not _origins(one, []) and text]
        said = [text for text in kept if not is_injected(text)]
        summary = str(payload.get("message") or "") + (_KEPT + "\n\n".join(said) if said else "")
        boundary, message = compaction_records(head, summary, {}, [])
        self.state["parent"] = message.uuid
        yield boundary
        yield message

    def _new(self, entry: JsonObject) -> JsonObject:
        common = self.state["common"] or self._read_common({})
        name = name_record(f"{common['sessionId']}:{self.state['line']}")
        return {"parentUuid": self.state["parent"], **common, "uuid": name, "timestamp": entry.get("timestamp")}


def _is_of_agent(meta: JsonObject) -> bool:
    source: Json = meta.get("source")
    return meta.get("thread_source") == "subagent" or (isinstance(source, dict) and "subagent" in source)


def _origins(item: JsonObject, content: list[JsonObject]) -> list[Origin]:
    """Returns one origin per part; empty if nothing says that somebody other than the user wrote one of them."""
    passed: JsonObject = item.get("internal_chat_message_metadata_passthrough") or {}
    marks = cast(list[JsonObject], passed.get("content_item_metadata") or [])
    by = [cast(JsonObject, mark.get("provenance") or {}) for mark in marks]
    if all(one.get("type") in (None, "user") for one in by):
        return []
    by += [{} for _ in content[len(by) :]]
    return [
        Origin.HOOK
        if one.get("hook")
        else Origin.ENTERED
        if one.get("type") in (None, "user") and not is_injected(str(part.get("text") or ""))
        else Origin.IMPORTED
        for one, part in zip(by, content or [{} for _ in by], strict=False)
    ]


def _texts(content: Json) -> list[str]:
    parts = cast(list[Json], content) if isinstance(content, list) else [{"text": content}]
    found = [cast(JsonObject, part).get("text") for part in parts if isinstance(part, dict)]
    return [text for text in found if isinstance(text, str)]


def _part(part: JsonObject) -> JsonObject:
    url = str(part.get("image_url") or "")
    if url.startswith("data:") and ";base64," in url:
        kind, _, data = url.removeprefix("data:").partition(";base64,")
        return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}
    return {"type": "text", "text": str(part.get("text") or url)}


def _call(item: JsonObject, kind: str) -> JsonObject:
    name = str(item.get("name") or "local_shell")
    given: Json = item.get("input") if kind == "custom_tool_call" else item.get("arguments") or item.get("action")
    if isinstance(given, str) and kind == "function_call":
        given = _loaded(given)
    fields = cast(JsonObject, given) if isinstance(given, dict) else {"input": given}
    if name in _TOOLS and (command := fields.get("cmd") or fields.get("command")):
        fields = {"command": _command(command)}
    return {"type": "tool_use", "id": str(item["call_id"]), "name": _TOOLS.get(name, name), "input": fields}


def _command(given: Json) -> str:
    if not isinstance(given, list):
        return str(given)
    words = [str(word) for word in cast(list[Json], given)]
    return words[2] if len(words) == 3 and words[1] in ("-c", "-lc") else shlex.join(words)


def _result(item: JsonObject) -> JsonObject:
    output: Json = item.get("output")
    failed = False
    if isinstance(output, str) and output.startswith('{"output"') and isinstance(older := _loaded(output), dict):
        output = cast(JsonObject, older)
        failed = bool(cast(JsonObject, output.get("metadata") or {}).get("exit_code"))
        output = output.get("output")
    if isinstance(output, dict):
        failed = cast(JsonObject, output).get("success") is False
        output = cast(JsonObject, output).get("content")
    text = "\n".join(_texts(output))
    found = _EXIT.search(text[:_HEAD_CHARACTERS])
    failed = failed or (found is not None and found[1] != "0")
    parts = cast(list[Json], output) if isinstance(output, list) else []
    pictures = [_part(cast(JsonObject, part)) for part in parts if isinstance(part, dict) and "image_url" in part]
    content: Json = [{"type": "text", "text": text}, *pictures] if pictures else text
    result: JsonObject = {"type": "tool_result", "tool_use_id": str(item["call_id"]), "content": content}
    return {**result, "is_error": True} if failed else result


def _loaded(text: str) -> Json:
    try:
        return load_json(text)
    except ValueError:
        return text


def _usage(given: JsonObject) -> JsonObject:
    total, read, written = (
        int(given.get(key) or 0) for key in ("input_tokens", "cached_input_tokens", "cache_write_input_tokens")
    )
    return {
        "input_tokens": max(0, total - read - written),
        "output_tokens": int(given.get("output_tokens") or 0),
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
    }
