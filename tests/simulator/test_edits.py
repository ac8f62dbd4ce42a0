"""What the server takes out of a prompt: context edits, compaction, and our own cache edits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reverie.simulator import ApiError, Caller, Meter, Simulator
from reverie.simulator.edits import CLEARED_RESULT
from reverie.simulator.tokens import text_tokens
from tests.simulator.bodies import body, conversation, exchange, marked, text

HOLE = text_tokens(CLEARED_RESULT)


def clear_tools(**more: Any) -> dict[str, Any]:
    edit: dict[str, Any] = {"type": "clear_tool_uses_20250919", "trigger": {"type": "tool_uses", "value": 4}}
    return {"edits": [{**edit, **more}]}


def test_old_results_are_cleared_and_the_newest_kept() -> None:
    plain = Meter().bill(conversation(6), 0)
    billing = Meter().bill(conversation(6, context_management=clear_tools()), 0)
    saved = 3 * (100 - HOLE)
    assert billing.applied_edits == (
        {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 3, "cleared_input_tokens": saved},
    )
    assert billing.usage.prompt == plain.usage.prompt - saved


def test_nothing_happens_before_the_trigger() -> None:
    assert Meter().bill(conversation(4, context_management=clear_tools()), 0).applied_edits == ()
    by_tokens = {"type": "input_tokens", "value": 1_000}
    assert Meter().bill(conversation(2, context_management=clear_tools(trigger=by_tokens)), 0).applied_edits == ()
    assert Meter().bill(conversation(9, context_management=clear_tools(trigger=by_tokens)), 0).applied_edits
    default = {"edits": [{"type": "clear_tool_uses_20250919"}]}
    assert Meter().bill(conversation(9, 9_000, context_management=default), 0).applied_edits == ()
    assert Meter().bill(conversation(9, 12_000, context_management=default), 0).applied_edits


def test_keep_exclude_and_at_least() -> None:
    def cleared(**more: Any) -> int:
        applied = Meter().bill(conversation(8, context_management=clear_tools(**more)), 0).applied_edits
        return applied[0]["cleared_tool_uses"] if applied else 0

    assert cleared() == 5
    assert cleared(keep={"type": "tool_uses", "value": 1}) == 7
    assert cleared(keep={"type": "tool_uses", "value": 0}) == 8
    assert cleared(exclude_tools=["Read"]) == 0
    assert cleared(exclude_tools=["Bash"]) == 5
    enough = 5 * (100 - HOLE)
    assert cleared(clear_at_least={"type": "input_tokens", "value": enough}) == 5
    assert cleared(clear_at_least={"type": "input_tokens", "value": enough + 1}) == 0


def test_inputs_go_too_if_asked() -> None:
    def saved(wanted: Any) -> int:
        applied = (
            Meter().bill(conversation(8, context_management=clear_tools(clear_tool_inputs=wanted)), 0).applied_edits
        )
        return applied[0]["cleared_input_tokens"]

    assert saved(True) > saved(False)
    assert saved(["Read"]) == saved(True)
    assert saved(["Bash"]) == saved(False)


def test_a_clear_breaks_the_prefix_from_the_first_cleared_result_on_and_is_named_as_the_cause() -> None:
    meter = Meter()
    kept = clear_tools(trigger={"type": "tool_uses", "value": 8})
    before = meter.bill(conversation(8, context_management=kept), 0)
    assert not before.applied_edits
    after = meter.bill(conversation(9, context_management=kept), 1)
    assert after.applied_edits
    assert after.usage.cache_read_input_tokens == 0, "no entry before the first cleared result"
    assert after.miss is not None
    assert (after.miss.cause, after.miss.path) == ("context_management", "messages[2].content[0]")


def test_thinking_is_cleared_by_turns() -> None:
    def applied(keep: Any) -> Any:
        edit = {"type": "clear_thinking_20251015"} | ({} if keep is None else {"keep": keep})
        request = conversation(5, thoughts=True, context_management={"edits": [edit]})
        return Meter().bill(request, 0).applied_edits

    assert applied({"type": "thinking_turns", "value": 2})[0]["cleared_thinking_turns"] == 3
    assert applied(None)[0]["cleared_thinking_turns"] == 4
    assert applied(None)[0]["cleared_input_tokens"] > 0
    assert applied("all") == ()
    assert applied({"type": "all"}) == ()
    assert applied({"type": "thinking_turns", "value": 9}) == ()


def test_thinking_comes_first_among_the_edits() -> None:
    edits = [{"type": "clear_tool_uses_20250919"}, {"type": "clear_thinking_20251015"}]
    with pytest.raises(ApiError, match="must be first in `edits`"):
        Meter().bill(conversation(1, context_management={"edits": edits}), 0)
    Meter().bill(conversation(1, context_management={"edits": edits[::-1]}), 0)


def test_keeping_all_thinking_overrules_what_an_older_model_drops() -> None:
    turns = [*conversation(1, thoughts=True)["messages"], {"role": "user", "content": "more"}]
    request = {"model": "claude-haiku-4-5", "max_tokens": 9, "messages": turns}
    keep = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
    dropped, kept = Meter().bill(request, 0), Meter().bill({**request, "context_management": keep}, 0)
    assert kept.usage.prompt > dropped.usage.prompt


def test_edits_need_their_beta_header_where_there_are_headers() -> None:
    request = conversation(1, context_management=clear_tools())
    with pytest.raises(ApiError, match="context_management: Extra inputs are not permitted"):
        Meter().open(request, 0, Caller(betas=()))
    Meter().open(request, 0, Caller(betas=("context-management-2025-06-27",)))


def test_counting_applies_edits_and_tells_what_it_was_before() -> None:
    simulator = Simulator()
    request = conversation(6)
    del request["max_tokens"]
    plain = simulator.count_tokens(request)
    edited = simulator.count_tokens({**request, "context_management": clear_tools()})
    assert edited == {
        "input_tokens": plain["input_tokens"] - 3 * (100 - HOLE),
        "context_management": {"original_input_tokens": plain["input_tokens"]},
    }
    assert not simulator.ledger.rows, "counting is free"


# ---------------------------------------------------------------- compaction


def compact(**more: Any) -> dict[str, Any]:
    return {"edits": [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000}, **more}]}


def large(**more: Any) -> dict[str, Any]:
    return conversation(6, 10_000, context_management=compact(**more))


def test_compaction_comes_first_in_the_reply_and_is_billed_apart() -> None:
    answer = asyncio.run(Simulator().messages(large()))
    assert [block["type"] for block in answer["content"]] == ["compaction", "text"]
    summary, message = answer["usage"]["iterations"]
    assert (summary["type"], message["type"]) == ("compaction", "message")
    assert summary["cache_creation_input_tokens"] > 60_000
    assert summary["output_tokens"] > 0
    assert message["input_tokens"] == answer["usage"]["input_tokens"] < 100
    assert message["output_tokens"] == answer["usage"]["output_tokens"]


def test_the_ledger_pays_for_the_summary_too() -> None:
    simulator = Simulator()
    asyncio.run(simulator.messages(large()))
    row = simulator.ledger.rows[0]
    assert row.compaction is not None
    assert row.cost > 60_000 * 1.25 * 5 / 1_000_000


def test_below_the_trigger_there_is_one_iteration() -> None:
    answer = asyncio.run(Simulator().messages(conversation(2, context_management=compact())))
    assert [run["type"] for run in answer["usage"]["iterations"]] == ["message"]
    assert [block["type"] for block in answer["content"]] == ["text"]


def test_a_pause_returns_the_summary_alone() -> None:
    answer = asyncio.run(Simulator().messages(large(pause_after_compaction=True)))
    assert [block["type"] for block in answer["content"]] == ["compaction"]
    assert answer["stop_reason"] == "compaction"
    assert answer["usage"]["input_tokens"] == answer["usage"]["output_tokens"] == 0
    assert [run["type"] for run in answer["usage"]["iterations"]] == ["compaction"]


def test_everything_before_the_last_compaction_block_is_ignored_later() -> None:
    simulator = Simulator()
    request = large()
    answer = asyncio.run(simulator.messages(request))
    turns = [
        *request["messages"],
        {"role": "assistant", "content": answer["content"]},
        {"role": "user", "content": "go on"},
    ]
    later = simulator.count_tokens({**request, "messages": turns})
    assert later["input_tokens"] < 100
    failed = [{**answer["content"][0], "content": None}, answer["content"][1]]
    turns[-2] = {"role": "assistant", "content": failed}
    assert simulator.count_tokens({**request, "messages": turns})["input_tokens"] > 60_000, "null content: no-op"


def test_a_trigger_that_is_too_low() -> None:
    with pytest.raises(ApiError, match="greater than or equal to 50000"):
        Meter().bill(conversation(1, context_management=compact(trigger={"type": "input_tokens", "value": 49_999})), 0)


# ---------------------------------------------------------------- our cache edits


def delete(*references: str) -> dict[str, Any]:
    return {"edits": [{"type": "delete", "cache_reference": name} for name in references]}


def test_a_deleted_result_stops_counting_without_breaking_the_prefix() -> None:
    meter = Meter()
    before = meter.bill(conversation(8), 0)
    after = meter.bill(conversation(9, cache_edits=delete("toolu_1", "toolu_2")), 1)
    assert after.usage.cache_read_input_tokens == before.usage.prompt - 200
    assert after.miss is None


def test_a_deletion_has_to_be_sent_again_in_the_same_place() -> None:
    meter = Meter()
    meter.bill(conversation(8), 0)
    first = meter.bill(conversation(9, cache_edits=delete("toolu_2", "toolu_1")), 1)
    same = meter.bill(conversation(10, cache_edits=delete("toolu_2", "toolu_1")), 2)
    assert same.usage.cache_read_input_tokens == first.usage.prompt
    more = meter.bill(conversation(11, cache_edits=delete("toolu_2", "toolu_1", "toolu_5")), 3)
    assert more.usage.cache_read_input_tokens == same.usage.prompt - 100

    for other in (delete("toolu_1", "toolu_2", "toolu_5"), delete("toolu_2"), None):
        lost = meter.bill(conversation(12, cache_edits=other), 4)
        assert lost.usage.cache_read_input_tokens == 0, other
        assert lost.miss is not None
        assert lost.miss.cause == "cache_edits"


def test_the_answer_says_what_was_deleted() -> None:
    answer = asyncio.run(Simulator().messages(conversation(3, cache_edits=delete("toolu_1"))))
    assert answer["cache_edits"] == {"deleted_tool_results": 1, "deleted_input_tokens": 100}


def test_a_marker_on_a_part_of_a_result_counts_for_the_result() -> None:
    call, result = exchange(1)
    result["content"][0]["content"] = [marked(text(100, "inner"))]
    request = body(text(600, "a")) | {"messages": [{"role": "user", "content": [text(600, "a")]}, call, result]}
    assert Meter().bill(request, 0).written == ("messages[2].content[0]",)
