"""Lines of [memory] in Reverie's own settings file (`shared_with`, `store`), added and removed as text, so that
all else stays."""

from __future__ import annotations

import json
import re

from reverie.connect.files import UserFile
from reverie.connect.json_text import get_value
from reverie.errors import UserError
from reverie.parsing import Unparsable, load_toml

KIND = "reverie settings"
_HEADER = re.compile(r"(?m)^[ \t]*\[[ \t]*memory[ \t]*\][ \t]*(?:#.*)?$")
_OURS = re.compile(r'(?m)^(?:memory\.)?shared_with = "claude-code"\r?\n?')
_EMPTY = re.compile(r"(?:\r?\n)?\[memory\]\r?\n(?=\s*(?:\[|\Z))")


def add_sharing(file: UserFile) -> str:
    """The text of the settings with the line. If the user has set something else, that stays."""
    return add_value(file, "shared_with", "claude-code", "give --own-memory")


def add_value(file: UserFile, key: str, value: str, otherwise: str) -> str:
    """The text of the settings with a value of [memory]; as it is if there is one already. Raises `UserError` if it
    cannot be added; `otherwise` says what else the user can do."""
    text, line = file.text, f"{key} = {json.dumps(value, ensure_ascii=False)}"
    try:
        data = load_toml(text)
    except Unparsable as error:
        raise UserError(f"{file.path}: is not valid TOML ({error}); nothing was changed. Correct it first.") from error
    memory = data.get("memory", {})
    if isinstance(memory, dict) and key in memory:
        return text
    end = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text else end if text.endswith("\n") else end * 2
    for changed in (
        _HEADER.sub(lambda found: f"{found[0].rstrip(chr(13))}{end}{line}", text, count=1),
        f"{text}{gap}[memory]{end}{line}{end}",
        f"memory.{line}{end}{text}",
    ):
        try:
            found = load_toml(changed)
        except Unparsable:
            continue
        if found == {**data, "memory": {**memory, key: value}}:
            return changed
    raise UserError(f"{file.path}: has no place for a new line; add `{line}` to [memory] yourself, or {otherwise}.")


def is_shared(data: bytes | None) -> bool:
    """Whether settings share the memory of another program."""
    return bool(get_value(load_toml((data or b"").decode("utf-8-sig", "replace")), ("memory", "shared_with")))


def strip_sharing(text: str, before: str) -> str:
    """The settings without the line, and without an empty section that it needed."""
    text = _OURS.sub("", text, count=1)
    return text if "[memory]" in before else _EMPTY.sub("", text, count=1)
