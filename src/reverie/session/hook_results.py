"""The result of a tool as hooks see it, and what a hook gives in its place: in the shapes that Claude Code has."""

from __future__ import annotations

import json
from typing import cast

from reverie.tools.base import ToolOutput
from reverie.types import Json, JsonObject, TextBlock, ToolUseBlock


def show_response(call: ToolUseBlock, output: ToolOutput) -> Json:
    """Returns the whole result: an object for Bash, Read, Write and Edit, else text or a list of blocks."""
    if not isinstance(output.content, str):
        return [block.wire() for block in output.content]
    text = output.content
    if output.is_error:
        return text
    match call.name:
        case "Bash":
            return {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
        case "Read":
            return {"type": "text", "file": {"filePath": _path(call), "content": text}}
        case "Write" | "Edit":
            return {"filePath": _path(call), "message": text}
        case _:
            return text


def read_replacement(given: Json) -> str | tuple[TextBlock, ...] | None:
    """Returns the text that a hook gives instead of a result; None if it gives none."""
    if given is None or isinstance(given, str):
        return given
    if isinstance(given, dict):
        return _read_object(cast("JsonObject", given))
    if isinstance(given, list):
        parts = [_read_text(one) for one in cast("list[Json]", given)]
        if parts and all(part is not None for part in parts):
            return "\n".join(cast("list[str]", parts))
    return _dump(given)


def _read_object(given: JsonObject) -> str:
    if "stdout" in given:
        texts = (given.get("stdout"), given.get("stderr"))
        return "\n".join(text for text in texts if isinstance(text, str) and text)
    file = given.get("file")
    inner = cast("JsonObject", file).get("content") if isinstance(file, dict) else None
    for text in (inner, given.get("content"), given.get("message"), _read_text(given)):
        if isinstance(text, str):
            return text
    return _dump(given)


def _read_text(given: Json) -> str | None:
    """The text of a block; None for anything else."""
    if not isinstance(given, dict):
        return None
    block = cast("JsonObject", given)
    text = block.get("text")
    return text if block.get("type") == "text" and isinstance(text, str) else None


def _path(call: ToolUseBlock) -> str:
    return str(call.input.get("file_path", ""))


def _dump(given: Json) -> str:
    return json.dumps(given, ensure_ascii=False)
