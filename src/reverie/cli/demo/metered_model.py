"""The model of the demo: the offline mind, with costs.

The simulator meters every request as the public documentation says, so cache and cost are real figures. Nothing is sent
to the network.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from reverie.models import wire
from reverie.models.base import Capabilities, Finished, ModelEvent, Request
from reverie.models.catalogue import Catalogue
from reverie.offline.model import EmbeddedModel

if TYPE_CHECKING:
    from reverie.simulator import Meter

PRICED_AS = "Claude Sonnet 5.5"
WINDOW = 40_000
"""Small, so that it fills during the demo; every threshold is relative to it."""

_ENTRY = """[models.embedded]
provider = "embedded"
window = {window}
max_output = 8_192
cheapest = "embedded"
input_price = {facts.input_price}
output_price = {facts.output_price}
cache_read = {facts.cache_read}
cache_minimum = {facts.cache_minimum}
cache_markers = true
ttls = ["5m"]
"""


def write_catalogue(folder: Path) -> Path:
    """Writes the prices of the model, for the ledger and the meter."""
    path = folder / "catalogue.toml"
    path.write_text(_ENTRY.format(window=WINDOW, facts=Catalogue.load().facts("claude-sonnet-5-5")))
    return path


class MeteredModel(EmbeddedModel):
    """The offline mind with costs. `now` returns the time for the cache, in seconds."""

    def __init__(self, meter: Meter, now: Callable[[], float]) -> None:
        super().__init__()
        self._meter = meter
        self._now = now

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(cache_markers=True, ttls=("5m",), images=False, output_schema=True)

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        async with aclosing(super().stream(request)) as events:
            async for event in events:
                if isinstance(event, Finished):
                    said = event.response
                    output = said.usage.output_tokens
                    usage = self._meter.bill(wire.body(request), self._now(), output_tokens=output).usage
                    event = Finished(replace(said, usage=usage, raw_usage=usage.wire()))
                yield event
