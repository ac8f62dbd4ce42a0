"""What a server counts about itself, as text for Prometheus. Counts have routes and statuses, never paths, names or
contents. Each process of `--workers` leaves its counts in a shared folder, and every answer has the sum."""

from __future__ import annotations

import json
import math
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

from reverie.errors import StorageError
from reverie.parsing import Unparsable, load_json
from reverie.regular_files import read_regular
from reverie.storage.atomic import write_atomic

_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_FRESH_S: Final = 5.0
"""A worker writes every second: what is older is of one that has ended."""
_KINDS: Final = {
    "reverie_requests_total": ("counter", "Requests by route and status."),
    "reverie_request_seconds": ("histogram", "How long requests took, by route."),
    "reverie_writes_total": ("counter", "Requests that changed something."),
    "reverie_recalls_total": ("counter", "Recalls that were answered."),
    "reverie_refused_total": ("counter", "Requests that were refused before they ran, by reason."),
    "reverie_pool_connections": ("gauge", "Connections to the database by state."),
    "reverie_pool_requests_waiting": ("gauge", "Requests that wait for a connection."),
    "reverie_dreams": ("gauge", "Dreams by status."),
    "reverie_schema_version": ("gauge", "The number of the last migration."),
    "reverie_database_up": ("gauge", "Whether the database answers."),
}
Labels = tuple[tuple[str, str], ...]


def label(**values: str) -> Labels:
    return tuple(sorted(values.items()))


class Measures:
    """The counts of one process."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        """Where the other processes of this server leave theirs; none if it is alone."""
        self._counts: defaultdict[tuple[str, Labels], float] = defaultdict(float)
        self.gauges: dict[tuple[str, Labels], float] = {}

    def count(self, name: str, **labels: str) -> None:
        self._counts[name, label(**labels)] += 1

    def time(self, route: str, seconds: float) -> None:
        name = "reverie_request_seconds"
        for most in (*_BUCKETS, math.inf):
            le = "+Inf" if most == math.inf else f"{most:g}"
            self._counts[f"{name}_bucket", label(route=route, le=le)] += seconds <= most
        self._counts[f"{name}_sum", label(route=route)] += seconds
        self._counts[f"{name}_count", label(route=route)] += 1

    def leave(self) -> None:
        """Writes the counts for the other processes."""
        if self._folder is not None:
            rows = [[kind, name, labels, value] for kind, name, labels, value in self._rows()]
            with suppress(StorageError):  # the figures of one second
                write_atomic(self._folder / f"{os.getpid()}.json", json.dumps(rows).encode(), fsync=False)

    def render(self, more: Mapping[tuple[str, Labels], float]) -> str:
        """Everything, of all processes; `more` has figures that no process owns."""
        total = defaultdict[tuple[str, Labels], float](float)
        for _kind, name, labels, value in (*self._rows(), *self._of_others()):
            total[name, labels] += value
        for key, value in more.items():
            total[key] = value
        lines = list[str]()
        for family, (kind, help) in _KINDS.items():
            names = {family, *(f"{family}_{end}" for end in ("bucket", "sum", "count"))}
            rows = sorted((key for key in total if key[0] in names), key=_order)
            if rows:
                lines += [f"# HELP {family} {help}", f"# TYPE {family} {kind}"]
            for name, labels in rows:
                shown = ",".join(f'{one}="{_escape(value)}"' for one, value in labels)
                lines.append(
                    f"{name}{{{shown}}} {total[name, labels]:.10g}" if shown else f"{name} {total[name, ()]:g}"
                )
        return "\n".join([*lines, ""])

    def _rows(self) -> Iterator[tuple[str, str, Labels, float]]:
        for kind, table in (("count", self._counts), ("gauge", self.gauges)):
            for (name, labels), value in table.items():
                yield kind, name, labels, value

    def _of_others(self) -> Iterator[tuple[str, str, Labels, float]]:
        for path in self._folder.glob("*.json") if self._folder else ():
            if path.stem == str(os.getpid()):
                continue
            try:
                is_fresh = time.time() - path.stat().st_mtime < _FRESH_S
                rows: Any = load_json(read_regular(path))
            except (OSError, Unparsable):
                continue
            for kind, name, labels, value in cast("list[tuple[str, str, list[list[str]], float]]", rows):
                if kind == "count" or is_fresh:
                    yield kind, name, tuple((one, of) for one, of in labels), value


def _order(key: tuple[str, Labels]) -> tuple[str, list[tuple[str, str]], float]:
    """By name and labels; the buckets of a histogram from small to large."""
    others = [one for one in key[1] if one[0] != "le"]
    return key[0], others, float(dict(key[1]).get("le", "0"))


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
