"""Conversations that the server keeps, system messages for one turn, and summaries on demand."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reverie.models.script import Script
from reverie.simulator import ApiError, Meter, ScriptResponder, Simulator
from tests.simulator.bodies import MODEL, exchange, marked, text, tool
from tests.simulator.test_http import claude, served

anthropic: Any

THREADS = "message-threads-2026-08-12"
CLEAR_AT = "mid-conversation-system-clear-at-2026-08-21"
COMPACT = "compact-2026-09-04"
QUESTION = {"role": "user", "content": [text(700, "question")]}
ANSWER = {"role": "assistant", "content": "fine"}
TOOL_SCRIPT = 'say Let me look.\ncall look {"at": "a"}\n---\ncall look {"at": "b"}\n---\nsay It says {result}.'


@pytest.fixture(autouse=True, scope="module")
def _sdk() -> None:
    """Imported only where these tests run."""
    global anthropic
    anthropic = pytest.importorskip("anthropic")


def code_of(error: Any) -> str | None:
    return ((error.body or {}).get("error", {}).get("details") or {}).get("error_code")


@pytest.mark.parametrize("threads", [False, True])
def test_the_vendors_runner_works_with_threads_and_falls_back_without(threads: bool) -> None:
    long = "a sign that says 8080, " * 900

    @anthropic.beta_tool
    def look(at: str) -> str:
        """Looks."""
        return f"{at}: {long}"

    with served(TOOL_SCRIPT, threads=threads) as (simulator, url):
        runner = claude(url).beta.messages.tool_runner(
            model=MODEL, max_tokens=20_000, tools=[look], cache_control={"type": "ephemeral"}, messages=[QUESTION]
        )
        last = runner.until_done()
        assert last.stop_reason == "end_turn" and "8080" in last.content[0].text
        rows = simulator.ledger.rows
        errors = [row.error for row in rows if row.error]
        assert len(errors) == (0 if threads else 1), "one refusal, and the client does without"
        billed = [row.usage for row in rows if row.error is None]
        assert [usage.cache_read_input_tokens for usage in billed] == [0, billed[0].prompt, billed[1].prompt]
        assert simulator.ledger.totals()["misses"] == 0


def test_a_thread_is_refused_in_a_way_that_clients_understand() -> None:
    with served(None) as (_, url):
        with pytest.raises(anthropic.BadRequestError) as caught:
            claude(url).beta.messages.create(
                model=MODEL, max_tokens=9, messages=[QUESTION], thread={"type": "create"}, betas=[THREADS]
            )
        assert code_of(caught.value) == "thread_unsupported_request"


def test_a_kept_thread_is_billed_like_the_whole_conversation() -> None:
    tools, system = [tool("Read", "reads " * 100)], [text(500, "Be kind.")]
    everywhere = {"cache_control": {"type": "ephemeral"}}
    with served(None, threads=True) as (simulator, url):
        client = claude(url).beta.messages

        def ask(messages: Any, **more: Any) -> Any:
            return client.create(model=MODEL, max_tokens=50, messages=messages, betas=[THREADS], **everywhere, **more)

        first = ask([QUESTION], tools=tools, system=system, thread={"type": "create"})
        onward = {"type": "continue", "previous_message_id": first.id}
        second = ask([{"role": "user", "content": "and then?"}], thread=onward)
        assert second.usage.cache_read_input_tokens == first.usage.cache_creation_input_tokens
        whole = [QUESTION, {"role": "assistant", "content": first.content}, {"role": "user", "content": "and then?"}]
        again = ask(whole, tools=tools, system=system)
        assert again.usage.cache_read_input_tokens == second.usage.cache_read_input_tokens + (
            second.usage.cache_creation_input_tokens
        )
        assert (
            client.count_tokens(
                model=MODEL,
                messages=[{"role": "user", "content": "x" * 40}],
                betas=[THREADS],
                extra_body={"thread": onward},
            ).input_tokens
            > 1_200
        )
        for thread, more, status, code in (
            (onward, {}, 400, "thread_already_continued"),
            ({"type": "continue", "previous_message_id": "msg_no"}, {}, 404, "thread_not_found"),
            (
                {"type": "continue", "previous_message_id": second.id},
                {"system": "x"},
                400,
                "thread_fingerprint_mismatch",
            ),
        ):
            with pytest.raises(anthropic.APIStatusError) as caught:
                ask([{"role": "user", "content": "x"}], thread=thread, **more)
            assert (caught.value.status_code, code_of(caught.value)) == (status, code)
        simulator.clock.advance(301)
        with pytest.raises(anthropic.NotFoundError) as caught:
            ask([{"role": "user", "content": "x"}], thread={"type": "continue", "previous_message_id": second.id})
        assert code_of(caught.value) == "thread_not_found", "a thread lives for five minutes"


# ---------------------------------------------------------------- system messages inside the conversation


def reminder(words: str = "Be short.", **more: Any) -> dict[str, Any]:
    return {"role": "system", "content": text(60, words)["text"], "clear_at": "next_user_message", **more}


def bill(meter: Meter, *messages: dict[str, Any], **more: Any) -> Any:
    request = {"model": MODEL, "max_tokens": 50, "messages": list(messages), **more}
    return meter.bill(request, 0).usage


def test_a_reminder_is_paid_for_one_turn_and_leaves_the_cache_alone() -> None:
    meter, everywhere = Meter(), {"cache_control": {"type": "ephemeral"}}
    first = bill(meter, QUESTION, reminder(), **everywhere)
    assert (first.cache_creation_input_tokens, first.input_tokens) == (700, 60), "it is behind the marker"
    follow_up = {"role": "user", "content": [text(100, "more")]}
    second = bill(meter, QUESTION, reminder(), ANSWER, follow_up, reminder("And kind."), **everywhere)
    assert (second.cache_read_input_tokens, second.cache_creation_input_tokens, second.input_tokens) == (700, 101, 60)
    assert meter.ledger.totals()["misses"] == 0
    kept = bill(Meter(), QUESTION, {**reminder(), "clear_at": "never"}, ANSWER, follow_up)
    assert kept.prompt == 700 + 60 + 1 + 100
    call, result = exchange(1)
    during = bill(Meter(), QUESTION, reminder(), call, result)
    assert during.prompt == 700 + bill(Meter(), QUESTION, call, result).prompt - 700, "a result ends the turn as well"


def test_a_system_message_that_stays_is_read_like_any_other() -> None:
    meter = Meter()
    note = {"role": "system", "content": [marked(text(60, "From now on in Dutch."))]}
    bill(meter, QUESTION, note)
    plain = {"role": "system", "content": note["content"][0]["text"]}
    more = {"role": "user", "content": [marked(text(10, "and?"))]}
    assert bill(meter, QUESTION, plain, ANSWER, more).cache_read_input_tokens == 760


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([{"role": "system", "content": "x"}, QUESTION], "messages.0: a `system` message must immediately follow"),
        ([QUESTION, ANSWER, {"role": "system", "content": "x"}], "messages.2: a `system` message"),
        ([QUESTION, reminder(), {"role": "user", "content": "x"}], "messages.1: a `system` message"),
        ([QUESTION, exchange(1)[0], reminder(), exchange(1)[1]], "messages.2: a `system` message"),
        ([{**QUESTION, "clear_at": "never"}], "messages.0.clear_at: clear_at is only permitted on role 'system'"),
        ([QUESTION, reminder(clear_at="soon")], "messages.1.clear_at: Input should be 'next_user_message' or 'never'"),
        ([QUESTION, reminder(output_config={"effort": "low"})], "messages.1: output_config is not permitted on"),
        ([QUESTION, reminder(content=[{"type": "tool_removal", "tool": {}}])], "supports text blocks only"),
        ([QUESTION, reminder(content=[text(1, "x", "5m")])], "messages.1.content.0: cache_control is not permitted"),
        ([QUESTION, {"role": "system", "content": []}], "messages.1: all messages must have non-empty content"),
    ],
)
def test_where_a_system_message_may_be(messages: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(ApiError) as caught:
        bill(Meter(), *messages)
    assert said in str(caught.value)


def test_an_effort_alone_can_be_anywhere_and_the_beta_is_asked_for() -> None:
    effort = {"role": "system", "output_config": {"effort": "low"}}
    assert bill(Meter(), {**effort, "content": []}, QUESTION, ANSWER, effort, {"role": "user", "content": "x"}).prompt
    with served(None) as (_, url):
        client = claude(url).beta.messages
        with pytest.raises(anthropic.BadRequestError, match=r"messages.1.clear_at: Extra inputs are not permitted"):
            client.create(model=MODEL, max_tokens=9, messages=[QUESTION, reminder()])
        client.create(model=MODEL, max_tokens=9, messages=[QUESTION, reminder()], betas=[CLEAR_AT])


# ---------------------------------------------------------------- summaries on demand


def test_a_summary_on_demand_takes_the_place_of_the_conversation() -> None:
    history = [QUESTION, ANSWER, {"role": "user", "content": [text(300, "more", "5m")]}]
    with served(None) as (simulator, url):
        client = claude(url).beta.messages
        common: dict[str, Any] = {"model": MODEL, "max_tokens": 200, "betas": [COMPACT]}
        client.create(messages=history, **common)
        asked: dict[str, Any] = {"compaction": {"type": "summarize"}, "messages": history, **common}
        summary = client.create(**asked)
        (block,) = summary.content
        assert (summary.stop_reason, block.type) == ("compaction", "compaction") and block.signature
        assert (summary.usage.input_tokens, summary.usage.output_tokens) == (0, 0)
        (run,) = summary.usage.iterations
        assert (run.type, run.cache_read_input_tokens, run.output_tokens) == (
            "compaction",
            1_001,
            len(block.content) // 4 + 1,
        )
        with client.stream(**asked) as stream:
            kinds = [event.type for event in stream]
            assert stream.get_final_message().content == summary.content
        assert "content_block_delta" not in kinds, "a signed block comes whole"
        told = {"role": "assistant", "content": summary.content}
        after = client.create(messages=[told, {"role": "user", "content": "x" * 40}], **common)
        assert after.usage.input_tokens == run.output_tokens + 10
        assert simulator.ledger.totals()["misses"] == 0

        def changed(**fields: str) -> dict[str, Any]:
            return {"role": "assistant", "content": [{**block.model_dump(exclude_none=True), **fields}]}

        for messages, code in (
            ([*history, told, {"role": "user", "content": "x"}], "compaction_block_misplaced"),
            ([changed(content="I made this up"), QUESTION], "compaction_content_mismatch"),
            ([changed(signature="mine"), QUESTION], "compaction_signature_invalid"),
        ):
            with pytest.raises(anthropic.BadRequestError) as caught:
                client.create(messages=messages, **common)
            assert code_of(caught.value) == code
        with pytest.raises(anthropic.BadRequestError, match=r"requires anthropic-beta: compact-2026-09-04"):
            client.create(**{**asked, "betas": []})
        assert client.create(**{**asked, "max_tokens": 3}).content == []
        assert client.count_tokens(model=MODEL, messages=history, betas=[COMPACT]).input_tokens == 1_001


@pytest.mark.parametrize(
    "more",
    [
        {"stop_sequences": ["x"]},
        {"context_management": {"edits": []}},
        {"output_config": {"format": {"type": "json_schema", "schema": {}}}},
        {"tools": [tool("Read")], "tool_choice": {"type": "any"}},
        {"compaction": {"type": "shorten"}},
        {"compaction": {"type": "summarize", "instructions": "x" * 16_385}},
    ],
)
def test_what_a_summary_cannot_be_combined_with(more: dict[str, Any]) -> None:
    if "context_management" in more:
        more = {"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}}
    with pytest.raises(ApiError, match="compaction"):
        bill(Meter(), QUESTION, **{"compaction": {"type": "summarize"}, **more})


def test_two_requests_cannot_continue_one_answer_at_the_same_time() -> None:
    simulator = Simulator(ScriptResponder(Script.parse("say one\n---\nwait 0.2\nsay two")), threads=True)

    async def scenario() -> list[Any]:
        common = {"model": MODEL, "max_tokens": 9}
        first = await simulator.messages({**common, "messages": [QUESTION], "thread": {"type": "create"}})
        onward = {"type": "continue", "previous_message_id": first["id"]}
        body = {**common, "messages": [{"role": "user", "content": "go on"}], "thread": onward}
        return await asyncio.gather(simulator.messages(body), simulator.messages(body), return_exceptions=True)

    first, second = asyncio.run(scenario())
    assert first["content"][0]["text"] == "two"
    assert isinstance(second, ApiError) and second.error_code == "thread_continue_in_flight"
