"""The heartbeat of dreaming: the last success, the result and cost of the last try, and the number of failures.

One small JSON file in a hidden folder of the memory directory, shared by all sessions and commands. If it is lost,
dreaming goes on as if nothing had ever failed.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, Final, cast

from reverie.errors import StorageError
from reverie.parsing import load_json
from reverie.quick import dataclass
from reverie.regular_files import read_regular
from reverie.storage.atomic import make_private_dir, write_atomic
from reverie.types import JsonObject

FOLDER: Final = ".dreams"
_NAME: Final = "state.json"


@dataclass(frozen=True, slots=True)
class DreamState:
    """What is known about the dreams of one memory directory. Times are seconds since 1970."""

    last_success: float | None = None
    last_attempt: float | None = None
    outcome: str = ""
    """Of the last attempt: landed, unchanged, proposed, failed or killed."""
    reason: str = ""
    failures_in_a_row: int = 0
    told: bool = False
    """The user knows that it failed three times in a row."""
    way: str = ""
    rounds: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    hit_rate: float = 0.0
    denied: int = 0
    version: str = ""
    """The version of the last dream that changed anything."""
    distilled: str = ""
    """The last day whose log was distilled, in ISO form."""

    def to_json(self) -> JsonObject:
        return asdict(self)


class StateFile:
    """The state of one memory directory on disk. Never raises for disk errors."""

    def __init__(self, memory: Path) -> None:
        self.path = memory / FOLDER / _NAME

    def read(self) -> DreamState:
        """Returns the state; an empty one if the file cannot be read."""
        try:
            raw: Any = load_json(read_regular(self.path))
        except (OSError, ValueError):
            return DreamState()
        if not isinstance(raw, dict):
            return DreamState()
        given = cast("dict[str, Any]", raw)
        known = {field.name: getattr(DreamState(), field.name) for field in fields(DreamState)}
        kept = {name: value for name, value in given.items() if name in known and _fits(value, known[name])}
        return DreamState(**kept)

    def change(self, **changed: Any) -> DreamState:
        """Writes these fields over the current ones."""
        now = replace(self.read(), **changed)
        try:
            make_private_dir(self.path.parent)
            write_atomic(self.path, json.dumps(now.to_json(), ensure_ascii=False).encode(errors="replace"), fsync=False)
        except StorageError:
            pass
        return now


def _fits(value: object, default: object) -> bool:
    if default is None:
        return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
    if isinstance(default, float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is type(default)
