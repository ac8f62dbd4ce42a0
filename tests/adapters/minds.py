"""A model for the tests of adapters: it plays replies in their order and keeps every request body."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from reverie.models.script import Script
from reverie.simulator import Reply, Simulator
from reverie.simulator.http import running
from reverie.simulator.ledger import Billing


@dataclass
class Mind:
    """Answers the n-th request with the n-th reply (lines of a script), and then with `Done.`"""

    replies: Iterable[str] = ()
    bodies: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._next = itertools.chain(self.replies, itertools.repeat("say Done."))

    async def reply(self, body: Mapping[str, Any], *, purpose: str = "main") -> Reply:
        self.bodies.append(copy.deepcopy(dict(body)))
        # The text makes the ids of calls differ.
        said = [{"role": "user", "content": f"request {len(self.bodies)}"}]
        return Script.parse(next(self._next)).reply(said, purpose="main")

    @property
    def sent(self) -> list[str]:
        """The messages of each request, as text."""
        return [json.dumps(body["messages"]) for body in self.bodies]


@dataclass
class Served:
    """A running simulator with this mind."""

    simulator: Simulator
    url: str

    @property
    def rows(self) -> list[Billing]:
        return [row for row in self.simulator.ledger.rows if row.error is None and row.endpoint == "/v1/messages"]

    @property
    def misses(self) -> list[tuple[int, str, str]]:
        return [(row.number, row.miss.cause, row.miss.path) for row in self.rows if row.miss is not None]


@contextmanager
def serve(mind: Mind, **more: Any) -> Iterator[Served]:
    simulator = Simulator(mind, **more)
    with running(simulator) as url:
        yield Served(simulator, url)
