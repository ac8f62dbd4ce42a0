"""What always holds, whatever is asked in whatever order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.models.catalogue import Catalogue
from reverie.models.prices import cost, input_equivalents
from reverie.simulator import Meter
from reverie.simulator.cache import TTL_SECONDS
from tests.counts import count
from tests.simulator.bodies import text

FACTS = Catalogue.load().facts("claude-opus-5")


@dataclass(frozen=True)
class Ask:
    """One request: blocks by name and size, which of them carry a marker, and how long after the one before."""

    system: tuple[tuple[int, int], ...]
    blocks: tuple[tuple[int, int], ...]
    markers: tuple[tuple[int, str], ...]
    wait: float

    def body(self) -> dict[str, Any]:
        parts = [text(size, f"n{name}") for name, size in (*self.system, *self.blocks)]
        # The API wants long lifetimes first, so the markers are put in that order.
        places = sorted({place % len(parts) for place, _ in self.markers})
        ttls = sorted((ttl for _, ttl in self.markers[: len(places)]), key=("1h", "5m").index)
        for place, ttl in zip(places, ttls, strict=True):
            parts[place]["cache_control"] = {"type": "ephemeral", "ttl": ttl}
        split = len(self.system)
        messages = [{"role": "user", "content": parts[split:]}]
        return {"model": "claude-opus-5", "max_tokens": 9, "system": parts[:split], "messages": messages}


# Few names, so that prefixes are often shared and sometimes not.
blocks = st.tuples(st.integers(0, 2), st.sampled_from([1, 100, 300, 512]))
asks = st.builds(
    Ask,
    st.lists(blocks, max_size=3).map(tuple),
    st.lists(blocks, min_size=1, max_size=45).map(tuple),
    st.lists(st.tuples(st.integers(0, 47), st.sampled_from(["5m", "1h"])), max_size=4).map(tuple),
    st.sampled_from([0.0, 1.0, 299.0, 300.0, 301.0, 1_800.0, 3_600.0, 3_601.0]),
)
histories = st.lists(asks, min_size=1, max_size=12)


def repeated(history: list[Ask]) -> list[Ask]:
    """Each request and then the same with a little more, as a conversation would go."""
    return [each for ask in history for each in (ask, Ask(ask.system, (*ask.blocks, (0, 100)), ask.markers, 1.0))]


@pytest.mark.soak
@settings(max_examples=count(30, 1_500), deadline=None)
@given(histories)
def test_billed_tokens_always_add_up_to_the_prompt(history: list[Ask]) -> None:
    meter, now = Meter(), 0.0
    for ask in repeated(history):
        now += ask.wait
        usage = meter.bill(ask.body(), now).usage
        sizes = [size for _, size in (*ask.system, *ask.blocks)]
        assert usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens == sum(sizes)
        assert usage.cache_creation_5m + usage.cache_creation_1h == usage.cache_creation_input_tokens
        assert (
            min(usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_5m, usage.cache_creation_1h)
            >= 0
        )


@pytest.mark.soak
@settings(max_examples=count(30, 1_500), deadline=None)
@given(histories)
def test_no_request_reads_more_than_was_written_before_it(history: list[Ask]) -> None:
    """A model of its own: prefixes some earlier request paid to write, by their text alone."""
    meter, now = Meter(), 0.0
    paid: set[tuple[tuple[str, int, int], ...]] = set()
    for ask in repeated(history):
        now += ask.wait
        usage = meter.bill(ask.body(), now).usage
        parts = [("s", *part) for part in ask.system] + [("m", *part) for part in ask.blocks]
        prefixes = {sum(p[2] for p in parts[:end]): tuple(parts[:end]) for end in range(1, len(parts) + 1)}
        if usage.cache_read_input_tokens:
            assert prefixes[usage.cache_read_input_tokens] in paid
        for tokens, prefix in prefixes.items():
            if (
                usage.cache_read_input_tokens
                < tokens
                <= usage.cache_read_input_tokens + usage.cache_creation_input_tokens
            ):
                paid.add(prefix)


@pytest.mark.soak
@settings(max_examples=count(30, 1_500), deadline=None)
@given(
    st.lists(st.sampled_from(["1h", "5m"]), min_size=1, max_size=4).map(lambda t: sorted(t, key=("1h", "5m").index)),
    st.lists(st.floats(0, 7_200), min_size=1, max_size=6),
)
def test_moving_the_clock_past_a_lifetime_loses_exactly_what_it_should(ttls: list[str], waits: list[float]) -> None:
    """A request sent again and again: at each gap exactly the entries whose lifetime is over are gone."""
    parts = [text(600, f"part {number}", ttl) for number, ttl in enumerate(ttls)]
    request = {"model": "claude-opus-5", "max_tokens": 9, "messages": [{"role": "user", "content": parts}]}
    meter, now = Meter(), 0.0
    meter.bill(request, now)
    expires = [TTL_SECONDS[ttl] for ttl in ttls]
    for wait in waits:
        now += wait
        alive = [number for number, until in enumerate(expires) if now <= until]
        kept = 600 * (alive[-1] + 1) if alive else 0
        usage = meter.bill(request, now).usage
        assert usage.cache_read_input_tokens == kept
        assert usage.cache_creation_input_tokens == 600 * len(ttls) - kept
        # What was read lives on from here, what was lost was written anew; an entry before a hit that had died
        # of itself is not written again.
        top = alive[-1] if alive else -1
        expires = [
            now + TTL_SECONDS[ttl] if number > top or number in alive else expires[number]
            for number, ttl in enumerate(ttls)
        ]


@pytest.mark.soak
@settings(max_examples=count(30, 1_000), deadline=None)
@given(histories)
def test_the_price_is_what_the_usage_says(history: list[Ask]) -> None:
    meter, now = Meter(), 0.0
    for ask in history:
        now += ask.wait
        billing = meter.bill(ask.body(), now, output_tokens=7)
        assert billing.cost == pytest.approx(cost(billing.usage, FACTS))
        assert billing.input_equivalents == pytest.approx(input_equivalents(billing.usage, FACTS))
        if billing.miss is not None:
            assert 0 < billing.miss.lost_tokens <= billing.usage.prompt
            assert billing.miss.cost <= billing.cost


@pytest.mark.soak
@settings(max_examples=count(30, 1_000), deadline=None)
@given(histories)
def test_two_meters_fed_the_same_agree_to_the_last_token(history: list[Ask]) -> None:
    one, other, now = Meter(), Meter(), 0.0
    for ask in history:
        now += ask.wait
        assert one.bill(ask.body(), now) == other.bill(ask.body(), now)
