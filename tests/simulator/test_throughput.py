"""How fast a long session is billed, in process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from reverie.simulator import Meter
from tests.simulator.bodies import marked, text, tool

ROUNDS = 200
TOKENS = 150_000
LIMIT_S = 3.0
"""The aim is one second on an idle machine; a test machine may be busy."""


def session() -> Iterator[dict[str, Any]]:
    """The requests of one conversation: two parallel calls a round, the markers moved along."""
    size = TOKENS // (2 * ROUNDS)
    tools = [tool(f"tool{number}", "d" * 300) for number in range(12)]
    history: list[dict[str, Any]] = [{"role": "user", "content": [text(300, "go")]}]
    for number in range(ROUNDS):
        last = history[-1]["content"]
        sent = [*history[:-1], {"role": "user", "content": [*last[:-1], marked(last[-1])]}]
        system = [text(2_500, "system", "5m")]
        yield {"model": "claude-opus-4-5", "max_tokens": 900, "system": system, "tools": tools, "messages": sent}
        names = [f"toolu_{number}_{each}" for each in range(2)]
        calls = [{"type": "tool_use", "id": name, "name": "tool1", "input": {"path": name}} for name in names]
        results = [{"type": "tool_result", "tool_use_id": name, "content": text(size, name)["text"]} for name in names]
        history += [
            {"role": "assistant", "content": [{"type": "text", "text": f"step {number}"}, *calls]},
            {"role": "user", "content": results},
        ]


def test_two_hundred_rounds_of_150k_tokens_are_billed_in_about_a_second() -> None:
    requests = list(session())
    meter = Meter()
    started = time.perf_counter()
    for number, request in enumerate(requests):
        billing = meter.bill(request, float(number))
        assert billing.miss is None
    seconds = time.perf_counter() - started
    assert billing.usage.prompt > TOKENS
    assert meter.ledger.totals()["hit_rate"] > 0.97
    print(f"\nbilled {ROUNDS} rounds, {billing.usage.prompt:,} tokens at the end, in {seconds:.2f} s")
    assert seconds < LIMIT_S
