"""How fast the simulator bills a long session in process: 200 rounds up to 150,000 tokens."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from reverie.lab.measurement import Result, measurement
from reverie.quick import dataclass
from reverie.simulator import Meter

ROUNDS = 200
TOKENS = 150_000


@dataclass(frozen=True, slots=True)
class BillingFigures:
    rounds: int
    tokens: int
    seconds: float
    hit_rate: float


@measurement("reverie lab billing")
def billing() -> Result:
    """Measure how fast the simulator computes the costs of a conversation of 200 rounds."""
    billed = measure_billing()
    text = f"{billed.rounds} rounds up to {billed.tokens:,} tokens billed in {billed.seconds:.2f} s"
    return Result(billed, [f"{text}; {billed.hit_rate:.1%} read from the cache"])


def requests(rounds: int = ROUNDS, tokens: int = TOKENS) -> Iterator[dict[str, Any]]:
    """The requests of one conversation: two parallel calls per round, and a marker on the last block."""
    size = 4 * tokens // (2 * rounds)
    filler = ("The quick brown fox jumps over the lazy dog. " * (1 + size // 45))[:size]
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    tools = [{"name": f"tool{n}", "description": "Does one thing. " * 60, "input_schema": schema} for n in range(12)]
    system = [{"type": "text", "text": filler * 6, "cache_control": {"type": "ephemeral"}}]
    history: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "go"}]}]
    for number in range(rounds):
        last = history[-1]["content"]
        marked = [*last[:-1], {**last[-1], "cache_control": {"type": "ephemeral"}}]
        sent = [*history[:-1], {"role": "user", "content": marked}]
        yield {"model": "claude-opus-4-5", "max_tokens": 900, "system": system, "tools": tools, "messages": sent}
        names = [f"toolu_{number}_{each}" for each in range(2)]
        calls = [{"type": "tool_use", "id": name, "name": "tool1", "input": {"path": name}} for name in names]
        results = [{"type": "tool_result", "tool_use_id": name, "content": name + filler} for name in names]
        history += [
            {"role": "assistant", "content": [{"type": "text", "text": f"step {number}"}, *calls]},
            {"role": "user", "content": results},
        ]


def measure_billing(rounds: int = ROUNDS, tokens: int = TOKENS) -> BillingFigures:
    """Bills one session. The time to make its requests is not counted."""
    bodies = list(requests(rounds, tokens))
    meter = Meter()
    started = time.perf_counter()
    prompt = 0
    for number, body in enumerate(bodies):
        prompt = meter.bill(body, float(number)).usage.prompt
    seconds = time.perf_counter() - started
    return BillingFigures(rounds, prompt, seconds, float(meter.ledger.totals()["hit_rate"]))
