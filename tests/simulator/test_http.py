"""The simulator behind the vendors' own SDKs, over real HTTP on loopback."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from reverie.models.script import Script
from reverie.simulator import Clock, ScriptResponder, Simulator
from reverie.simulator.http import running
from tests.simulator.bodies import conversation, text, tool
from tests.waiting import LIMIT_S

anthropic: Any
openai: Any

MODEL = "claude-opus-5"
SCRIPT = """
think I should look at both files.
say Let me look.
call Read {"path": "{i}.txt", "note": "a long one so that it travels in more than one piece of JSON"} x30
---
say I read: {result}
---
fail overloaded
fail rate-limited retry-after 2
say Fine now.
---
fail cut 12
say This sentence is cut in the middle.
---
fail unreachable
say There again.
"""


@pytest.fixture(autouse=True, scope="module")
def _sdks() -> None:
    """Imported only where these tests run: it takes half as long as collecting all tests."""
    global anthropic, openai
    anthropic = pytest.importorskip("anthropic")
    openai = pytest.importorskip("openai")


@contextmanager
def served(script: str | None = SCRIPT, **more: Any) -> Iterator[tuple[Simulator, str]]:
    simulator = Simulator(None if script is None else ScriptResponder(Script.parse(script)), **more)
    with running(simulator) as url:
        yield simulator, url


def claude(url: str, **more: Any) -> Any:
    """A client of the vendor's SDK, for other modules too."""
    from anthropic import Anthropic

    return Anthropic(base_url=url, api_key="simulated", max_retries=0, **more)


def get(url: str, path: str, payload: Any = None, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=LIMIT_S)
    try:
        method = "GET" if payload is None else "POST"
        raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode() if payload is not None else None
        connection.request(method, path, raw, headers or {})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def answered(messages: list[Any], reply: Any) -> list[Any]:
    """The conversation with a reply and the results of its calls."""
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": f"content of {block.input['path']}"}
        for block in reply.content
        if block.type == "tool_use"
    ]
    return [*messages, {"role": "assistant", "content": reply.content}, {"role": "user", "content": results or "go on"}]


def test_a_conversation_with_tools_streamed_and_plain_reads_its_predecessor_each_time() -> None:
    with served() as (_, url):
        client = claude(url)
        common = {"model": MODEL, "max_tokens": 2_000, "cache_control": {"type": "ephemeral"}}
        messages: list[Any] = [{"role": "user", "content": text(700, "question")["text"]}]
        with client.messages.stream(messages=messages, **common) as stream:
            kinds = [event.type for event in stream]
            first = stream.get_final_message()
        assert kinds[0] == "message_start"
        assert kinds[-1] == "message_stop"
        assert [block.type for block in first.content] == ["thinking", "text"] + ["tool_use"] * 30
        assert first.content[0].signature
        assert first.content[31].input["path"] == "30.txt"
        assert first.stop_reason == "tool_use"
        assert first.usage.cache_creation_input_tokens == 700
        assert first.usage.cache_creation.ephemeral_5m_input_tokens == 700
        assert first.usage.output_tokens > 30

        messages = answered(messages, first)
        # 62 blocks came at once, so the last entry is out of reach of the last marker: one more at the old place.
        messages[0] = {"role": "user", "content": [text(700, "question", "5m")]}
        second = client.messages.create(messages=messages, **common)
        assert second.content[0].text.startswith("I read: content of 1.txt")
        assert second.usage.cache_read_input_tokens == 700
        whole = second.usage.cache_read_input_tokens + second.usage.cache_creation_input_tokens

        messages = answered(messages, second)
        with pytest.raises(anthropic.InternalServerError) as overloaded:
            client.messages.create(messages=messages, **common)
        assert overloaded.value.status_code == 529
        assert overloaded.value.body["error"]["type"] == "overloaded_error"
        assert overloaded.value.request_id.startswith("req_")
        with pytest.raises(anthropic.RateLimitError) as limited:
            client.messages.create(messages=messages, **common)
        assert limited.value.response.headers["retry-after"] == "2"
        third = client.messages.create(messages=messages, **common)
        assert third.usage.cache_read_input_tokens == whole

        messages = answered(messages, third)
        said = ""
        with pytest.raises(Exception, match=r"(?i)connection|peer closed"):  # noqa: SIM117
            with client.messages.stream(messages=messages, **common) as stream:
                for piece in stream.text_stream:
                    said += piece
        assert said == "This sentenc"
        fourth = client.messages.create(messages=messages, **common)
        assert fourth.content[0].text == "This sentence is cut in the middle."

        messages = answered(messages, fourth)
        with pytest.raises(anthropic.APIConnectionError):
            client.messages.create(messages=messages, **common)
        assert client.messages.create(messages=messages, **common).content[0].text == "There again."


def test_context_edits_through_the_beta_client_streamed_and_plain() -> None:
    with served(None) as (_, url):
        client = claude(url)
        request = conversation(6)
        edits = {"edits": [{"type": "clear_tool_uses_20250919", "trigger": {"type": "tool_uses", "value": 4}}]}
        betas = ["context-management-2025-06-27"]
        plain = client.beta.messages.create(**request, context_management=edits, betas=betas)
        assert plain.context_management.applied_edits[0].cleared_tool_uses == 3
        with client.beta.messages.stream(**request, context_management=edits, betas=betas) as stream:
            for event in stream:
                if event.type == "message_delta":
                    assert event.context_management.applied_edits[0].cleared_tool_uses == 3
            streamed = stream.get_final_message()
        assert streamed.context_management.applied_edits[0].cleared_input_tokens > 0
        assert streamed.usage.cache_read_input_tokens == plain.usage.cache_creation_input_tokens
        with pytest.raises(anthropic.BadRequestError, match="Extra inputs are not permitted"):
            client.beta.messages.create(**request, context_management=edits)
        counted = client.beta.messages.count_tokens(
            model=MODEL, messages=request["messages"], context_management=edits, betas=betas
        )
        assert counted.input_tokens < counted.context_management.original_input_tokens


def test_compaction_through_the_beta_client() -> None:
    edits = {"edits": [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000}}]}
    with served(None) as (_, url):
        client = claude(url)
        request = conversation(6, 10_000)
        with client.beta.messages.stream(**request, context_management=edits, betas=["compact-2026-01-12"]) as stream:
            answer = stream.get_final_message()
        assert [block.type for block in answer.content] == ["compaction", "text"]
        assert answer.content[0].content.startswith("Summary of 13 messages")
        assert [run.type for run in answer.usage.iterations] == ["compaction", "message"]


def test_errors_have_the_apis_shape() -> None:
    with served(None, window=1_000) as (_, url):
        client = claude(url)
        with pytest.raises(anthropic.BadRequestError) as long:
            client.messages.create(model=MODEL, max_tokens=9, messages=[{"role": "user", "content": "x" * 8_000}])
        assert long.value.body["error"]["message"] == "prompt is too long: 2000 tokens > 1000 maximum"
        assert long.value.body["request_id"] == long.value.request_id
        status, answer = get(url, "/v1/messages", {"model": MODEL})
        assert (status, answer["error"]["type"]) == (401, "authentication_error")
        status, answer = get(url, "/v1/messages", b"{", {"x-api-key": "k"})
        assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
        status, answer = get(url, "/v1/messages", b"[1]", {"x-api-key": "k"})
        assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
        status, answer = get(url, "/v1/nothing")
        assert (status, answer["error"]["type"]) == (404, "not_found_error")


def test_a_body_over_32_megabytes() -> None:
    with served(None) as (_, url):
        status, answer = get(url, "/v1/messages", b" " * (32 * 1024 * 1024 + 1), {"x-api-key": "k"})
        assert (status, answer["error"]["type"]) == (413, "request_too_large")


def test_the_clock_faults_and_the_ledger_from_outside() -> None:
    with served(None, clock=Clock.running()) as (simulator, url):
        client, key = claude(url), {"x-sim-key": simulator.control_key}
        request = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": [text(700, "a", "5m")]}]}
        client.messages.create(**request)
        assert client.messages.create(**request).usage.cache_read_input_tokens == 700
        before = get(url, "/_sim/clock", headers=key)[1]["now"]
        status, moved = get(url, "/_sim/clock", {"advance_s": 301}, key)
        assert status == 200
        assert moved["now"] >= before + 301
        assert client.messages.create(**request).usage.cache_read_input_tokens == 0
        assert get(url, "/_sim/clock", {"advance_s": -1}, key)[0] == 400
        assert get(url, "/_sim/clock", {"advance_s": "soon"}, key)[0] == 400

        assert get(url, "/_sim/faults", {"status": 429, "retry_after": 7}, key) == (200, {"queued": 1})
        with pytest.raises(anthropic.RateLimitError) as limited:
            client.messages.create(**request)
        assert limited.value.response.headers["retry-after"] == "7"
        assert get(url, "/_sim/faults", {}, key)[0] == 400

        ledger = get(url, f"/_sim/ledger?key={simulator.control_key}")[1]
        assert [row["error"] is None for row in ledger["requests"]] == [True, True, True, False]
        assert ledger["requests"][2]["miss"]["cause"] == "expired"
        assert ledger["totals"] == simulator.ledger.totals()


def test_answers_end_where_the_request_says() -> None:
    with served("fill 4000\nstop end_turn", window=2_000) as (_, url):
        client = claude(url)

        def ask(**more: Any) -> Any:
            return client.messages.create(model=MODEL, messages=[{"role": "user", "content": "x" * 4_400}], **more)

        assert (ask(max_tokens=10).stop_reason, ask(max_tokens=10).usage.output_tokens) == ("max_tokens", 10)
        assert ask(max_tokens=2_000).stop_reason == "model_context_window_exceeded"
        stopped = ask(max_tokens=900, stop_sequences=["lazy", "fox"])
        assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", "fox")
        assert stopped.content[0].text.endswith("brown ")


def test_a_malformed_tool_input_travels_as_the_model_wrote_it() -> None:
    with served('malformed Read {"path": ') as (_, url):
        pieces = ""
        for event in claude(url).messages.create(
            model=MODEL, max_tokens=99, messages=[{"role": "user", "content": "x"}], stream=True
        ):
            if event.type == "content_block_delta":
                pieces += event.delta.partial_json
        assert pieces == '{"path":'


def test_the_models_are_listed() -> None:
    with served(None) as (_, url):
        assert MODEL in {model.id for model in claude(url).models.list()}


# ---------------------------------------------------------------- chat completions


def chat(url: str) -> Any:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="simulated", max_retries=0)


TOOLS = [{"type": "function", "function": {"name": "Read", "parameters": tool("Read")["input_schema"]}}]


def test_chat_completions_with_parallel_calls_read_their_predecessor() -> None:
    with served() as (_, url):
        client = chat(url)
        messages: list[Any] = [
            {"role": "system", "content": "s" * 5_200},
            {"role": "user", "content": "look"},
        ]
        common: dict[str, Any] = {"model": "gpt-4o", "tools": TOOLS}
        first = client.chat.completions.create(messages=messages, **common)
        choice = first.choices[0]
        assert choice.finish_reason == "tool_calls"
        assert choice.message.content == "Let me look."
        assert json.loads(choice.message.tool_calls[29].function.arguments)["path"] == "30.txt"
        assert first.usage.prompt_tokens_details.cached_tokens == 0

        messages += [
            choice.message,
            *({"role": "tool", "tool_call_id": c.id, "content": "ok"} for c in choice.message.tool_calls),
        ]
        said, usage, reason = "", None, None
        for chunk in client.chat.completions.create(
            messages=messages, stream=True, stream_options={"include_usage": True}, **common
        ):
            usage = chunk.usage or usage
            for each in chunk.choices:
                said += each.delta.content or ""
                reason = each.finish_reason or reason
        assert said.startswith("I read: ok")
        assert reason == "stop"
        assert usage is not None
        cached = usage.prompt_tokens_details.cached_tokens
        assert cached == first.usage.prompt_tokens // 128 * 128 > 1_024
        assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def test_streamed_tool_calls_are_put_together_by_the_sdk() -> None:
    with served() as (_, url):
        with chat(url).chat.completions.stream(
            model="gpt-4o", messages=[{"role": "user", "content": "look"}], tools=TOOLS
        ) as stream:
            final = stream.get_final_completion()
        calls = final.choices[0].message.tool_calls
        assert [json.loads(call.function.arguments)["path"] for call in calls] == [f"{i}.txt" for i in range(1, 31)]


def test_the_automatic_cache_has_a_minimum_and_a_lifetime() -> None:
    with served(None) as (simulator, url):
        client = chat(url)

        def cached(length: int) -> int:
            answer = client.chat.completions.create(
                model="gpt-4o", messages=[{"role": "user", "content": "x" * length}], max_tokens=5
            )
            return answer.usage.prompt_tokens_details.cached_tokens

        assert [cached(4 * 1_023), cached(4 * 1_023)] == [0, 0]
        assert [cached(4 * 1_160), cached(4 * 1_160)] == [0, 1_152]
        simulator.clock.advance(600)
        assert cached(4 * 1_160) == 1_152
        simulator.clock.advance(601)
        assert cached(4 * 1_160) == 0
        assert simulator.ledger.rows[-1].miss is not None
        assert simulator.ledger.rows[-1].miss.cause == "expired"


def test_chat_errors_have_that_apis_shape() -> None:
    with served(None, window=100) as (simulator, url):
        client = chat(url)
        with pytest.raises(openai.BadRequestError) as long:
            client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "x" * 800}])
        assert long.value.code == "context_length_exceeded"
        call = {"id": "c1", "type": "function", "function": {"name": "Read", "arguments": "{}"}}
        orphan = [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [call]}]
        with pytest.raises(openai.BadRequestError, match="did not have response messages: c1"):
            client.chat.completions.create(model="gpt-4o", messages=orphan)
        with pytest.raises(openai.BadRequestError, match="must be a response to a preceeding message"):
            client.chat.completions.create(
                model="gpt-4o", messages=[{"role": "tool", "tool_call_id": "c1", "content": "x"}]
            )
        simulator.fail_next(429)
        with pytest.raises(openai.RateLimitError):
            client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "x"}])
