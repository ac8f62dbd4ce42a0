"""The state of a background writer over all sessions of this home: its last success, its cost, and why it did not run.

One small file per writer. `reverie doctor` shows it, and it decides when the user learns of repeated failures.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

from reverie.errors import StorageError
from reverie.parsing import load_json
from reverie.quick import dataclass
from reverie.regular_files import read_regular
from reverie.storage.atomic import make_private_dir, write_atomic
from reverie.types import JsonObject, Usage

REPORTED_FAILURES: Final = 3
"""After this many failures in a row the user is informed once, until the next success."""


@dataclass(frozen=True, slots=True)
class Beat:
    """The state of a writer. Times are ISO; an empty time means never."""

    succeeded: str = ""  # when a run last succeeded
    run: JsonObject = field(default_factory=dict[str, Any])
    """Figures of that run: seconds, rounds, tokens, what it wrote."""
    failed: str = ""
    error: str = ""
    failures: int = 0  # in a row
    stopped: str = ""
    gate: str = ""  # the gate that stopped it last


def run_figures(usage: Usage, *, rounds: int, seconds: float | None = None) -> JsonObject:
    """Returns the figures of a run: its time, its tokens, and the share that came from the cache."""
    figures: JsonObject = {} if seconds is None else {"seconds": round(seconds, 3)}
    return figures | {
        "rounds": rounds,
        "prompt_tokens": usage.prompt,
        "output_tokens": usage.output_tokens,
        "cache_read_share": round(usage.cache_read_input_tokens / usage.prompt, 4) if usage.prompt else 0.0,
    }


class Heartbeat:
    """The file of one writer."""

    def __init__(
        self,
        path: Path,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        stopped: Callable[[str], None] = lambda _gate: None,
    ) -> None:
        """`stopped` is called each time that a gate stops the writer."""
        self._path = path
        self._now = now
        self._stopped = stopped
        self._gate: str | None = None  # what this process wrote last

    def read(self) -> Beat:
        """Reads the file; returns an empty state if it is missing or broken."""
        try:
            raw: Any = load_json(read_regular(self._path))
            given = cast(JsonObject, raw)
            known: dict[str, type[object]] = {name: type(value) for name, value in asdict(Beat()).items()}
            return Beat(**{name: given[name] for name, kind in known.items() if isinstance(given.get(name), kind)})
        except (OSError, ValueError, TypeError, AttributeError):
            return Beat()

    def success(self, **figures: Any) -> None:
        """Records a successful run."""
        self._write(replace(self.read(), succeeded=self._time(), run=figures, failures=0, error="", gate=""))
        self._gate = ""

    def failure(self, error: str) -> bool:
        """Records a failed run; returns whether to inform the user now."""
        before = self.read()
        beat = replace(before, failed=self._time(), error=error[:300], failures=before.failures + 1)
        self._write(beat)
        return beat.failures == REPORTED_FAILURES

    def stop(self, gate: str) -> None:
        """Records that a gate stopped it; writes only if that is new."""
        self._stopped(gate)
        if gate != self._gate:
            self._gate = gate
            self._write(replace(self.read(), stopped=self._time(), gate=gate))

    def _time(self) -> str:
        return self._now().isoformat(timespec="seconds")

    def _write(self, beat: Beat) -> None:
        with suppress(StorageError):
            make_private_dir(self._path.parent)
            write_atomic(self._path, json.dumps(asdict(beat), ensure_ascii=False).encode() + b"\n", fsync=False)
