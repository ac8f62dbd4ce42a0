"""A client through the proxy into the simulator: what it sent, what arrived, and the bills of both ways."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reverie.connect.children import child_of
from reverie.models.catalogue import Catalogue
from reverie.proxy.bodies import PATHS
from reverie.proxy.server import ANTHROPIC_PATH, create_app, running
from reverie.runtime.loopback import address, listen
from tests.integration.programs import Run, Served, serve
from tests.proxy.proxied import Tee, stats

Ask = Callable[..., str]
"""Runs the client with these arguments, configured as `reverie proxy -- PROGRAM` does it."""


@dataclass
class Passage:
    """One run of a client. `came` and `arrived` are the bodies of conversations before and behind the proxy."""

    server: Served
    ask: Ask
    url: str
    came: list[bytes] = field(default_factory=list[bytes])
    arrived: list[bytes] = field(default_factory=list[bytes])
    stats: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def cost(self) -> float:
        return float(self.server.simulator.ledger.totals()["cost_usd"])

    def sessions(self, model: str) -> list[dict[str, Any]]:
        """The conversations that the proxy recognised, with this model."""
        return [one for one in self.stats["sessions"] if one["model"] == model]


@contextmanager
def passage(
    script: str, run: Run, home: Path, layers: Sequence[str] | None, environment: Mapping[str, str]
) -> Iterator[Passage]:
    """A simulator, and a proxy in front of it unless `layers` is None. The client gets `environment` as well."""
    with serve(script) as server, Tee(server.url).running() as behind:
        if layers is None:
            yield Passage(server, _ask(run, server.url, environment), server.url)
            return
        upstreams = dict.fromkeys(("messages", "chat", "responses"), behind.url)
        app = create_app(home, upstreams, Catalogue.load(), layers=tuple(layers))
        listener = listen(0)
        try:
            with running(app, listener), Tee(address(listener)).running() as before:
                made = Passage(server, _ask(run, before.url, environment), before.url)
                yield made
                made.stats = stats(address(listener))
            made.came = [body for path, body in before.bodies if _form(path) in PATHS]
            made.arrived = [body for path, body in behind.bodies if path.partition("?")[0] in PATHS]
        finally:
            listener.close()


def _form(path: str) -> str:
    return path.partition("?")[0].removeprefix(ANTHROPIC_PATH)


def _ask(run: Run, url: str, environment: Mapping[str, str]) -> Ask:
    def ask(*arguments: str | Path) -> str:
        child = child_of([str(one) for one in arguments], url, {**os.environ, **environment})
        return run(*child.arguments, **{**environment, **child.environment, "SIMULATOR": url})

    return ask
