"""A tool call on one line: the tool, its target and its outcome. Used by chat, run, demo and `sessions show`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

from reverie.cli.output import Paint, format_seconds, one_line, plural
from reverie.text.columns import cut, width
from reverie.types import Json, JsonObject

_KEPT = re.compile(r"^\[… [\d,]+ bytes in (?P<lines>[\d,]+) lines in all; ", re.MULTILINE)
_NUMBERED = re.compile(r"\s*\d+\t")  # a line as Read gives it
_TARGET_KEYS = ("file_path", "command", "pattern", "path", "query", "url", "prompt", "description", "name")


def call_text(name: str, given: Json, cwd: Path | None = None, most: int = 200) -> str:
    """A call in short: `Read src/app.py`, `Grep "port" in src`, `Bash $ git status`."""
    if not isinstance(given, dict):
        return one_line(name, most)
    target = _target(name, cast(JsonObject, given), cwd)
    return one_line(f"{name} {target}" if target else name, most)


def _target(name: str, given: JsonObject, cwd: Path | None) -> str:
    text = {key: str(value) for key, value in given.items() if isinstance(value, str | int | float)}
    match name:
        case "Bash":
            return f"$ {text.get('command', '')}"
        case "Agent":
            return " ".join(filter(None, (text.get("subagent_type", ""), f"({text.get('description', '')})")))
        case "Grep" | "Glob":
            where = [f"in {_relative_path(text[key], cwd)}" for key in ("path", "glob") if text.get(key)]
            pattern = text.get("pattern", "")
            return " ".join([f'"{pattern}"' if name == "Grep" else pattern, *where])
        case "Read":
            path = _relative_path(text.get("file_path", ""), cwd)
            if "offset" in text or "limit" in text:
                first = int(float(text.get("offset") or 1))
                last = f"–{first + int(float(text['limit'])) - 1}" if "limit" in text else "–"
                return f"{path}:{first}{last}"
            return path
        case "SendMessage":
            return f"to {text.get('to', '')}: {text.get('summary') or text.get('message', '')}"
        case _:
            value = next((text[key] for key in _TARGET_KEYS if text.get(key)), "")
            return _relative_path(value, cwd) if "file_path" in text else value


def _relative_path(path: str, cwd: Path | None) -> str:
    if cwd is None or not path.startswith("/"):
        return path
    try:
        return str(Path(path).relative_to(cwd))
    except ValueError:
        return path


def result_note(text: str, is_error: bool) -> str:
    """The outcome of a call in a few words: the number of lines, or the first line of the error."""
    if is_error:
        first = next((line for line in text.splitlines() if line.strip()), "failed")
        return one_line(first, 200)
    lines = text.count("\n") + bool(text and not text.endswith("\n"))
    if kept := _KEPT.search(text):  # the beginning and the end of a longer output
        lines = int(kept["lines"].replace(",", ""))
    numbered = _NUMBERED.match(text) is not None
    return plural(lines, "line") if lines > 1 or numbered else one_line(text, 60)


def result_line(
    call: str, text: str, is_error: bool, duration: float | None, paint: Paint, columns: int, how: str = ""
) -> str:
    """`✓ Bash $ ls  4 lines · sandbox · 0.1 s`, cut to the width; an error keeps its sentence and shortens the call."""
    mark = paint.bad("✗") if is_error else paint.good("✓")
    note = result_note(text, is_error)
    took = "" if duration is None or duration < 0.05 else format_seconds(duration)
    took = " · ".join(filter(None, (how, took)))
    room = columns - 4 - (len(took) + 3 if took else 0)
    call = cut(call, room // 2 if is_error else room - min(width(note), 24))
    note = cut(note, room - width(call))
    tail = " · ".join(part for part in (note, took) if part)
    shown = paint.bad(tail) if is_error else paint.dim(tail)
    return f"{mark} {call}  {shown}" if tail else f"{mark} {call}"
