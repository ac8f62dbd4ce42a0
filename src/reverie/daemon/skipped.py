"""Events that reached no service: hooks note them (`hook.py`), and the next service works on their sessions.

Also the mark of the last attempt to start a service: whoever ends one on purpose removes it.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from reverie.daemon.hook import SKIPPED
from reverie.parsing import load_json
from reverie.paths import daemon_lock
from reverie.regular_files import LARGEST, read_regular
from reverie.runtime.background_log import BackgroundLog
from reverie.storage.atomic import remove
from reverie.types import JsonObject

_SHOWN: Final = timedelta(hours=24)


class Skipped(NamedTuple):
    """Events without a service in the last day: how many, when the last one was, and how many still wait for one."""

    events: int
    last: float
    waiting: int


def forget_attempt(home: Path) -> None:
    """Lets the next hook start a service at once."""
    remove(daemon_lock(home).with_name("daemon.started"))


def find_skipped(home: Path, log: BackgroundLog) -> Skipped:
    """Counts the events of the last day that reached no service."""
    waiting = [one for path in _files(home) for one in _read(path)]
    taken = log.read(since=datetime.now(UTC) - _SHOWN, kind="hook_skipped")
    times = [*map(_at, waiting), *(_at(entry.fields) for entry in taken)]
    count = sum(int(entry.fields.get("count") or 0) for entry in taken)
    return Skipped(len(waiting) + count, max(times, default=0.0), len(waiting))


def take_skipped(home: Path, log: BackgroundLog) -> list[JsonObject]:
    """Returns the last request of each session, logs how many there were, and forgets them."""
    found, last = 0, dict[object, JsonObject]()
    newest, taken = _files(home)
    if not taken.exists():
        with suppress(OSError):
            newest.replace(taken)  # a service that is killed here leaves it to the next one
    for one in _read(taken):
        found += 1
        payload: Any = one.get("payload")
        if isinstance(payload, dict) and payload:
            last[one.get("agent"), cast(JsonObject, payload).get("session_id")] = one
    if found:
        log.write("hook_skipped", count=found, at=max(map(_at, _read(taken)), default=0.0), sessions=len(last))
    return list(last.values())


def drop_taken(home: Path) -> None:
    """Forgets what `take_skipped` returned, when it is queued."""
    remove(_files(home)[1])


def _files(home: Path) -> tuple[Path, Path]:
    return home / SKIPPED, home / f"{SKIPPED}.taken"


def _read(path: Path) -> list[JsonObject]:
    try:
        lines = read_regular(path, LARGEST).splitlines()
    except OSError:
        return []
    return [one for one in map(_parse, lines) if one is not None]


def _parse(line: bytes) -> JsonObject | None:
    try:
        given: Any = load_json(line)
    except ValueError:
        return None
    return cast(JsonObject, given) if isinstance(given, dict) else None


def _at(given: JsonObject) -> float:
    at = given.get("at")
    return float(at) if isinstance(at, int | float) else 0.0
