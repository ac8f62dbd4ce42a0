"""What a session has cost so far, read from its records: the conversation's own requests and those beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reverie.models.catalogue import ModelFacts
from reverie.models.prices import cost
from reverie.storage.records import ForkUsage, from_record
from reverie.types import Record, Usage


@dataclass(frozen=True, slots=True)
class Spent:
    """`dollars` is None for a model without a price."""

    requests: int
    usage: Usage
    beside: Usage
    dollars: float | None

    @property
    def cached_share(self) -> float:
        """How much of all prompts came from the cache."""
        prompt = self.usage.prompt + self.beside.prompt
        return (self.usage.cache_read_input_tokens + self.beside.cache_read_input_tokens) / prompt if prompt else 0.0


def spent(records: Iterable[Record], facts: ModelFacts) -> Spent:
    """Adds up a session. Records split from one response count once."""
    responses = dict[str, Usage]()
    beside, dollars = Usage(), 0.0
    for number, record in enumerate(records):
        payload = from_record(record)
        if isinstance(payload, ForkUsage):
            beside += payload.tokens()
            dollars += cost(payload.tokens(), facts)
        elif record.message is not None and record.message.role == "assistant" and not record.is_sidechain:
            usage = record.message.usage
            if usage is not None:
                responses[record.message.id or f"record {number}"] = usage
    total = Usage()
    for usage in responses.values():
        total += usage
        dollars += cost(usage, facts)
    return Spent(len(responses), total, beside, dollars if facts.priced else None)
