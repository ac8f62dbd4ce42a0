"""The cost of tokens, in US dollars and in tokens of fresh input. Prices come from the catalogue.

The simulator and the ledger use the same functions, so their figures can be compared.
"""

from __future__ import annotations

from reverie.models.catalogue import ModelFacts
from reverie.quick import dataclass
from reverie.types import Usage

USUAL_OUTPUT_RATIO = 5.0
"""The ratio of output price to input price for a model without prices: that of most hosted models."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens, by class of token."""

    input: float
    output: float
    cache_read: float
    cache_write_5m: float
    cache_write_1h: float


def price(facts: ModelFacts, prompt_tokens: int = 0) -> Price:
    """The prices for a prompt of this size; some models charge more for every token of a long prompt."""
    base, output = facts.input_price, facts.output_price
    if facts.long_prompt_over is not None and prompt_tokens > facts.long_prompt_over:
        base = base if facts.long_input_price is None else facts.long_input_price
        output = output if facts.long_output_price is None else facts.long_output_price
    return Price(base, output, base * facts.cache_read, base * facts.cache_write_5m, base * facts.cache_write_1h)


def format_dollars(amount: float) -> str:
    """An amount with as many digits as it needs to be seen: `$12.50`, `$0.0004`."""
    if amount >= 0.01 or not amount:
        return f"${amount:,.2f}"
    return f"${amount:.8f}".rstrip("0")


def cost(usage: Usage, facts: ModelFacts) -> float:
    """The cost of one response in US dollars; 0.0 for a model without a price (see `facts.priced`)."""
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
    """The cost of one response in tokens of fresh input; for a model without a price, with the usual output ratio."""
    written_5m, written_1h = _written(usage)
    prompt = (
        usage.input_tokens
        + usage.cache_read_input_tokens * facts.cache_read
        + written_5m * facts.cache_write_5m
        + written_1h * facts.cache_write_1h
    )
    return prompt + usage.output_tokens * output_ratio(facts, usage.prompt) if with_output else prompt


def output_ratio(facts: ModelFacts, prompt_tokens: int = 0) -> float:
    """How many input tokens an output token costs, after a prompt of this size."""
    each = price(facts, prompt_tokens)
    return each.output / each.input if each.input > 0 else USUAL_OUTPUT_RATIO


def _written(usage: Usage) -> tuple[int, int]:
    """Cache writes by lifetime: for 5 minutes (or unknown) and for 1 hour."""
    written_1h = usage.cache_creation_1h
    return max(usage.cache_creation_input_tokens - written_1h, usage.cache_creation_5m), written_1h
