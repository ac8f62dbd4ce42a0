"""The simulator's ledger: what each request read, wrote and paid, and why the cache was missed.

It is in memory and, if a file is named, also appended to it as JSON lines.
"""

from __future__ import annotations

import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

from reverie.errors import StorageError, UserError
from reverie.quick import dataclass
from reverie.regular_files import open_regular
from reverie.simulator.explain import Miss
from reverie.types import Usage


@dataclass(frozen=True, slots=True)
class Billing:
    """The bill of one request. `hit` and `written` are paths of blocks; `cost` is in US dollars."""

    number: int
    at: float
    endpoint: str
    model: str
    workspace: str
    purpose: str
    usage: Usage
    cost: float
    input_equivalents: float
    positions: int = 0
    hit: str | None = None
    written: tuple[str, ...] = ()
    miss: Miss | None = None
    compaction: Usage | None = None
    """Tokens of a compaction that the server ran first; part of the cost, not of `usage`."""
    applied_edits: tuple[dict[str, Any], ...] = ()
    error: str | None = None
    message_id: str | None = None

    def wire(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "cost"}
        return values | {
            "usage": self.usage.wire(),
            "prompt_tokens": self.usage.prompt,
            "cost_usd": self.cost,
            "written": list(self.written),
            "miss": None if self.miss is None else self.miss.wire(),
            "compaction": None if self.compaction is None else self.compaction.wire(),
            "applied_edits": list(self.applied_edits),
        }


class Ledger:
    """The bills of all requests, in order."""

    def __init__(self, path: Path | None = None) -> None:
        self.rows: list[Billing] = []
        self._path = path

    @staticmethod
    def check_writable(path: Path) -> None:
        """Raises `UserError` if the file cannot be written."""
        try:
            os.close(open_regular(path, append=True))
        except OSError as error:
            raise UserError(f"The ledger {path} cannot be written: {error.strerror or error}.") from error

    def book(self, row: Billing) -> None:
        """Adds a bill, and appends it to the file if there is one."""
        self.rows.append(row)
        if self._path is None:
            return
        try:
            # Half a surrogate pair becomes a JSON escape.
            fd = open_regular(self._path, append=True)
            with os.fdopen(fd, "a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(json.dumps(row.wire(), ensure_ascii=False) + "\n")
        except OSError as error:
            raise StorageError(f"The ledger {self._path} cannot be written: {error.strerror or error}.") from error

    def totals(self) -> dict[str, Any]:
        """Sums over all requests: tokens by class, cost, and the cost of misses."""
        usage = sum((row.usage for row in self.rows), Usage())
        misses = [row.miss for row in self.rows if row.miss is not None]
        prompt = usage.prompt
        return {
            "requests": len(self.rows),
            "errors": sum(row.error is not None for row in self.rows),
            "usage": usage.wire(),
            "cost_usd": sum(row.cost for row in self.rows),
            "input_equivalents": sum(row.input_equivalents for row in self.rows),
            "hit_rate": usage.cache_read_input_tokens / prompt if prompt else 0.0,
            "misses": len(misses),
            "missed_tokens": sum(miss.lost_tokens for miss in misses),
            "missed_cost_usd": sum(miss.cost for miss in misses),
        }

    def wire(self) -> dict[str, Any]:
        return {"requests": [row.wire() for row in self.rows], "totals": self.totals()}
