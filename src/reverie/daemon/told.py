"""What each session of another agent was told: on disk before the answer, so that nothing is said twice.

One small file per session and one for the day, under one lock, so that two services or two sessions agree. A compaction
empties a context, and then what is needed may be said again. It never waits long: without the lock it says nothing.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, cast

from reverie.models.tokens import estimate_text
from reverie.parsing import load_json
from reverie.paths.places import check_session_id
from reverie.quick import dataclass
from reverie.regular_files import read_regular
from reverie.settings.background_sections import ConnectSettings
from reverie.storage.atomic import make_private_dir, write_atomic
from reverie.storage.locks import exclusive
from reverie.types import JsonObject

LOCK_S: Final = 0.5
KEPT_DAYS: Final = 35
_MOST_BYTES: Final = 1_000_000


@dataclass(slots=True)
class Told:
    """What one session knows from us. `memories`, `pins` and `index` are about its present context."""

    memories: list[str] = field(default_factory=list[str])
    pins: list[str] = field(default_factory=list[str])
    index: bool = False
    tokens: int = 0
    """Of everything that was added since the session began."""
    restored: str = ""
    """What the start of this context gave back: the measure of a compaction counts it as kept."""
    pending: str = ""
    """What the next prompt or tool result adds."""

    def empty_context(self) -> None:
        """Forgets what the context had: a compaction took it."""
        self.memories, self.pins, self.index, self.restored, self.pending = [], [], False, "", ""

    def add(self, text: str, room: int) -> str:
        """Counts a text that is added, and returns it; nothing if it has more tokens than there is room for."""
        tokens = estimate_text(text)
        if tokens > room:
            return ""
        self.tokens += tokens
        return text


class ToldBook:
    """The files of all sessions of one home."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sessions = folder / "sessions"

    def look(self, session: str) -> Told:
        """Reads what a session was told. A file that is missing or broken counts as nothing."""
        given = _read(self._sessions / f"{check_session_id(session)}.json")
        known: dict[str, Any] = asdict(Told())
        return Told(**{name: given[name] for name, value in known.items() if _is_like(given.get(name), value)})

    @contextmanager
    def changing(self, session: str) -> Generator[tuple[Told, int]]:
        """Yields what a session was told, to change it, and the tokens of today. Stores it at the end of the `with`.

        Raises `StorageError` if it cannot be locked or stored: then nothing may be said.
        """
        make_private_dir(self._sessions)
        with exclusive(self._folder / "lock", timeout_s=LOCK_S, what="the state of the hooks"):
            day = _day()  # one day for all of it, also at midnight
            told, today = self.look(session), self.today(day)
            before = asdict(told)
            yield told, today
            if told.tokens != before["tokens"]:
                spent = {"day": day, "tokens": today + told.tokens - before["tokens"]}
                write_atomic(self._folder / "today.json", json.dumps(spent).encode(), fsync=False)
            if asdict(told) != before:
                write_atomic(self._sessions / f"{session}.json", _dump(asdict(told)), fsync=False)

    def today(self, day: str = "") -> int:
        """Returns how many tokens were added today, or on that day, in all sessions."""
        found = _read(self._folder / "today.json")
        tokens = found.get("tokens")
        return tokens if found.get("day") == (day or _day()) and isinstance(tokens, int) else 0

    def forget(self, session: str) -> None:
        """Removes the files of one session."""
        for folder in (self._sessions, self._folder / "digests"):
            (folder / f"{check_session_id(session)}.json").unlink(missing_ok=True)

    def forget_old(self) -> None:
        """Removes the files of sessions that nobody used for long."""
        oldest = datetime.now().timestamp() - KEPT_DAYS * 86_400
        for folder in (self._sessions, self._folder / "digests"):
            with suppress(OSError):
                for file in folder.iterdir():
                    if file.stat().st_mtime < oldest:
                        file.unlink(missing_ok=True)


def room_for_memories(told: Told, today: int, limits: ConnectSettings) -> int:
    """Returns how many tokens of memories a session may still get today."""
    return max(0, min(limits.session_tokens - told.tokens, limits.day_tokens - today))


def _day() -> str:
    return datetime.now().astimezone().date().isoformat()


def _dump(given: JsonObject) -> bytes:
    return json.dumps(given, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _read(path: Path) -> JsonObject:
    try:
        raw: Any = load_json(read_regular(path, _MOST_BYTES))
    except (OSError, ValueError):
        return {}
    return cast(JsonObject, raw) if isinstance(raw, dict) else {}


def _is_like(given: object, known: object) -> bool:
    if isinstance(known, list):
        return isinstance(given, list) and all(isinstance(one, str) for one in cast("list[object]", given))
    return type(given) is type(known)
