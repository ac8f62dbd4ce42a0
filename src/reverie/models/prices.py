"""What tokens cost: one price per class of token, in currency and in input-token equivalents.

The simulator and the ledger book with the same functions, so a bill measured against one holds for the other.
Prices come from the catalogue; nothing here knows a model by name.
"""

from __future__ import annotations

from dataclasses import dataclass

from reverie.models.catalogue import ModelFacts
from reverie.types import Usage

USUAL_OUTPUT_RATIO = 5.0
"""Output to input price where a model has none: what most hosted models charge."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens, by class of token."""

    input: float
    output: float
    cache_read: float
    cache_write_5m: float
    cache_write_1h: float


def price(facts: ModelFacts, prompt_tokens: int = 0) -> Price:
    """The prices a prompt of this size is billed at; some models charge more for every token of a long prompt."""
    base, output = facts.input_price, facts.output_price
    if facts.long_prompt_over is not None and prompt_tokens > facts.long_prompt_over:
        base = base if facts.long_input_price is None else facts.long_input_price
        output = output if facts.long_output_price is None else facts.long_output_price
    return Price(base, output, base * facts.cache_read, base * facts.cache_write_5m, base * facts.cache_write_1h)


def cost(usage: Usage, facts: ModelFacts) -> float:
    """What one response cost, in US dollars; 0.0 for a model without a price (`facts.priced` says which)."""
    written_5m, written_1h = _written(usage)
    each = price(facts, usage.prompt)
    return (
        usage.input_tokens * each.input
        + usage.output_tokens * each.output
        + usage.cache_read_input_tokens * each.cache_read
        + written_5m * each.cache_write_5m
        + written_1h * each.cache_write_1h
    ) / 1_000_000


def input_equivalents(usage: Usage, facts: ModelFacts, *, with_output: bool = True) -> float:
    """One response in tokens of fresh input: what a cached, written or produced token costs next to one of those.

    Works for models without a price too: their output is taken at the usual ratio.
    """
    written_5m, written_1h = _written(usage)
    prompt = (
        usage.input_tokens
        + usage.cache_read_input_tokens * facts.cache_read
        + written_5m * facts.cache_write_5m
        + written_1h * facts.cache_write_1h
    )
    return prompt + usage.output_tokens * output_ratio(facts) if with_output else prompt


def output_ratio(facts: ModelFacts) -> float:
    """How many input tokens an output token costs."""
    return facts.output_price / facts.input_price if facts.input_price > 0 else USUAL_OUTPUT_RATIO


def _written(usage: Usage) -> tuple[int, int]:
    """Cache writes by lifetime; what a server did not split counts as 5m."""
    written_1h = usage.cache_creation_1h
    return max(usage.cache_creation_input_tokens - written_1h, usage.cache_creation_5m), written_1h
