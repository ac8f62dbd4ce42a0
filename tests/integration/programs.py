"""Programs of others, each in an environment of its own, and the simulator that they talk to: `make integration`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reverie.models.script import Script
from reverie.simulator import ScriptResponder, Simulator
from reverie.simulator.http import running
from reverie.simulator.ledger import Billing

FOLDER = os.environ.get("REVERIE_TEST_CLIENTS", "")
DRIVERS = Path(__file__).with_name("drivers")
LIMIT_S = 150
"""The most time for one run of a program; they take 1 to 20 seconds."""


@dataclass(frozen=True, slots=True)
class Served:
    """A simulator that is running, and what it billed."""

    simulator: Simulator
    url: str

    @property
    def rows(self) -> list[Billing]:
        """The requests that were answered."""
        return [row for row in self.simulator.ledger.rows if row.error is None]

    @property
    def errors(self) -> list[str]:
        return [row.error for row in self.simulator.ledger.rows if row.error is not None]

    @property
    def misses(self) -> list[tuple[str, str]]:
        return [(row.miss.cause, row.miss.path) for row in self.rows if row.miss is not None]


@contextmanager
def serve(script: str, **more: Any) -> Iterator[Served]:
    simulator = Simulator(ScriptResponder(Script.parse(script)), **more)
    with running(simulator) as url:
        yield Served(simulator, url)


def installed(name: str, program: str) -> Path:
    """A program of an environment; skips the test, and says why, if it is not there."""
    found = sorted(Path(FOLDER, name).glob(program)) if FOLDER else []
    if not found:
        pytest.skip(f"{name} is not installed here ({program}); `make integration` installs it if it can")
    return found[0]


Run = Callable[..., str]
"""Runs a program, and returns what it prints."""


def last_object(output: str) -> dict[str, Any]:
    """The JSON object in the last line."""
    return json.loads(output.strip().splitlines()[-1])


def objects(output: str) -> list[dict[str, Any]]:
    """The JSON objects, one per line; other lines are left out."""
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]
