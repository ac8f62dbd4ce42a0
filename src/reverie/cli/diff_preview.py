"""What a permission question shows of the change it asks about: a short coloured diff, or the command itself.

Reads the file the call names, never writes. Everything is made visible: what is approved is what is shown.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from reverie.cli.output import Paint, cut, exact
from reverie.regular_files import read_regular_text
from reverie.types import Json, JsonObject

MOST_LINES = 40
_MOST_BYTES = 1_000_000


def preview(tool: str, given: Json, cwd: Path, paint: Paint, columns: int) -> list[str]:
    """The lines to show before the question."""
    if not isinstance(given, dict):
        return []
    call = cast(JsonObject, given)
    match tool:
        case "Bash":
            lines = [paint.bold(line) for line in exact(str(call.get("command", ""))).split("\n")]
        case "Write":
            before = _text(cwd, call)
            lines = _diff(before or "", str(call.get("content", "")), paint, columns)
        case "Edit":
            old, new = str(call.get("old_string", "")), str(call.get("new_string", ""))
            before = _text(cwd, call)
            if before is None or old not in before:
                lines = _diff(old, new, paint, columns)
            else:
                count = -1 if call.get("replace_all") else 1
                lines = _diff(before, before.replace(old, new, count), paint, columns)
        case _:
            lines = [f"{key}: {cut(exact(str(value)), columns)}" for key, value in call.items()]
    return _shortened(lines, paint)


def _text(cwd: Path, call: JsonObject) -> str | None:
    try:
        path = cwd / Path(str(call.get("file_path", ""))).expanduser()
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return None
        return read_regular_text(path, errors="replace")
    except (OSError, RuntimeError, ValueError):  # it cannot be read: the call itself will say why
        return None


def _diff(before: str, after: str, paint: Paint, columns: int) -> list[str]:
    return list(_coloured(before, after, paint, columns))


def _coloured(before: str, after: str, paint: Paint, columns: int) -> Iterator[str]:
    old, new = before.splitlines(), after.splitlines()
    number = 0
    for line in difflib.unified_diff(old, new, n=2, lineterm=""):
        if line.startswith(("---", "+++")) and not number:
            continue
        if line.startswith("@@"):
            number = int(line.split("+")[1].split(",")[0].split(" ")[0])
            continue
        text = cut(exact(line[1:]).replace("\t", "    "), columns - 7)
        match line[0]:
            case "+":
                yield paint.dim(f"{number:>4} ") + paint.good(f"+ {text}")
                number += 1
            case "-":
                yield "     " + paint.bad(f"- {text}")
            case _:
                yield paint.dim(f"{number:>4}   {text}")
                number += 1


def _shortened(lines: list[str], paint: Paint) -> list[str]:
    if len(lines) <= MOST_LINES:
        return lines
    return [*lines[: MOST_LINES - 1], paint.dim(f"… {len(lines) - MOST_LINES + 1} more lines")]
