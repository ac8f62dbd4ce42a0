"""What nobody should send: foreign hosts and pages, no key, wild numbers, bodies of every wrong shape."""

from __future__ import annotations

import asyncio
import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reverie.simulator import ApiError, Clock, Ledger, Meter, Simulator
from reverie.simulator.http import app
from tests.counts import SOAK, count
from tests.simulator.asgi import KEYED, LOCAL, ask, call
from tests.simulator.bodies import conversation, marked, text, tool

MESSAGES, COUNT, CHAT = "/v1/messages", "/v1/messages/count_tokens", "/v1/chat/completions"
RESPONSES = "/v1/responses"
BETAS = (
    "anthropic-beta",
    "context-management-2025-06-27, compact-2026-01-12, compact-2026-09-04, message-threads-2026-08-12, "
    "mid-conversation-system-clear-at-2026-08-21",
)
HELLO = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}


def served(**more: Any) -> tuple[Simulator, Any]:
    simulator = Simulator(**more)
    return simulator, app(simulator)


# ---------------------------------------------------------------- who may ask


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:9", "localhost", "LOCALHOST:8787", "[::1]", "[::1]:8787", "127.8.9.1:80"]
)
def test_names_of_this_machine_are_answered(host: str) -> None:
    _, site = served()
    assert ask(site, "POST", MESSAGES, HELLO, headers=(("host", host), KEYED[1]))[0] == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8787", "127.0.0.1.evil.example", "localhost.evil.example", "0.0.0.0:8787", "[::]"]  # noqa: RUF005
    + ["", "10.0.0.1", "localhost@evil.example", "127.0.0.1:8787 evil", "[::1]evil", "127.1", "2130706433"],
)
@pytest.mark.parametrize("path", [MESSAGES, CHAT, "/_sim/faults"])
def test_other_names_are_refused_before_anything_is_read(host: str, path: str) -> None:
    simulator, site = served()
    headers = (("host", host), KEYED[1], ("x-sim-key", simulator.control_key))
    status, answer = ask(site, "POST", path, HELLO, headers=headers)
    assert (status, answer["error"]["type"]) == (403, "permission_error")
    assert "127.0.0.1" in answer["error"]["message"]
    assert not simulator.ledger.rows


def test_a_request_has_one_host() -> None:
    _, site = served()
    assert ask(site, "GET", "/v1/models", headers=())[0] == 403
    assert ask(site, "GET", "/v1/models", headers=(LOCAL, ("host", "evil.example")))[0] == 403


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "http://localhost.evil.example", "http://127.0.0.1.evil.example:8787"]  # noqa: RUF005
    + ["file://", "http://0.0.0.0", "chrome-extension://abc", "http://localhost:3000/x", "http://a@localhost", ""],
)
def test_a_page_of_another_host_is_refused(origin: str) -> None:
    simulator, site = served()
    for path, body in ((MESSAGES, HELLO), ("/_sim/clock", {"advance_s": 1})):
        headers = (*KEYED, ("x-sim-key", simulator.control_key), ("origin", origin))
        status, answer = ask(site, "POST", path, body, headers=headers)
        assert (status, answer["error"]["type"]) == (403, "permission_error")
        assert "Origin" in answer["error"]["message"]


def test_a_page_of_this_machine_and_a_link_in_the_terminal_are_answered() -> None:
    simulator, site = served()
    page = (*KEYED, ("origin", "http://localhost:3000"), ("sec-fetch-site", "cross-site"))
    assert ask(site, "POST", MESSAGES, HELLO, headers=page)[0] == 200
    link = f"/_sim/ledger?key={simulator.control_key}"
    assert ask(site, "GET", link, headers=(LOCAL, ("sec-fetch-site", "none")))[0] == 200
    assert ask(site, "GET", link, headers=(LOCAL, ("sec-fetch-site", "cross-site")))[0] == 403


@pytest.mark.parametrize(("method", "path"), [("GET", "/_sim/ledger"), ("GET", "/_sim/clock"), ("POST", "/_sim/clock")])
def test_control_asks_for_the_key(method: str, path: str) -> None:
    simulator, site = served()
    for extra in ((), (("x-sim-key", "guess"),), (("x-sim-key", "ü"),), KEYED[1:], (("authorization", "Bearer k"),)):
        status, answer = ask(site, method, path, {"advance_s": 5}, headers=(LOCAL, *extra))
        assert (status, answer["error"]["type"]) == (401, "authentication_error")
    status, _ = ask(site, "POST", "/_sim/faults", {"status": 529}, headers=KEYED)
    assert status == 401
    assert simulator.clock.now() == Clock().now()
    assert ask(site, "POST", MESSAGES, HELLO)[0] == 200, "no fault was queued"


def test_the_key_can_be_chosen_and_is_random_otherwise() -> None:
    simulator, site = served(control_key="mine")
    assert ask(site, "GET", "/_sim/clock", headers=(LOCAL, ("x-sim-key", "mine")))[0] == 200
    assert len({Simulator().control_key for _ in range(9)}) == 9 and simulator.control_key == "mine"


# ---------------------------------------------------------------- numbers of control bodies


def control(site: Any, simulator: Simulator, path: str, body: Any) -> tuple[int, Any]:
    return ask(site, "POST", path, body, headers=(LOCAL, ("x-sim-key", simulator.control_key)))


@pytest.mark.parametrize(
    "step", [-1, 1e300, 3.2e8, "5", None, True, [1], {}, b"NaN", b"Infinity", b"-Infinity", b"1e999"]
)
def test_a_step_of_the_clock_is_bounded(step: Any) -> None:
    simulator, site = served()
    raw = b'{"advance_s": ' + step + b"}" if isinstance(step, bytes) else {"advance_s": step}
    status, answer = control(site, simulator, "/_sim/clock", raw)
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
    assert simulator.clock.now() == Clock().now()
    assert control(site, simulator, "/_sim/clock", {"advance_s": 2.5}) == (200, {"now": Clock().now() + 2.5})


def test_the_clock_stops_before_the_year_10000() -> None:
    simulator, site = served()
    ten_years = 10 * 365 * 86_400
    while simulator.clock.now() < 253_402_300_799 - ten_years:
        simulator.clock.advance(ten_years)
    assert control(site, simulator, "/_sim/clock", {"advance_s": ten_years})[0] == 400
    assert ask(site, "POST", MESSAGES, HELLO)[0] == 200
    for step in (float("nan"), float("inf"), -1.0, 1e18):
        with pytest.raises(ValueError, match="clock"):
            simulator.clock.advance(step)


@pytest.mark.parametrize(
    "fault",
    [
        {"times": 1_000_000_000},
        {"times": 0},
        {"times": -1},
        {"times": 1.5},
        {"times": True},
        {"times": "9"},
        {"times": None},
        {"times": 10**400},
        {"status": 200},
        {"status": 99},
        {"status": 600},
        {"status": "529"},
        {"status": None},
        {"retry_after": -1},
        {"retry_after": 1e9},
        {"retry_after": "soon"},
        {"retry_after": float("nan")},
        {"message": 5},
        {"message": "x" * 100_000},
        {"time": 3},
    ],
)
def test_faults_are_bounded(fault: dict[str, Any]) -> None:
    simulator, site = served()
    status, answer = control(site, simulator, "/_sim/faults", {"status": 529} | fault)
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
    assert ask(site, "POST", MESSAGES, HELLO)[0] == 200


def test_many_faults_cost_no_memory_and_the_queue_is_bounded() -> None:
    simulator, site = served()
    for _ in range(999):
        simulator.fail_next(503, times=10_000)
    statuses = [control(site, simulator, "/_sim/faults", {"status": 503})[0] for _ in range(2)]
    assert statuses == [200, 400]
    with pytest.raises(ValueError, match="times"):
        simulator.fail_next(529, times=1_000_000_000)


def test_a_fault_strikes_as_often_as_asked() -> None:
    simulator, site = served()
    control(site, simulator, "/_sim/faults", {"status": 529, "times": 2})
    control(site, simulator, "/_sim/faults", {"status": 429, "retry_after": 7, "message": "slow down"})
    assert [ask(site, "POST", MESSAGES, HELLO)[0] for _ in range(4)] == [529, 529, 429, 200]
    assert [row.error for row in simulator.ledger.rows] == ["Overloaded", "Overloaded", "slow down", None]


# ---------------------------------------------------------------- bodies

DEEP = b'{"model": "m", "max_tokens": 9, "messages": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
NESTED: Any = []
for _ in range(300):
    NESTED = [NESTED]
BAD_BODIES: dict[str, Any] = {
    "deep": DEEP,
    "deeper than a walk": HELLO | {"metadata": {"a": NESTED}},
    "a lone surrogate": json.dumps(HELLO | {"messages": [{"role": "user", "content": "\ud800"}]}).encode(),
    "a lone surrogate in a key": json.dumps(HELLO | {"\udfff": 1}).encode(),
    "a raw surrogate": b'{"model": "\xed\xa0\x80"}',
    "not UTF-8": b'{"model": "\xff"}',
    "UTF-16": json.dumps(HELLO).encode("utf-16"),
    "NaN": b'{"model": "m", "max_tokens": NaN}',
    "a huge number": b'{"model": "m", "max_tokens": 1e999}',
    "a huge integer": b'{"model": "m", "max_tokens": ' + b"9" * 4_000 + b"}",
    "an integer too long to read": b'{"model": "m", "max_tokens": ' + b"9" * 5_000 + b"}",
    "an object as content": HELLO | {"messages": [{"role": "user", "content": {"type": "text", "text": "x"}}]},
    "a number as content": HELLO | {"messages": [{"role": "user", "content": 5}]},
    "an object as text": HELLO | {"messages": [{"role": "user", "content": [{"type": "text", "text": {}}]}]},
    "text of a system turn": HELLO | {"messages": [{"role": "system", "content": [{"type": "text", "text": []}]}]},
    "a text as block": HELLO | {"messages": [{"role": "user", "content": ["x"]}]},
    "a list as message": HELLO | {"messages": [[]]},
    "a list as model": HELLO | {"model": ["m"]},
    "a long model": HELLO | {"model": "m" * 100_000},
    "many values": b'{"a": [' + b"0," * 2_500_000 + b"0]}",
    "nothing": b"",
    "a list": b"[]",
}


@pytest.mark.parametrize("path", [MESSAGES, COUNT, CHAT])
@pytest.mark.parametrize("kind", BAD_BODIES)
def test_a_bad_body_is_a_400_and_the_books_go_on(kind: str, path: str, tmp_path: Path) -> None:
    book = tmp_path / "bill.jsonl"
    simulator, site = served(ledger=Ledger(book))
    status, answer = ask(site, "POST", path, BAD_BODIES[kind])
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
    assert answer["error"]["message"] and len(json.dumps(answer)) < 5_000
    assert ask(site, "POST", path, HELLO)[0] == 200
    assert ask(site, "GET", f"/_sim/ledger?key={simulator.control_key}")[0] == 200
    written = book.read_text().splitlines() if book.exists() else []
    assert [json.loads(line) for line in written] == simulator.ledger.wire()["requests"]
    assert bool(written) == (path != COUNT), "counting is free and not booked"


def test_in_process_a_lone_surrogate_does_not_stop_the_books(tmp_path: Path) -> None:
    book = tmp_path / "bill.jsonl"
    simulator = Simulator(ledger=Ledger(book))
    asyncio.run(simulator.messages(HELLO | {"model": "m\ud800"}))
    assert json.loads(book.read_text())["model"] == "m\ud800"


def test_a_method_or_path_that_is_not_served_has_the_apis_form() -> None:
    _, site = served()
    for method, path, status in (("DELETE", MESSAGES, 405), ("GET", MESSAGES, 405), ("PUT", "/x", 404)):
        got, answer = ask(site, method, path)
        assert (got, answer["type"]) == (status, "error")


# ---------------------------------------------------------------- thousands of them

ODD: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1,
    7.5,
    1e300,
    2**62,
    "",
    " ",
    "x",
    "text",
    "tool_use",
    "ä\u0000\u202e",
    "5m",
]
ODD += [[], {}, [[]], [{}], {"type": "text"}, {"type": ["x"]}, [None], ["x", 3], {"": {}}, {"type": "text", "text": 1}]


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2},
        "more": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/More"}},
        "kind": {"enum": ["a", "b"]},
        "either": {"anyOf": [{"type": "integer", "minimum": 3}, {"type": "null"}]},
    },
    "required": ["name", "more", "kind"],
    "$defs": {"More": {"type": ["object", "string"], "properties": {"x": {"$ref": "#"}}, "required": ["x"]}},
}


def bases() -> Iterator[tuple[str, dict[str, Any]]]:
    edits = [
        {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}},
        {
            "type": "clear_tool_uses_20250919",
            "trigger": {"type": "tool_uses", "value": 1},
            "keep": {"type": "tool_uses", "value": 1},
            "exclude_tools": ["Other"],
            "clear_tool_inputs": ["Read"],
        },
        {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000}},
    ]
    rich = conversation(3, thoughts=True) | {
        "system": [marked(text(600, "system"))],
        "tools": [tool("Read"), {"type": "web_search_20250305", "name": "web_search"}],
        "tool_choice": {"type": "auto"},
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "low", "format": {"type": "json_schema"}},
        "stop_sequences": ["end"],
        "speed": "fast",
        "stream": True,
        "metadata": {"user_id": "u"},
        "diagnostics": {"previous_message_id": None},
        "context_management": {"edits": edits},
        "cache_edits": {"edits": [{"type": "delete", "cache_reference": "toolu_1"}]},
    }
    parts = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
        {
            "type": "document",
            "source": {"type": "content", "content": [{"type": "text", "text": "in it"}]},
            "citations": {"enabled": True},
        },
        {"type": "text", "text": "look", "citations": []},
    ]
    rich["messages"][2]["content"][0]["content"] = parts
    rich["messages"].append({"role": "system", "content": [text(3, "a reminder")]})
    yield MESSAGES, rich
    yield COUNT, {key: value for key, value in rich.items() if key not in ("stream", "diagnostics")}
    calls = [{"id": f"c{i}", "type": "function", "function": {"name": "Read", "arguments": '{"a": 1}'}} for i in (1, 2)]
    turns = [
        {"role": "system", "content": [{"type": "text", "text": "be short"}]},
        {
            "role": "user",
            "content": [*({"type": "text", "text": "hi"},), {"type": "image_url", "image_url": {"url": "x"}}],
        },
        {"role": "assistant", "content": None, "tool_calls": calls},
        *({"role": "tool", "tool_call_id": call["id"], "content": [{"type": "text", "text": "ok"}]} for call in calls),
        {"role": "developer", "content": "now"},
    ]
    function = {"type": "function", "function": {"name": "Read", "parameters": {"type": "object"}}}
    options = {"stream": True, "stream_options": {"include_usage": True}, "max_completion_tokens": 50}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
    yield CHAT, {"model": "gpt-4o", "messages": turns, "tools": [function], "response_format": form, **options}
    yield (
        MESSAGES,
        HELLO
        | {
            "tools": [tool("Read"), {**tool("final"), "input_schema": SCHEMA}],
            "tool_choice": {"type": "tool", "name": "final"},
            "temperature": 0.5,
            "thread": {"type": "create"},
        },
    )
    summed = conversation(2)["messages"]
    yield (
        MESSAGES,
        HELLO
        | {
            "compaction": {"type": "summarize", "instructions": "short"},
            "messages": [*summed, {"role": "system", "content": "now", "clear_at": "next_user_message"}],
        },
    )
    items = [
        {"role": "developer", "content": [{"type": "input_text", "text": "be short"}]},
        {"role": "user", "content": [{"type": "input_text", "text": "hi"}, {"type": "input_image", "image_url": "x"}]},
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "c1", "name": "Read", "arguments": '{"a": 1}'},
        {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "x"},
        {"type": "function_call_output", "call_id": "c1", "output": "ok"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "ok"}]},
        {"type": "web_search_call", "id": "w", "status": "completed"},
        {"role": "user", "content": "go on"},
    ]
    read = {"type": "function", "name": "Read", "parameters": SCHEMA}
    inner = {"type": "namespace", "name": "files", "tools": [{**read, "name": "list"}]}
    yield (
        RESPONSES,
        {
            "model": "gpt-5",
            "input": items,
            "instructions": "be kind",
            "tools": [read, {"type": "custom", "name": "patch"}, inner, {"type": "web_search"}],
            "tool_choice": "required",
            "text": {"format": {"type": "json_schema", "name": "x", "schema": SCHEMA}},
            "max_output_tokens": 500,
            "stream": True,
            "store": True,
        },
    )
    yield "/_sim/profile", {"/v1/models": {"wait_s": 0, "pace_s": 0, "status": 400, "every": 2, "message": "no"}}
    yield "/_sim/clock", {"advance_s": 3}
    yield "/_sim/faults", {"status": 400, "times": 1, "message": "no", "retry_after": 1}


def places(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield here
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inside:
        yield from places(each, (*here, key))


def mutated(value: Any, chance: random.Random) -> Any:
    """The body with one to four of its values replaced, removed, doubled or moved."""
    value = copy.deepcopy(value)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        spots = [spot for spot in places(value) if spot]
        if not spots:
            return value
        *way, last = chance.choice(spots)
        holder = value
        for key in way:
            holder = holder[key]
        match chance.randrange(6):
            case 0:
                del holder[last]
            case 1 if isinstance(holder, list):
                holder.insert(last, copy.deepcopy(holder[last]))
            case 2:
                *other, end = chance.choice(spots)
                found = value
                for key in (*other, end):
                    found = found[key]
                holder[last] = copy.deepcopy(found)
            case 3:
                holder[last] = "y" * chance.choice((300, 20_000))
            case _:
                holder[last] = copy.deepcopy(chance.choice(ODD))
    return value


def scratched(raw: bytes, chance: random.Random) -> bytes:
    """The bytes with a few of them changed."""
    made = bytearray(raw or b" ")
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(made) + 1)
        made[at : at + chance.randrange(3)] = chance.choice(
            (b"", b"\xff", b"[", b"}", b'"', b"NaN", b"\\ud800", b"1e999")
        )
    return bytes(made)


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.soak
def test_thousands_of_wrong_bodies_give_no_server_error_and_cost_no_memory() -> None:
    chance = random.Random(13)
    simulator, site = served(threads=True)
    control_of = Simulator(control_key="k")
    control_site = app(control_of)
    given = list(bases())
    headers = [*KEYED, ("x-sim-key", "k"), BETAS]
    seen: dict[tuple[str, int], int] = {}

    async def run() -> None:
        for path, body in given:
            status, answer = await call(
                control_site if path.startswith("/_sim") else site, "POST", path, json.dumps(body).encode(), headers
            )
            assert status == 200, answer
        before = resident()
        for number in range(count(1_200, 100_000)):
            path, body = given[number % len(given)]
            raw = json.dumps(mutated(body, chance)).encode()
            if chance.random() < 0.2:
                raw = scratched(raw, chance)
            where = control_site if path.startswith("/_sim") else site
            status, answer = await call(where, "POST", path, raw, headers)
            assert status < 500, (path, raw[:3_000], answer)
            if status >= 400:
                assert json.loads(answer)["error"]["message"], (path, raw)
            seen[path, status] = seen.get((path, status), 0) + 1
        assert resident() - before < 300_000_000

    asyncio.run(run())
    for path, _ in given:
        assert seen.get((path, 200), 0) > 10 and seen.get((path, 400), 0) > 10, seen
    status, answer = ask(site, "POST", MESSAGES, HELLO)
    assert status == 200 and answer["content"]
    assert simulator.ledger.totals()["requests"] == len(simulator.ledger.rows)


@pytest.mark.soak
def test_large_bodies_do_not_add_up_in_memory() -> None:
    meter = Meter()
    small = [{"type": "text", "text": f"{number}"} for number in range(40_000)]
    before = resident()
    for number in range(count(16, 200)):
        with pytest.raises(ApiError, match="prompt is too long"):
            meter.bill(HELLO | {"messages": [{"role": "user", "content": f"{number}".ljust(8_000_000)}]}, 0)
    for number in range(count(1, 100)):
        meter.bill(HELLO | {"messages": [{"role": "user", "content": [text(9, str(number)), *small]}]}, 0)
    assert resident() - before < (180_000_000 if SOAK else 100_000_000)
    with pytest.raises(ApiError, match="at most 100,000"):
        meter.bill(HELLO | {"messages": [{"role": "user", "content": [text(1, "a")] * 100_001}]}, 0)
