"""What the API refuses, in its own words and shape."""

from __future__ import annotations

from typing import Any

import pytest

from reverie.simulator import ApiError, Caller, Meter
from tests.simulator.bodies import body, conversation, exchange, marked, text, tool

USER = {"role": "user", "content": "hi"}


def refusal(request: dict[str, Any], **more: Any) -> ApiError:
    meter = Meter(**more)
    with pytest.raises(ApiError) as caught:
        meter.bill(request, 0)
    assert not meter.ledger.rows, "a refused request is not billed"
    return caught.value


def test_the_shape_of_an_error() -> None:
    error = refusal({"max_tokens": 1, "messages": [USER]})
    assert error.wire("req_1") == {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "model: Field required"},
        "request_id": "req_1",
    }
    assert error.code == 400


def test_a_prompt_that_does_not_fit_names_both_numbers() -> None:
    error = refusal(body(text(250_000)), window=200_000)
    assert str(error) == "prompt is too long: 250000 tokens > 200000 maximum"
    assert str(refusal(body(text(200_001), model="claude-haiku-4-5"))) == (
        "prompt is too long: 200001 tokens > 200000 maximum"
    )


def test_older_models_refuse_an_answer_that_might_not_fit_and_newer_ones_do_not() -> None:
    error = refusal(body(text(190_000), model="claude-opus-4-1", max_tokens=20_000))
    assert str(error).startswith("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, ")
    Meter().bill(body(text(190_000), model="claude-haiku-4-5", max_tokens=20_000), 0)


def test_more_output_than_the_model_can_give() -> None:
    error = refusal(body(text(5), model="claude-haiku-4-5", max_tokens=64_001))
    assert str(error).startswith("max_tokens: 64001 > 64000, which is the maximum allowed number of output tokens for")


def test_five_markers() -> None:
    error = refusal(body(*(text(10, str(i), "5m") for i in range(5))))
    assert str(error) == "A maximum of 4 blocks with cache_control may be provided. Found 5."


def test_a_long_lifetime_after_a_short_one_names_the_path_and_the_order() -> None:
    error = refusal(body(text(10), text(10, "b", "1h"), tools=[marked(tool("A"))]))
    assert str(error) == (
        "messages.0.content.1.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' "
        "cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`."
    )
    assert "system.0.cache_control.ttl" in str(
        refusal(body(text(1), system=[text(9, "s", "1h")], tools=[marked(tool("A"))]))
    )


def test_a_call_without_its_result() -> None:
    request = conversation(2)
    del request["messages"][2]
    error = refusal(request)
    assert str(error) == (
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. Each "
        "`tool_use` block must have a corresponding `tool_result` block in the next message."
    )


def test_a_result_without_its_call() -> None:
    request = conversation(1)
    del request["messages"][1]
    error = refusal(request)
    assert str(error) == (
        "messages.1.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1. Each `tool_result` "
        "block must have a corresponding `tool_use` block in the previous message."
    )


def test_one_of_two_results_missing_and_one_given_twice() -> None:
    calls = [exchange(1)[0]["content"][0], exchange(2)[0]["content"][0]]
    results = [exchange(1)[1]["content"][0], exchange(2)[1]["content"][0]]

    def request(*given: dict[str, Any]) -> dict[str, Any]:
        turns = [USER, {"role": "assistant", "content": calls}, {"role": "user", "content": list(given)}]
        return {"model": "m", "max_tokens": 1, "messages": turns}

    assert "immediately after: toolu_2." in str(refusal(request(results[0])))
    assert "Found multiple `tool_result` blocks with id: toolu_1" in str(refusal(request(results[0], *results)))
    Meter().bill(request(*results), 0)


def test_results_may_be_spread_over_consecutive_user_messages() -> None:
    calls = [exchange(1)[0]["content"][0], exchange(2)[0]["content"][0]]
    turns = [USER, {"role": "assistant", "content": calls}, exchange(1)[1], exchange(2)[1]]
    Meter().bill({"model": "m", "max_tokens": 1, "messages": turns}, 0)


THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s", "cache_control": {"type": "ephemeral"}}
EMPTY = {"type": "text", "text": ""}

REFUSED: list[tuple[dict[str, Any], str]] = [
    (body(text(1), max_tokens=None), "max_tokens: Field required"),
    (body(text(1), max_tokens="9"), "max_tokens: Input should be a valid integer"),
    (body(text(1), max_tokens=-1), "max_tokens: Input should be greater than or equal to 0"),
    ({"model": "m", "max_tokens": 1}, "messages: Field required"),
    ({"model": "m", "max_tokens": 1, "messages": []}, "messages: at least one message is required"),
    ({"model": "m", "max_tokens": 1, "messages": [{"role": "bot", "content": "x"}]}, "messages.0.role"),
    ({"model": "m", "max_tokens": 1, "messages": [{"role": "user"}]}, "messages.0.content: Field required"),
    (body(EMPTY), "messages: text content blocks must be non-empty"),
    (body(text(5), {"type": "text", "text": " \n"}), "messages: text content blocks must contain non-whitespace text"),
    (body(marked(EMPTY)), "messages.0.content.0.text: cache_control cannot be set for empty text blocks"),
    (body(text(1), system=[EMPTY]), "system: text content blocks must be non-empty"),
    (body(text(1), system=3), "system: Input should be a valid list"),
    (body(text(1), tools={}), "tools: Input should be a valid list"),
    (body({"text": "x"}), "messages.0.content.0.type: Field required"),
    (
        {"model": "m", "max_tokens": 1, "messages": [USER, {"role": "assistant", "content": [THOUGHT]}]},
        "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
    ),
    ({"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": []}]}, "must have non-empty content"),
    (body({**text(9), "cache_control": {"type": "forever"}}), "cache_control.type: Input should be 'ephemeral'"),
    (body({**text(9), "cache_control": {"type": "ephemeral", "ttl": "2h"}}), "ttl: Input should be '5m' or '1h'"),
    (body(text(1), max_tokens=0, stream=True), "max_tokens: 0 is not supported with `stream: true`"),
    (body(text(1), max_tokens=0, thinking={"type": "enabled", "budget_tokens": 1}), "when thinking is enabled"),
    (body(text(1), max_tokens=0, tool_choice={"type": "any"}), "forced `tool_choice`"),
    (body(text(1), max_tokens=0, tool_choice={"type": "tool", "name": "A"}), "forced `tool_choice`"),
    (body(text(1), context_management={"edits": [{"type": "clear_all"}]}), "Input tag 'clear_all'"),
    (body(text(1), context_management={"edits": 3}), "context_management.edits: Input should be a valid list"),
    (
        body(text(1), cache_edits={"edits": [{"type": "delete", "cache_reference": "no"}]}),
        "no `tool_result` with id no",
    ),
    (body(text(1), cache_edits={"edits": [{"type": "add"}]}), "cache_edits.edits.0.type: Input should be 'delete'"),
]


@pytest.mark.parametrize(("request_body", "message"), REFUSED, ids=[message[:50] for _, message in REFUSED])
def test_a_refused_body(request_body: dict[str, Any], message: str) -> None:
    error = refusal(request_body)
    assert message in str(error)
    assert (error.code, error.kind) == (400, "invalid_request_error")


def test_tool_names() -> None:
    two = [tool("Read"), tool("Bash"), tool("Read")]
    assert str(refusal(body(text(1), tools=two))) == "tools: Tool names must be unique."
    for name in ("", "a b", "naïve", "mcp.read", "x\n"):
        said = str(refusal(body(text(1), tools=[tool("Read"), tool(name)])))
        assert said == "tools.1.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"
    said = str(refusal(body(text(1), tools=[tool("x" * 129)])))
    assert said == "tools.0.custom.name: String should have at most 128 characters"
    assert str(refusal(body(text(1), tools=[{"input_schema": {}}]))) == "tools.0.custom.name: Field required"
    search = {"type": "web_search_20250305", "name": "web_search"}
    Meter().bill(body(text(1), tools=[tool("x" * 128), search]), 0)
    assert "unique" in str(refusal(body(text(1), tools=[tool("web_search"), search])))


def test_settings_out_of_range() -> None:
    for value in (1.01, 2, -0.1):
        assert str(refusal(body(text(1), temperature=value))) == "temperature: range: 0..1"
    assert str(refusal(body(text(1), temperature="hot"))) == "temperature: Input should be a valid number"
    for value in (0, 0.7, 1):
        Meter().bill(body(text(1), temperature=value, top_p=value), 0)


def test_a_budget_of_thinking_leaves_room_for_the_answer() -> None:
    def thinking(budget: int, **more: Any) -> dict[str, Any]:
        return body(text(1), max_tokens=4_000, thinking={"type": "enabled", "budget_tokens": budget}, **more)

    for budget in (4_000, 9_000):
        assert str(refusal(thinking(budget))).startswith("`max_tokens` must be greater than `thinking.budget_tokens`.")
    assert "greater than or equal to 1024" in str(refusal(thinking(1_023)))
    Meter().bill(thinking(3_999), 0)
    interleaved = Caller(betas=("interleaved-thinking-2025-05-14",))
    Meter().open(thinking(9_000, tools=[tool("Read")]), 0, interleaved)
    with pytest.raises(ApiError):
        Meter().open(thinking(9_000), 0, interleaved)


def test_a_choice_of_tools_that_cannot_be_met() -> None:
    tools = [tool("Read")]
    for choice, said in (
        ({"type": "tool", "name": "Write"}, "Tool 'Write' not found in provided tools"),
        ({"type": "tool"}, "tool_choice.tool.name: Field required"),
        ({"type": "some"}, "tool_choice: Input tag 'some' found using 'type' does not match any of the expected tags"),
    ):
        assert str(refusal(body(text(1), tools=tools, tool_choice=choice))).startswith(said)
    assert "while providing tools" in str(refusal(body(text(1), tool_choice={"type": "any"})))
    forced = body(text(1), tools=tools, tool_choice={"type": "any"}, thinking={"type": "adaptive"})
    assert str(refusal(forced)) == "Thinking may not be enabled when tool_choice forces tool use."
