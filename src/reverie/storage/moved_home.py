"""Records of a home that was moved: its paths are read as paths below the home that is open now.

Every record of a session names the home it was written in. Nothing on disk is changed. Thinking is left as it is,
because the server that signed it checks it.
"""

from __future__ import annotations

import re
from typing import cast

from reverie.storage.transcript.file import parse_record
from reverie.types import Json, JsonObject, Record


def at_home(record: Record, home: str) -> Record:
    """The record with every path below the home it was written in turned into one below `home`."""
    old = record.data.get("home")
    if not isinstance(old, str) or not old or old == home:
        return record
    pattern = re.compile(rf"(?<![\w./-]){re.escape(old)}(?![\w.-])")
    moved = cast(JsonObject, _moved(record.stored(), pattern, home))
    return parse_record({**moved, "home": old})


def is_moved(record: Record, home: str) -> bool:
    """Whether the record was written while the home was somewhere else."""
    return record.data.get("home", home) != home


def _moved(value: Json, old: re.Pattern[str], new: str) -> Json:
    if isinstance(value, str):
        return old.sub(lambda _found: new, value)
    if isinstance(value, list):
        return [_moved(item, old, new) for item in cast(list[Json], value)]
    if isinstance(value, dict):
        given = cast(JsonObject, value)
        if given.get("type") in ("thinking", "redacted_thinking"):
            return given
        return {key: _moved(item, old, new) for key, item in given.items()}
    return value
