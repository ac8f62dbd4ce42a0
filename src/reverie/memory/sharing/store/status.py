"""How the syncs with a memory server went, in one small file: when the last one was complete, what the last problem
was, and when a background sync may try again. Each failure doubles the pause. A clock that jumps changes only that."""

from __future__ import annotations

import json
from pathlib import Path
from time import time
from typing import Any, Final, cast

from reverie.parsing import load_json
from reverie.quick import dataclass
from reverie.regular_files import read_regular
from reverie.storage.atomic import make_private_dir, write_atomic

_FIRST_S: Final = 5.0
_LONGEST_S: Final = 1_800.0


@dataclass(frozen=True, slots=True)
class SyncStatus:
    """The last syncs of one memory directory. Times are seconds since 1970 by the clock of this machine."""

    done_at: float = 0.0
    tried_at: float = 0.0
    failures: int = 0
    problem: str = ""
    who: str = ""
    held_back: tuple[str, ...] = ()

    @property
    def pause_s(self) -> float:
        """How long after the last try a background sync waits."""
        return min(_LONGEST_S, _FIRST_S * 2.0 ** min(self.failures - 1, 20)) if self.failures else 0.0

    def is_paused(self) -> bool:
        """Whether it failed just now. A time in the future counts as long ago."""
        return 0 <= time() - self.tried_at < self.pause_s

    def is_older_than(self, seconds: float) -> bool:
        return not 0 <= time() - self.done_at < seconds


def load_status(folder: Path) -> SyncStatus:
    try:
        raw = cast("dict[str, Any]", load_json(read_regular(folder / "status.json", 1_000_000)))
        return SyncStatus(
            float(raw["done_at"]),
            float(raw["tried_at"]),
            int(raw["failures"]),
            str(raw["problem"]),
            str(raw["who"]),
            tuple(str(one) for one in raw["held_back"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return SyncStatus()


def note_success(folder: Path, who: str, held_back: tuple[str, ...]) -> None:
    _save(folder, SyncStatus(time(), time(), 0, "", who, held_back))


def note_failure(folder: Path, problem: str) -> SyncStatus:
    before = load_status(folder)
    now = SyncStatus(before.done_at, time(), before.failures + 1, problem, before.who, before.held_back)
    _save(folder, now)
    return now


def _save(folder: Path, status: SyncStatus) -> None:
    make_private_dir(folder)
    names = ("done_at", "tried_at", "failures", "problem", "who", "held_back")
    raw = {name: getattr(status, name) for name in names}
    write_atomic(folder / "status.json", json.dumps(raw, ensure_ascii=False).encode("utf-8", "replace"), fsync=False)
