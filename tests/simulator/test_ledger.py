"""The books: what every request paid, and why a read was missed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from reverie.models.catalogue import Catalogue
from reverie.models.prices import cost, input_equivalents
from reverie.simulator import Ledger, Meter, Miss, Simulator
from tests.simulator.bodies import body, conversation, exchange, marked, text, tool

TOOLS = [tool("Bash", "runs " * 100), tool("Read", "reads " * 100)]


def talk(rounds: int, **more: Any) -> dict[str, Any]:
    """A conversation with tools and system, marked after the system and at the end."""
    return conversation(rounds, **{"tools": TOOLS, "system": [text(500, "Be kind. Today is Monday.", "5m")], **more})


def provoke(first: dict[str, Any], second: dict[str, Any], later: float = 10.0) -> tuple[Meter, Miss]:
    meter = Meter()
    meter.bill(first, 0)
    billing = meter.bill(second, later)
    assert billing.miss is not None
    return meter, billing.miss


def edited(request: dict[str, Any], number: int) -> dict[str, Any]:
    """The same request with one tool result changed."""
    messages = [dict(message) for message in request["messages"]]
    messages[2 * number] = {"role": "user", "content": [{**messages[2 * number]["content"][0], "content": "changed"}]}
    return {**request, "messages": messages}


def far_apart() -> dict[str, Any]:
    """Twelve parallel calls more: the end marker is more than twenty positions behind the last entry."""
    calls = [exchange(number)[0]["content"][0] for number in range(50, 62)]
    results = [exchange(number)[1]["content"][0] for number in range(50, 62)]
    request = talk(3)
    request["messages"][-1]["content"][-1].pop("cache_control")
    request["messages"] += [
        {"role": "assistant", "content": calls},
        {"role": "user", "content": [*results[:-1], marked(results[-1])]},
    ]
    return request


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
CAUSES: list[tuple[str, dict[str, Any], float, str, str]] = [
    ("tool order", talk(4, tools=TOOLS[::-1]), 10, "tools", "tools[0]"),
    ("tool wording", talk(4, tools=[TOOLS[0], {**TOOLS[1], "description": "scans " * 100}]), 10, "tools", "tools[1]"),
    ("a tool more", talk(4, tools=[*TOOLS, tool("Grep")]), 10, "tools", "tools[2]"),
    ("a date in the system prompt", talk(4, system=[text(500, "Today is Tuesday.", "5m")]), 10, "system", "system[0]"),
    ("another model", talk(4, model="claude-fable-5"), 10, "model", "model"),
    ("edited history", edited(talk(4), 2), 10, "messages", "messages[4].content[0]"),
    ("tool choice", talk(4, tool_choice={"type": "any"}), 10, "tool_choice", "tool_choice"),
    ("thinking", talk(4, thinking={"type": "adaptive"}), 10, "thinking", "thinking"),
    ("effort", talk(4, output_config={"effort": "low"}), 10, "effort", "effort"),
    ("speed", talk(4, speed="fast"), 10, "speed", "speed"),
    ("time", talk(4), 301, "expired", "messages[6].content[0]"),
    ("parallel calls", far_apart(), 10, "lookback", "messages[6].content[0]"),
]


@pytest.mark.parametrize(("what", "second", "later", "cause", "path"), CAUSES, ids=[case[0] for case in CAUSES])
def test_a_miss_is_explained(what: str, second: dict[str, Any], later: float, cause: str, path: str) -> None:
    meter, miss = provoke(talk(3), second, later)
    first, row = meter.ledger.rows
    assert (miss.cause, miss.path, miss.against) == (cause, path, 1)
    assert miss.lost_tokens == first.usage.cache_creation_input_tokens - row.usage.cache_read_input_tokens
    # All of it was written again for five minutes: 1.25 instead of 0.1 of the input price.
    assert miss.input_equivalents == pytest.approx(miss.lost_tokens * 1.15)
    assert miss.cost == pytest.approx(miss.input_equivalents * Catalogue.load().facts(row.model).input_price / 1e6)


def test_a_marker_left_out_is_named() -> None:
    second = talk(4)
    second["messages"][-1]["content"][-1].pop("cache_control")
    second["system"] = [text(500, "Be kind. Today is Monday.")]
    _, miss = provoke(talk(3), second)
    assert miss.cause == "no_markers"
    assert miss.input_equivalents == pytest.approx(miss.lost_tokens * 0.9), "paid at 1 instead of 0.1"


def test_no_miss_is_reported_where_nothing_was_lost() -> None:
    meter = Meter()
    for rounds in range(1, 30):
        assert meter.bill(talk(rounds), rounds).miss is None
    other = talk(2)
    other["messages"][0] = {"role": "user", "content": [text(600, "another question")]}
    assert meter.bill(other, 40).miss is None, "a new conversation reads the system and misses nothing"
    side = talk(29)
    side["messages"] = [*side["messages"], {"role": "assistant", "content": "hm"}, {"role": "user", "content": "aside"}]
    assert meter.bill(side, 41).miss is None, "a side question reads all there is"
    assert meter.bill(talk(30), 42).miss is None, "and the main thread goes on as before"


def test_the_totals_are_the_sum_of_the_rows_at_the_catalogues_prices() -> None:
    meter = Meter()
    for rounds in (1, 2, 3):
        meter.bill(talk(rounds), 0, output_tokens=50)
    facts = Catalogue.load().facts("claude-opus-5")
    totals = meter.ledger.totals()
    assert totals["requests"] == 3
    assert totals["cost_usd"] == pytest.approx(sum(cost(row.usage, facts) for row in meter.ledger.rows))
    assert totals["input_equivalents"] == pytest.approx(
        sum(input_equivalents(row.usage, facts) for row in meter.ledger.rows)
    )
    assert totals["usage"]["output_tokens"] == 150
    assert 0 < totals["hit_rate"] < 1


def test_a_ledger_file_holds_every_request_as_a_line(tmp_path: Path) -> None:
    path = tmp_path / "bill.jsonl"
    simulator = Simulator(ledger=Ledger(path))

    async def scenario() -> None:
        await simulator.messages(talk(1))
        simulator.fail_next(529)
        with pytest.raises(Exception, match="Overloaded"):
            await simulator.messages(talk(2))
        await simulator.messages(talk(2), {"x-api-key": "secret-key", "x-reverie-purpose": "notes"})

    asyncio.run(scenario())
    text_of_file = path.read_text(encoding="utf-8")
    assert "secret-key" not in text_of_file, "a key is never written down"
    rows = [json.loads(line) for line in text_of_file.splitlines()]
    assert [row["number"] for row in rows] == [1, 2, 3]
    assert [row["error"] for row in rows] == [None, "Overloaded", None]
    assert [row["purpose"] for row in rows] == ["main", "main", "notes"]
    assert rows == [row.wire() for row in simulator.ledger.rows]


def test_diagnostics_name_the_first_difference() -> None:
    simulator = Simulator()

    def asked(request: dict[str, Any], previous: str | None) -> dict[str, Any]:
        answer = asyncio.run(simulator.messages({**request, "diagnostics": {"previous_message_id": previous}}))
        return {"id": answer["id"], "reason": (answer["diagnostics"] or {}).get("cache_miss_reason")}

    first = asked(talk(3), None)
    assert first["reason"] is None
    assert asked(talk(4), first["id"])["reason"] is None, "it only appends"
    for request, kind in (
        (talk(4, model="claude-fable-5"), "model_changed"),
        (talk(4, tools=TOOLS[::-1]), "tools_changed"),
        (talk(4, system=[text(500, "other")]), "system_changed"),
        (talk(4, speed="fast"), "system_changed"),
        (edited(talk(4), 2), "messages_changed"),
        (talk(2), "messages_changed"),
    ):
        reason = asked(request, first["id"])["reason"]
        assert reason["type"] == kind
        assert reason["cache_missed_input_tokens"] > 0
    assert asked(talk(4), "msg_unknown")["reason"] == {"type": "previous_message_not_found"}
    silent = asyncio.run(simulator.messages(body(text(5))))
    assert "diagnostics" not in silent


def agent(name: str, rounds: int, tools: list[dict[str, Any]] = TOOLS) -> dict[str, Any]:
    """A sub-agent as Claude Code starts it: other tools and system, and the first block of the main conversation."""
    request = talk(rounds, tools=tools, system=[text(500, f"You are {name}.", "5m")])
    request["messages"][0] = {"role": "user", "content": [text(600, "question"), text(50, f"task of {name}")]}
    for message in request["messages"][1:]:
        for block in message["content"]:
            for key in ("id", "tool_use_id"):
                if key in block:
                    block[key] = f"{name}_{block[key]}"
    return request


def forked(rounds: int, question: str, answers: int = 0) -> dict[str, Any]:
    """The main conversation after so many rounds, with a question of its own, marked at the end."""
    request = talk(rounds)
    request["messages"][-1]["content"][-1].pop("cache_control")
    request["messages"].append({"role": "assistant", "content": [text(20, f"so far {rounds}")]})
    request["messages"].append({"role": "user", "content": [text(80, question)]})
    for number in range(answers):
        request["messages"] += exchange(900 + number, name=question)
    last = request["messages"][-1]["content"]
    last[-1] = marked(last[-1])
    return request


def test_forks_and_sub_agents_are_threads_of_their_own() -> None:
    meter = Meter()
    main = [talk(rounds) for rounds in range(1, 13)]
    for number, request in enumerate(main[:6]):
        meter.bill(request, number)
    others = [
        forked(6, "remember this"),  # from the end of the main thread
        agent("scout", 1, TOOLS[::-1]),
        forked(2, "what if"),  # from far behind it
        agent("scout", 2, TOOLS[::-1]),
        agent("critic", 1),
        forked(2, "what if", answers=2),
    ]
    for number, (other, request) in enumerate(zip(others, main[6:], strict=True), 10):
        meter.bill(other, number)
        meter.bill(request, number)
    assert [row.miss for row in meter.ledger.rows if row.miss] == []
    assert meter.ledger.totals()["misses"] == 0
    late = meter.bill(forked(2, "what if", answers=3), 100)
    assert late.hit is not None and late.miss is None, "the fork reads what it wrote itself"
    broken = meter.bill(agent("critic", 2, [TOOLS[0], tool("Grep")]), 101).miss
    assert broken is not None and broken.cause == "tools", "but a thread that loses its own prefix misses it"


def test_an_agent_on_another_model_with_the_same_system_prompt_misses_nothing() -> None:
    def sent(model: str, task: str) -> dict[str, Any]:
        return body(text(50, task), model=model, tools=TOOLS, system=[text(600, "Be kind.", "5m")])

    meter = Meter()
    meter.bill(sent("claude-opus-5", "first"), 0)
    assert meter.bill(sent("claude-fable-5", "second"), 1).miss is None
    assert meter.bill(sent("claude-fable-5", "third"), 2).usage.cache_read_input_tokens > 600


def test_a_fork_that_cannot_read_what_it_begins_with_is_a_miss() -> None:
    meter = Meter()
    meter.bill(talk(5), 0)
    fork = forked(5, "remember this")
    miss = meter.bill({**fork, "tool_choice": {"type": "any"}}, 1).miss
    assert miss is not None and miss.cause == "tool_choice"


def test_messages_dropped_from_the_front_are_a_change() -> None:
    first, second = talk(8), talk(9)
    second["messages"] = [second["messages"][0] | {"content": [text(10, "again")]}, *second["messages"][3:]]
    _, miss = provoke(first, second)
    assert (miss.cause, miss.path) == ("messages", "messages[0].content[0]")


def test_what_was_too_old_in_any_case_expired_whatever_changed_with_it() -> None:
    for second, later, cause in (
        (talk(4, tools=TOOLS[::-1]), 10, "tools"),
        (talk(4, tools=TOOLS[::-1]), 301, "expired"),
        (edited(talk(4), 2), 299, "messages"),
        (edited(talk(4), 2), 301, "expired"),
    ):
        assert provoke(talk(3), second, later)[1].cause == cause


def test_the_attribution_of_claude_code_is_no_part_of_the_prompt() -> None:
    def sent(rounds: int, value: str) -> dict[str, Any]:
        attribution = {"type": "text", "text": f"x-anthropic-billing-header: cc_version=2.1.325.{value}; cch={value};"}
        return talk(rounds, system=[attribution, text(500, "Be kind. Today is Monday.", "5m")])

    meter = Meter()
    first = meter.bill(sent(3, "a1b"), 0)
    second = meter.bill(sent(4, "c2d"), 1)
    assert second.miss is None and second.usage.cache_read_input_tokens == first.usage.prompt
    assert first.usage.prompt == Meter().bill(talk(3), 0).usage.prompt, "and it costs nothing"
