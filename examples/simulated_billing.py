"""The worked examples of the prompt-caching documentation, asked of the simulator with the vendor's own SDK.

Every number the documentation promises is asserted and printed. Nothing is paid, nothing leaves this machine.
Run it with: python examples/simulated_billing.py
"""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import anthropic

from reverie.simulator import Simulator
from reverie.simulator.http import running

MODEL = "claude-opus-5"


def text(tokens: int, name: str, ttl: str | None = None) -> dict[str, Any]:
    """A block of so many tokens: the simulator counts four bytes of text as one."""
    block: dict[str, Any] = {"type": "text", "text": f"{name} ".ljust(tokens * 4, ".")}
    return block if ttl is None else {**block, "cache_control": {"type": "ephemeral", "ttl": ttl}}


def marked(block: dict[str, Any]) -> dict[str, Any]:
    return {**block, "cache_control": {"type": "ephemeral"}}


class Example:
    """Asks, checks, prints."""

    def __init__(self, url: str, control_key: str) -> None:
        self._url = url
        self._control = {"x-sim-key": control_key}
        self._client = anthropic.Anthropic(base_url=url, api_key="simulated", max_retries=0)

    def title(self, words: str) -> None:
        print(f"\n{words}")

    def wait(self, seconds: float) -> None:
        """Moves the simulator's clock."""
        body = json.dumps({"advance_s": seconds}).encode()
        request = urllib.request.Request(f"{self._url}/_sim/clock", body, self._control)
        with urllib.request.urlopen(request) as answer:
            answer.read()

    def ask(self, what: str, blocks: list[dict[str, Any]], *, expect: tuple[int, int, int, int], **more: Any) -> Any:
        """`expect`: tokens read, written for 1h, written for 5m, and plain input."""
        request: dict[str, Any] = {"model": MODEL, "max_tokens": 50, **more}
        answer = self._client.messages.create(messages=[{"role": "user", "content": blocks}], **request)
        usage = answer.usage
        split = usage.cache_creation
        got = (
            usage.cache_read_input_tokens,
            split.ephemeral_1h_input_tokens,
            split.ephemeral_5m_input_tokens,
            usage.input_tokens,
        )
        assert got == expect, f"{what}: expected {expect}, got {got}"
        assert usage.cache_creation_input_tokens == got[1] + got[2]
        print(f"  {what:58} read {got[0]:>7,}  1h {got[1]:>6,}  5m {got[2]:>7,}  input {got[3]:>5,}")
        return answer

    def refused(self, what: str, message: str, blocks: list[dict[str, Any]], **more: Any) -> None:
        try:
            self._client.messages.create(
                model=MODEL, max_tokens=50, messages=[{"role": "user", "content": blocks}], **more
            )
        except anthropic.BadRequestError as error:
            said = error.body["error"]["message"]  # pyright: ignore
            assert message in said, said
            print(f"  {what:58} 400 {said[:70]}…")
            return
        raise AssertionError(f"{what}: was not refused")


def a_book(example: Example) -> None:
    example.title("A whole book in the system prompt: written once, then read")
    book = [text(188_086, "Pride and Prejudice", "5m")]
    example.ask("first question", [text(21, "Analyse")], system=book, expect=(0, 0, 188_086, 21))
    example.ask("second question", [text(21, "Analyse")], system=book, expect=(188_086, 0, 0, 21))
    example.ask("another question", [text(30, "Summarise")], system=book, expect=(188_086, 0, 0, 30))


def lookback(example: Example) -> None:
    example.title("The lookback: a marker sees 20 positions, its own included")
    blocks = [text(100, f"lookback {number}") for number in range(1, 36)]
    example.ask("turn 1: 10 blocks, marker on 10", [*blocks[:9], marked(blocks[9])], expect=(0, 0, 1_000, 0))
    example.ask("turn 2: 15 blocks, marker on 15", [*blocks[:14], marked(blocks[14])], expect=(1_000, 0, 500, 0))
    example.ask(
        "turn 3: 35 blocks, marker on 35: looks at 35…16", [*blocks[:34], marked(blocks[34])], expect=(0, 0, 3_500, 0)
    )
    other = [text(100, f"second try {number}") for number in range(1, 36)]
    example.ask("again from 15 blocks", [*other[:14], marked(other[14])], expect=(0, 0, 1_500, 0))
    both = [*other[:14], marked(other[14]), *other[15:34], marked(other[34])]
    example.ask("35 blocks, a second marker on 15", both, expect=(1_500, 0, 2_000, 0))


def a_changing_block(example: Example) -> None:
    example.title("A marker on what changes never reads; before it, it does")
    fixed = [text(400, "fixed 1"), text(400, "fixed 2")]
    for time in ("10:00", "10:01"):
        example.ask(f"marker on the time ({time})", [*fixed, marked(text(50, time))], expect=(0, 0, 850, 0))
    example.ask("marker before it", [fixed[0], marked(fixed[1]), text(50, "10:02")], expect=(0, 0, 800, 50))
    example.ask("marker before it", [fixed[0], marked(fixed[1]), text(50, "10:03")], expect=(800, 0, 0, 50))


def mixed_lifetimes(example: Example) -> None:
    example.title("Mixed lifetimes: A = best hit, B = last 1h marker after it, C = last marker")
    blocks = [text(1_000, "for an hour", "1h"), text(500, "for five minutes", "5m"), text(70, "fresh")]
    example.ask("nothing cached: write B at 2x, C-B at 1.25x", blocks, expect=(0, 1_000, 500, 70))
    example.ask("all cached: read C", blocks, expect=(1_500, 0, 0, 70))
    example.wait(301)
    example.ask("after 5 minutes: read B, write C-B", blocks, expect=(1_000, 0, 500, 70))
    example.wait(299)
    example.ask("a read refreshed both", blocks, expect=(1_500, 0, 0, 70))
    example.wait(3_601)
    example.ask("after an hour: all anew", blocks, expect=(0, 1_000, 500, 70))
    more = [blocks[0], text(200, "and for an hour", "1h"), *blocks[1:]]
    example.ask("A, then B and C behind it", more, expect=(1_000, 200, 500, 70))


def minimum(example: Example) -> None:
    example.title("Below a model's minimum nothing is cached, and nothing is said")
    for model, least in (
        ("claude-opus-5", 512),
        ("claude-opus-4-8", 1_024),
        ("claude-sonnet-5", 1_024),
        ("claude-opus-4-7", 2_048),
        ("claude-haiku-4-5", 4_096),
    ):
        below, enough = [text(least - 1, "small", "5m")], [text(least, "large", "5m")]
        example.ask(f"{model}: {least - 1:,} tokens", below, model=model, expect=(0, 0, 0, least - 1))
        example.ask(f"{model}: {least:,} tokens", enough, model=model, expect=(0, 0, least, 0))


def what_is_lost(example: Example) -> None:
    example.title("What a change costs: tools 600, system 300, messages 200 tokens, an entry after each")
    tools = [{"name": "A", "description": "a" * 1_737, "input_schema": {"type": "object"}}]
    tools[0] = marked(tools[0])
    base = {"tools": tools, "system": [text(300, "system", "5m")]}
    talk = [text(200, "talk", "5m")]
    example.ask("first", talk, **base, expect=(0, 0, 1_100, 0))
    example.ask("the same again", talk, **base, expect=(1_100, 0, 0, 0))
    renamed = [{**tools[0], "name": "B"}]
    example.ask("tool definition: all lost", talk, **{**base, "tools": renamed}, expect=(0, 0, 1_100, 0))
    example.ask("model: all lost", talk, **base, model="claude-fable-5", expect=(0, 0, 1_100, 0))
    search = {"type": "web_search_20250305", "name": "web_search"}  # 17 tokens of its own
    example.ask(
        "web search: system and messages lost", talk, **{**base, "tools": [*tools, search]}, expect=(600, 0, 517, 0)
    )
    example.ask("speed: system and messages lost", talk, **base, speed="fast", expect=(600, 0, 500, 0))
    other = [text(300, "other system", "5m")]
    example.ask("system: system and messages lost", talk, **{**base, "system": other}, expect=(600, 0, 500, 0))
    cited = {
        "type": "document",
        "source": {"type": "text", "media_type": "text/plain", "data": "d" * 40},
        "citations": {"enabled": True},
    }
    example.ask("citations: system and messages lost", [*talk, cited], **base, expect=(600, 0, 500, 10))
    choice = {"type": "any"}
    example.ask("tool_choice: messages lost", talk, **base, tool_choice=choice, expect=(900, 0, 200, 0))
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    example.ask("an image: messages lost", [*talk, picture], **base, expect=(900, 0, 200, 1_600))
    effort = {"effort": "low"}
    example.ask("effort: messages lost", talk, **base, output_config=effort, expect=(900, 0, 200, 0))
    thinking = {"type": "adaptive"}
    example.ask("thinking: messages lost", talk, **base, thinking=thinking, expect=(900, 0, 200, 0))
    example.ask("and the first request still reads all of its own", talk, **base, expect=(1_100, 0, 0, 0))


def automatic(example: Example) -> None:
    example.title("One marker for the whole request: it moves along with the conversation")
    turns = [text(600, "turn 1"), text(200, "turn 2"), text(100, "turn 3")]
    everywhere = {"cache_control": {"type": "ephemeral"}}
    example.ask("turn 1", turns[:1], **everywhere, expect=(0, 0, 600, 0))
    example.ask("turn 2", turns[:2], **everywhere, expect=(600, 0, 200, 0))
    example.ask("turn 3", turns, **everywhere, expect=(800, 0, 100, 0))
    example.ask(
        "already marked with the same lifetime: nothing happens",
        [*turns[:2], marked(turns[2])],
        **everywhere,
        expect=(900, 0, 0, 0),
    )
    example.refused("marked with another lifetime", "differs", [text(600, "x", "1h")], **everywhere)


def prewarm(example: Example) -> None:
    example.title("max_tokens 0 fills the cache and says nothing")
    system = [text(2_000, "warm me", "5m")]
    warm = example.ask("pre-warm", [text(5, "hello")], system=system, max_tokens=0, expect=(0, 0, 2_000, 5))
    assert (warm.content, warm.stop_reason, warm.usage.output_tokens) == ([], "max_tokens", 0)
    example.ask("the first real question", [text(9, "now")], system=system, expect=(2_000, 0, 0, 9))


def refusals(example: Example) -> None:
    example.title("What is refused")
    five = [text(100, str(number), "5m") for number in range(5)]
    example.refused("five markers", "A maximum of 4 blocks with cache_control may be provided. Found 5.", five)
    wrong = [text(100, "short", "5m"), text(100, "long", "1h")]
    example.refused("1h after 5m", "messages.0.content.1.cache_control.ttl: a ttl='1h' cache_control block", wrong)


def main() -> None:
    simulator = Simulator()
    with running(simulator) as url:
        example = Example(url, simulator.control_key)
        for each in (
            a_book,
            lookback,
            a_changing_block,
            mixed_lifetimes,
            minimum,
            what_is_lost,
            automatic,
            prewarm,
            refusals,
        ):
            each(example)
    totals = simulator.ledger.totals()
    print(
        f"\nAll as documented. {totals['requests']} requests would have cost ${totals['cost_usd']:.2f}; "
        f"{totals['misses']} cache misses were provoked on the way, worth ${totals['missed_cost_usd']:.3f}."
    )


if __name__ == "__main__":
    main()
