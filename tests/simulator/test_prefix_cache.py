"""The prompt cache, rule by rule: what a request reads, writes and pays, driven with plain bodies and no server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reverie.simulator import ApiError, Billing, Meter, Reply, Simulator
from reverie.simulator.meter import Caller
from tests.simulator.bodies import body, exchange, marked, text, tool

MINUTE = 60.0


def bill(meter: Meter, request: dict[str, Any], now: float = 0.0, **more: Any) -> Billing:
    return meter.bill(request, now, **more)


def split(billing: Billing) -> tuple[int, int, int, int]:
    """Read, written for 1h, written for 5m, plain input."""
    usage = billing.usage
    return (
        usage.cache_read_input_tokens,
        usage.cache_creation_1h,
        usage.cache_creation_5m,
        usage.input_tokens,
    )


def test_a_marker_writes_up_to_its_block_and_the_next_request_reads_it() -> None:
    meter = Meter()
    first, second = text(600, "a", "5m"), text(50, "b")
    assert split(bill(meter, body(first, second))) == (0, 0, 600, 50)
    assert split(bill(meter, body(first, second))) == (600, 0, 0, 50)
    assert split(bill(meter, body(first, text(70, "c")))) == (600, 0, 0, 70)


def test_markers_may_move_because_they_are_no_part_of_what_is_compared() -> None:
    meter = Meter()
    bill(meter, body(text(600, "a", "5m")))
    moved = bill(meter, body(text(600, "a"), text(40, "b", "5m")))
    assert split(moved) == (600, 0, 40, 0)
    assert moved.hit == "messages[0].content[0]"
    assert moved.written == ("messages[0].content[1]",)


def test_a_string_and_a_single_text_block_are_the_same_prompt() -> None:
    meter = Meter()
    words = text(600, "a")["text"]
    cached = {"model": "claude-opus-5", "max_tokens": 9, "cache_control": {"type": "ephemeral"}}
    bill(meter, {**cached, "messages": [{"role": "user", "content": words}]})
    again = {**cached, "messages": [{"role": "user", "content": [{"type": "text", "text": words, "citations": None}]}]}
    assert split(bill(meter, again)) == (600, 0, 0, 0)


@pytest.mark.parametrize(("marker_at", "read"), [(15, 150), (34, 150), (35, 0)])
def test_a_marker_looks_at_twenty_positions_and_itself_is_one_of_them(marker_at: int, read: int) -> None:
    meter = Meter()
    blocks = [text(10 if i else 600, f"block {i}") for i in range(41)]
    bill(meter, body(*blocks[:15], marked(blocks[15])))
    assert meter.ledger.rows[0].usage.cache_creation_input_tokens == 750
    found = bill(meter, body(*blocks[:marker_at], marked(blocks[marker_at])))
    assert found.usage.cache_read_input_tokens == (600 + read if read else 0)


def test_the_previous_marker_is_looked_at_when_the_last_one_finds_nothing() -> None:
    meter = Meter()
    blocks = [text(10 if i else 600, f"block {i}") for i in range(41)]
    bill(meter, body(*blocks[:15], marked(blocks[15])))
    twice = [marked(block) if i in (15, 40) else block for i, block in enumerate(blocks)]
    assert split(bill(meter, body(*twice))) == (750, 0, 250, 0)


@pytest.mark.parametrize(("tools_between", "hits"), [(18, True), (19, False)])
def test_tools_and_system_blocks_use_up_positions_too(tools_between: int, hits: bool) -> None:
    meter = Meter()
    large = tool("large", "d" * 2000)
    others = [tool(f"tool{i}") for i in range(tools_between)]
    written = bill(meter, body(text(1), tools=[marked(large), *others])).usage.cache_creation_input_tokens
    assert written > 512
    found = bill(meter, body(text(1), tools=[large, *others], system=[text(5, "s", "5m")]))
    assert found.usage.cache_read_input_tokens == (written if hits else 0)


def test_an_entry_exists_only_where_a_marker_stood() -> None:
    meter = Meter()
    bill(meter, body(text(600, "a"), text(50, "b"), text(50, "c", "5m")))
    assert split(bill(meter, body(text(600, "a"), text(50, "b", "5m"), text(50, "other")))) == (0, 0, 650, 50)


@pytest.mark.parametrize(("ttl", "seconds"), [("5m", 300.0), ("1h", 3600.0)])
def test_an_entry_lives_as_long_as_it_says_and_a_read_starts_its_life_anew(ttl: str, seconds: float) -> None:
    request = body(text(600, "a", ttl))
    meter = Meter()
    bill(meter, request, 0)
    assert bill(meter, request, seconds).usage.cache_read_input_tokens == 600
    assert bill(meter, request, 2 * seconds).usage.cache_read_input_tokens == 600
    late = bill(meter, request, 3 * seconds + 1)
    assert late.usage.cache_read_input_tokens == 0
    assert late.usage.cache_creation_input_tokens == 600
    assert late.miss is not None
    assert late.miss.cause == "expired"


def test_a_read_keeps_the_entries_of_its_own_earlier_markers_alive() -> None:
    meter = Meter()
    system = [text(600, "system", "1h")]
    grown = [text(50, "turn 0")]
    for minute in range(0, 180, 4):
        bill(meter, body(*grown[:-1], marked(grown[-1]), system=system), minute * MINUTE)
        grown.append(text(50, f"turn {minute + 1}"))
    other = bill(meter, body(text(50, "another conversation"), system=system), 180 * MINUTE)
    assert other.usage.cache_read_input_tokens == 600


def test_mixed_lifetimes_are_billed_by_where_the_last_marker_of_each_stands() -> None:
    request = body(text(700, "a", "1h"), text(200, "b", "5m"), text(30, "c"))
    cold = Meter()
    assert split(bill(cold, request)) == (0, 700, 200, 30)
    assert split(bill(cold, request, 4 * MINUTE)) == (900, 0, 0, 30)
    assert split(bill(cold, request, 30 * MINUTE)) == (700, 0, 200, 30)
    assert split(bill(cold, request, 120 * MINUTE)) == (0, 700, 200, 30)


def test_a_hit_between_two_long_markers_writes_only_what_is_beyond_it() -> None:
    meter = Meter()
    bill(meter, body(text(600, "a", "1h")))
    longer = body(text(600, "a", "1h"), text(100, "b", "1h"), text(50, "c", "5m"), text(10, "d"))
    assert split(bill(meter, longer)) == (600, 100, 50, 10)


@pytest.mark.parametrize(
    ("model", "minimum"), [("claude-opus-5", 512), ("claude-sonnet-5", 1024), ("claude-opus-4-7", 2048)]
)
def test_below_the_minimum_nothing_is_cached_and_nothing_is_said(model: str, minimum: int) -> None:
    meter = Meter()
    below = body(text(minimum - 1, "a", "5m"), model=model)
    for _ in range(2):
        assert split(bill(meter, below)) == (0, 0, 0, minimum - 1)
    enough = body(text(minimum, "b", "5m"), model=model)
    assert split(bill(meter, enough)) == (0, 0, minimum, 0)
    assert split(bill(meter, enough)) == (minimum, 0, 0, 0)


def test_the_minimum_counts_the_whole_prefix_and_a_small_marker_is_ignored() -> None:
    meter = Meter()
    request = body(text(400, "b", "5m"), text(10, "c"), system=[text(200, "a", "5m")])
    assert split(bill(meter, request)) == (0, 0, 600, 10)
    assert meter.ledger.rows[0].written == ("messages[0].content[0]",)


def test_caches_are_per_model_and_per_workspace() -> None:
    meter = Meter()
    request = body(text(2100, "a", "5m"))
    bill(meter, request, workspace="one")
    assert bill(meter, request, workspace="two").usage.cache_read_input_tokens == 0
    assert bill(meter, {**request, "model": "claude-opus-4-8"}, workspace="one").usage.cache_read_input_tokens == 0
    assert bill(meter, request, workspace="one").usage.cache_read_input_tokens == 2100


def test_a_dated_name_is_the_same_model() -> None:
    meter = Meter()
    bill(meter, body(text(5000, "a", "5m"), model="claude-opus-4-5"))
    again = bill(meter, body(text(5000, "a", "5m"), model="claude-opus-4-5-20251101"))
    assert again.usage.cache_read_input_tokens == 5000


# What a change costs, part by part. The base request has an entry after tools, system and messages.
TOOLS = [tool("Alpha", "a" * 1800), tool("Beta", "b" * 30)]
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d" * 40}}


def base(**more: Any) -> dict[str, Any]:
    return {
        "model": "claude-opus-5",
        "max_tokens": 100,
        "tools": [TOOLS[0], marked(TOOLS[1])],
        "system": [text(300, "system", "5m")],
        "messages": [{"role": "user", "content": [text(200, "talk", "5m")]}],
        **more,
    }


def with_part(part: dict[str, Any]) -> dict[str, Any]:
    return base(messages=[{"role": "user", "content": [text(200, "talk", "5m"), part]}])


CHANGES: list[tuple[str, dict[str, Any], str]] = [
    ("nothing", base(), "messages"),
    ("tool definition", base(tools=[TOOLS[0], marked({**TOOLS[1], "description": "changed"})]), "nothing"),
    ("tool order", base(tools=[TOOLS[1], marked(TOOLS[0])]), "nothing"),
    ("one tool more", base(tools=[TOOLS[0], marked(TOOLS[1]), tool("Gamma")]), "tools"),
    ("model", base(model="claude-fable-5"), "nothing"),
    ("web search", base(tools=[TOOLS[0], marked(TOOLS[1]), {"type": "web_search_20260209", "name": "w"}]), "tools"),
    ("citations", with_part({**DOCUMENT, "citations": {"enabled": True}}), "tools"),
    ("speed", base(speed="fast"), "tools"),
    ("output format", base(output_config={"format": {"type": "json_schema", "schema": {}}}), "tools"),
    ("system", base(system=[text(300, "other", "5m")]), "tools"),
    ("tool choice", base(tool_choice={"type": "any"}), "system"),
    ("parallel calls", base(tool_choice={"type": "auto", "disable_parallel_tool_use": True}), "system"),
    ("an image", with_part(IMAGE), "system"),
    ("thinking", base(thinking={"type": "enabled", "budget_tokens": 2000}, max_tokens=4_000), "system"),
    ("effort", base(output_config={"effort": "low"}), "system"),
    ("another message", base(messages=[{"role": "user", "content": [text(200, "other", "5m")]}]), "system"),
    ("a default spelt out", base(tool_choice={"type": "auto"}, speed="standard"), "messages"),
    ("a document without citations", with_part(DOCUMENT), "messages"),
]


@pytest.mark.parametrize(("change", "request_body", "survives"), CHANGES, ids=[name for name, _, _ in CHANGES])
def test_what_a_change_leaves_cached(change: str, request_body: dict[str, Any], survives: str) -> None:
    meter = Meter()
    first = bill(meter, base())
    assert first.written == ("tools[1]", "system[0]", "messages[0].content[0]")
    tools = first.usage.cache_creation_input_tokens - 500
    assert tools > 512
    expected = {"nothing": 0, "tools": tools, "system": tools + 300, "messages": tools + 500}[survives]
    assert bill(meter, request_body).usage.cache_read_input_tokens == expected


def test_key_order_counts_inside_a_tool_input_but_not_in_a_block() -> None:
    def request(given: dict[str, Any], *, turned: bool) -> dict[str, Any]:
        call = {"type": "tool_use", "id": "t", "name": "Read", "input": given}
        if turned:
            call = dict(reversed(call.items()))
        result = {"type": "tool_result", "tool_use_id": "t", "content": "ok"}
        return body(text(600, "a")) | {
            "messages": [
                {"role": "user", "content": [text(600, "a")]},
                {"role": "assistant", "content": [call]},
                {"role": "user", "content": [marked(result)]},
            ]
        }

    meter = Meter()
    total = bill(meter, request({"a": 1, "b": 2}, turned=False)).usage.prompt
    assert bill(meter, request({"a": 1, "b": 2}, turned=True)).usage.cache_read_input_tokens == total
    assert bill(meter, request({"b": 2, "a": 1}, turned=False)).usage.cache_read_input_tokens == 0


def test_fields_an_sdk_writes_out_as_null_change_nothing() -> None:
    messages = [{"role": "user", "content": [text(600, "a")]}, *exchange(1)]
    meter = Meter()
    automatic = {"model": "claude-opus-5", "max_tokens": 9, "cache_control": {"type": "ephemeral"}}
    total = bill(meter, {**automatic, "messages": messages}).usage.prompt
    call = {**messages[1]["content"][0], "caller": None, "toolset_name": None}
    again = [messages[0], {"role": "assistant", "content": [call]}, messages[2]]
    assert bill(meter, {**automatic, "messages": again}).usage.cache_read_input_tokens == total


def test_the_top_level_marker_lands_on_the_last_block_that_can_carry_one() -> None:
    meter = Meter()
    thought = {"type": "thinking", "thinking": "hm " * 20, "signature": "s"}
    request = {
        "model": "claude-opus-5",
        "max_tokens": 9,
        "cache_control": {"type": "ephemeral", "ttl": "1h"},
        "messages": [
            {"role": "user", "content": [text(600, "a")]},
            {"role": "assistant", "content": [{"type": "text", "text": "so"}, thought]},
        ],
    }
    billing = bill(meter, request)
    assert billing.written == ("messages[1].content[0]",)
    assert split(billing) == (0, 601, 0, 15)


def test_the_top_level_marker_where_there_already_is_one() -> None:
    same = body(text(600, "a", "1h"), cache_control={"type": "ephemeral", "ttl": "1h"})
    assert split(bill(Meter(), same)) == (0, 600, 0, 0)
    with pytest.raises(ApiError, match="differs from the top-level"):
        bill(Meter(), body(text(600, "a", "1h"), cache_control={"type": "ephemeral"}))
    four = [text(600, str(i), "5m") for i in range(4)]
    with pytest.raises(ApiError, match="A maximum of 4 blocks with cache_control may be provided"):
        bill(Meter(), body(*four, text(1), cache_control={"type": "ephemeral"}))
    three = bill(Meter(), body(*four[:3], text(10), cache_control={"type": "ephemeral"}))
    assert split(three) == (0, 0, 1810, 0)


def test_older_models_drop_thinking_when_the_user_speaks_again_and_newer_ones_keep_it() -> None:
    def request(model: str, *after: dict[str, Any]) -> dict[str, Any]:
        rounds = [*exchange(1, 4000, thoughts=True), *after]
        return {
            "model": model,
            "max_tokens": 9,
            "cache_control": {"type": "ephemeral"},
            "messages": [{"role": "user", "content": [text(600, "a")]}, *rounds],
        }

    spoken = ({"role": "assistant", "content": "done"}, {"role": "user", "content": "and now?"})
    for model, keeps in (("claude-haiku-4-5", False), ("claude-opus-5", True)):
        meter = Meter()
        whole = bill(meter, request(model)).usage.prompt
        tool_loop = bill(meter, request(model, *exchange(2, thoughts=True)))
        assert tool_loop.usage.cache_read_input_tokens == whole, "inside one turn nothing is dropped"
        spoke = bill(meter, request(model, *spoken))
        assert (spoke.usage.cache_read_input_tokens == whole) is keeps
        if not keeps:
            assert spoke.miss is not None
            assert spoke.miss.cause == "thinking_stripped"
            assert spoke.usage.prompt < whole + 10, "the thinking is not paid for either"


class _Held:
    """Answers when it is let go."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.go = asyncio.Event()

    async def reply(self, body: Any, *, purpose: str = "main") -> Reply:
        self.asked.set()
        await self.go.wait()
        return Reply([{"type": "text", "text": "yes"}], "end_turn")


def test_an_entry_can_be_read_once_the_first_response_has_begun() -> None:
    async def scenario() -> tuple[list[int], int]:
        held = _Held()
        simulator = Simulator(held)
        request = body(text(600, "a", "5m"))
        both = [asyncio.create_task(simulator.messages(request)) for _ in range(2)]
        await held.asked.wait()
        await asyncio.sleep(0)
        held.go.set()
        together = [answer["usage"]["cache_read_input_tokens"] for answer in await asyncio.gather(*both)]
        later = await simulator.messages(request)
        return together, later["usage"]["cache_read_input_tokens"]

    assert asyncio.run(scenario()) == ([0, 0], 600)


def test_a_request_that_failed_leaves_nothing_in_the_cache() -> None:
    async def scenario() -> int:
        simulator = Simulator()
        request = body(text(600, "a", "5m"))
        simulator.fail_next(529)
        with pytest.raises(ApiError):
            await simulator.messages(request)
        return (await simulator.messages(request))["usage"]["cache_read_input_tokens"]

    assert asyncio.run(scenario()) == 0


def test_prewarming_writes_the_cache_and_says_nothing() -> None:
    async def scenario() -> None:
        simulator = Simulator()
        warm = await simulator.messages(body(text(600, "a", "5m"), max_tokens=0))
        assert (warm["content"], warm["stop_reason"], warm["usage"]["output_tokens"]) == ([], "max_tokens", 0)
        assert warm["usage"]["cache_creation_input_tokens"] == 600
        answer = await simulator.messages(body(text(600, "a", "5m")))
        assert answer["usage"]["cache_read_input_tokens"] == 600

    asyncio.run(scenario())


def test_a_beta_that_changes_how_tools_are_written_is_part_of_the_prefix() -> None:
    meter = Meter()
    asked = body(marked(text(2_000)), tools=[tool("a")])
    plain, efficient = Caller(betas=("other-1",)), Caller(betas=("token-efficient-tools-2025-02-19",))
    meter.begin(meter.open(asked, 0.0, plain), 0)
    assert meter.begin(meter.open(asked, 1.0, Caller(betas=())), 0).usage.cache_read_input_tokens > 2_000
    missed = meter.begin(meter.open(asked, 2.0, efficient), 0)
    assert missed.usage.cache_read_input_tokens == 0
    assert missed.miss is not None and missed.miss.cause == "betas"
