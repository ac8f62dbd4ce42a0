"""The OpenAI adapter over real HTTP: what it sends, what it makes of the answers of many kinds of servers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from reverie import errors
from reverie.models import openai_wire
from reverie.models.base import TextDelta, ThinkingDelta, ToolCallStarted
from reverie.models.openai import OpenAIModel
from reverie.types import (
    DocumentBlock,
    ImageBlock,
    Message,
    Origin,
    OtherBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)
from tests.models.canned import Canned, Server, chunks, serve
from tests.models.requests import READ_TOOL, ask, person, request
from tests.waiting import LIMIT_S, until


def model(server: Server, key: str | None = None) -> OpenAIModel:
    return OpenAIModel("local", key=key, base_url=f"{server.url}/v1", timeout_s=LIMIT_S)


def calls(*given: dict[str, Any]) -> dict[str, Any]:
    return {"tool_calls": list(given)}


def part(index: int | None, arguments: str | None, id: str | None = None, name: str | None = None) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    made: dict[str, Any] = {"function": function, "type": "function"}
    return made | ({} if index is None else {"index": index}) | ({"id": id} if id else {})


def test_streams_text_and_counts_cached_tokens_apart() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 64}}
    answer = Canned(chunks({"role": "assistant", "content": ""}, {"content": "Hel"}, {"content": "lo."}, usage=usage))
    with serve(answer) as server:
        got, response = ask(model(server, "sk-test"), request(model="openai:llama3:8b"))
    assert [event.text for event in got if isinstance(event, TextDelta)] == ["Hel", "lo."]
    assert response.content == (TextBlock("Hello.", Origin.MODEL),)
    assert response.usage == Usage(36, 7, 64) and response.raw_usage["prompt_tokens"] == 100
    assert (response.id, response.model, response.stop_reason) == ("chatcmpl-1", "local", "end_turn")
    assert server.paths == ["/v1/chat/completions"]
    assert server.headers[0]["authorization"] == "Bearer sk-test"
    assert server.bodies[0] == {
        "model": "llama3:8b",
        "messages": [{"role": "system", "content": "You are terse."}, {"role": "user", "content": "hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 1000,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "Read",
                    "description": "Reads a file.",
                    "parameters": READ_TOOL["input_schema"],
                },
            }
        ],
    }


def test_parallel_tool_calls_arrive_in_pieces_and_may_be_malformed() -> None:
    answer = chunks(
        calls(part(0, "", "call_a", "Read")),
        calls(part(0, '{"file_'), part(1, "", "call_b", "Glob")),
        calls(part(0, 'path": "a"}')),
        calls(part(2, '{"file_path": ', "call_c", "Read")),
        stop="tool_calls",
    )
    with serve(Canned(answer)) as server:
        got, response = ask(model(server), request())
    assert [event.id for event in got if isinstance(event, ToolCallStarted)] == ["call_a", "call_b", "call_c"]
    assert response.content == (
        ToolUseBlock("call_a", "Read", {"file_path": "a"}),
        ToolUseBlock("call_b", "Glob", {}),
        ToolUseBlock("call_c", "Read", {"_unparsed": '{"file_path": '}),
    )
    assert response.stop_reason == "tool_use"


def test_servers_that_give_every_call_the_same_index_or_no_index() -> None:
    for index in (0, None):
        answer = chunks(
            calls(part(index, '{"file_path": "a"}', "c1", "Read")), calls(part(index, "{}", "c2", "Glob")), stop="stop"
        )
        with serve(Canned(answer)) as server:
            response = ask(model(server), request())[1]
        assert [block.wire()["id"] for block in response.content] == ["c1", "c2"]
        assert response.stop_reason == "tool_use", "stop with calls means that the calls are to be made"


def test_servers_without_ids_or_usage() -> None:
    answer = Canned(chunks(calls(part(0, "{}", name="Glob"), part(1, "{}", name="Read")), id=""))
    with serve(answer) as server:
        first = ask(model(server), request(person("x" * 4000)))[1]
        again = ask(model(server), request(person("x" * 4000)))[1]
        other = ask(model(server), request(person("y" * 4000)))[1]
    ids = [block.id for block in first.content if isinstance(block, ToolUseBlock)]
    assert len(set(ids)) == 2 and first == again
    assert not {block.id for block in other.content if isinstance(block, ToolUseBlock)} & set(ids)
    assert first.id and first.usage.input_tokens >= 1000 and first.usage.output_tokens > 0
    assert first.raw_usage == {}


def test_thinking_is_shown_and_not_sent_back() -> None:
    for key in ("reasoning_content", "reasoning"):
        with serve(Canned(chunks({key: "hm"}, {"content": "ok"}))) as server:
            got, response = ask(model(server), request())
        assert ThinkingDelta("hm") in got
        assert response.content == (ThinkingBlock("hm"), TextBlock("ok", Origin.MODEL))
    sent = openai_wire.body(request(person("a"), Message("assistant", response.content)), vendor=False)
    assert sent["messages"][-1] == {"role": "assistant", "content": "ok"}


def test_messages_of_every_kind_are_converted() -> None:
    image = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    sent = openai_wire.body(
        request(
            person("look"),
            Message("assistant", (ToolUseBlock("t1", "Read", {"file_path": "é"}), ToolUseBlock("t2", "Read", {}))),
            Message(
                "user",
                (
                    TextBlock("a reminder"),
                    ToolResultBlock("t1", (TextBlock("text"), ImageBlock(image))),
                    ToolResultBlock("t2", "no such file", is_error=True),
                    ImageBlock({"type": "url", "url": "http://x/y.png"}),
                    DocumentBlock({"type": "text", "data": "a page"}),
                    DocumentBlock({"type": "base64", "data": "AAAA"}),
                    OtherBlock({"type": "novelty"}),
                ),
            ),
        ),
        vendor=False,
    )["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "tool", "user"]
    assert sent[2]["content"] is None
    assert json.loads(sent[2]["tool_calls"][0]["function"]["arguments"]) == {"file_path": "é"}
    assert sent[3] == {"role": "tool", "tool_call_id": "t1", "content": "text\n(The image follows.)"}
    assert sent[4]["content"] == "Error: no such file"
    kinds = [(piece["type"], piece.get("text") or piece["image_url"]["url"]) for piece in sent[5]["content"]]
    assert kinds == [
        ("image_url", "data:image/png;base64,AAAA"),
        ("text", "a reminder"),
        ("image_url", "http://x/y.png"),
        ("text", "a page"),
        ("text", "(A document that this model cannot read was left out.)"),
    ]


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ({"type": "auto"}, {"tool_choice": "auto"}),
        ({"type": "any", "disable_parallel_tool_use": True}, {"tool_choice": "required", "parallel_tool_calls": False}),
        ({"type": "none"}, {"tool_choice": "none"}),
        ({"type": "tool", "name": "Read"}, {"tool_choice": {"type": "function", "function": {"name": "Read"}}}),
    ],
)
def test_tool_choices_are_translated(choice: dict[str, Any], sent: dict[str, Any]) -> None:
    made = openai_wire.body(request(tool_choice=choice), vendor=True)
    assert {key: made[key] for key in sent} == sent
    assert "max_completion_tokens" in made and "max_tokens" not in made


def test_an_output_schema_is_strict_where_it_can_be() -> None:
    loose = {"type": "object", "properties": {"a": {"type": "string"}}}
    strict = {**loose, "required": ["a"], "additionalProperties": False}
    nested = {**strict, "properties": {"a": {"type": "array", "items": loose}}}
    for schema, is_strict in ((loose, False), (strict, True), (nested, False)):
        made = openai_wire.body(request(output_schema=schema, effort="max"), vendor=True)
        assert made["response_format"]["json_schema"] == {"name": "answer", "schema": schema, "strict": is_strict}
        assert made["reasoning_effort"] == "xhigh"


@pytest.mark.parametrize(
    ("reason", "stop"), [("length", "max_tokens"), ("content_filter", "refusal"), ("odd", "odd"), ("stop", "end_turn")]
)
def test_stop_reasons_are_translated(reason: str, stop: str) -> None:
    with serve(Canned(chunks({"content": "a"}, stop=reason))) as server:
        assert ask(model(server), request())[1].stop_reason == stop


def refused(said: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": said, **more}}


@pytest.mark.parametrize(
    ("answer", "error", "status"),
    [
        (Canned.error(401, refused("Incorrect API key", code="invalid_api_key")), errors.AuthenticationFailed, 401),
        (Canned.error(404, refused("model 'x' not found")), errors.BadRequest, 404),
        (Canned.error(400, refused("bad schema", type="invalid_request_error")), errors.BadRequest, 400),
        (Canned.error(429, refused("slow down"), retry_after_ms="1500"), errors.Overloaded, 429),
        (Canned.error(429, refused("pay", code="insufficient_quota")), errors.BadRequest, 429),
        (Canned.error(503, "Loading model"), errors.Overloaded, 503),
    ],
)
def test_refusals_are_mapped(answer: Canned, error: type[errors.ModelError], status: int) -> None:
    with serve(answer) as server, pytest.raises(error) as caught:
        ask(model(server), request())
    assert caught.value.status == status and len(server.bodies) == 1
    assert caught.value.retry_after == (1.5 if error is errors.Overloaded and status == 429 else None)


@pytest.mark.parametrize(
    ("said", "actual", "limit"),
    [
        (refused("Your input exceeds the context window of this model.", code="context_length_exceeded"), None, None),
        (
            refused(
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
                code="context_length_exceeded",
            ),
            9000,
            8192,
        ),
        (
            {
                "object": "error",
                "message": "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens "
                "(112946 in the messages, 10000 in the completion). Please reduce the length of the messages.",
                "code": 400,
            },
            112946,
            6384,
        ),
        (
            refused(
                "This endpoint's maximum context length is 131072 tokens. However, you requested about 150000 tokens "
                "(149000 of text input, 1000 in the output)."
            ),
            149000,
            130072,
        ),
        (
            refused(
                "the request exceeds the available context size, try increasing it",
                type="exceed_context_size_error",
                code=400,
                n_prompt_tokens=1407,
                n_ctx=256,
            ),
            1407,
            256,
        ),
    ],
)
def test_a_prompt_that_is_too_long_is_recognised(said: dict[str, Any], actual: int | None, limit: int | None) -> None:
    with serve(Canned.error(400, said)) as server, pytest.raises(errors.PromptTooLong) as caught:
        ask(model(server), request())
    assert (caught.value.actual, caught.value.limit) == (actual, limit)


def test_an_error_in_the_middle_of_a_stream_is_mapped() -> None:
    said = refused("too much", type="exceed_context_size_error", code=400, n_prompt_tokens=9, n_ctx=5)
    begun = [*chunks({"content": "a"}, stop=None), f"data: {json.dumps(said)}\n\n"]
    with serve(Canned(begun)) as server, pytest.raises(errors.PromptTooLong):
        ask(model(server), request())
    begun[-1] = f"data: {json.dumps(refused('server is busy', code=503))}\n\n"
    with serve(Canned(begun)) as server, pytest.raises(errors.Overloaded):
        ask(model(server), request())


def test_a_cut_stream_is_unreachable_and_not_an_answer() -> None:
    for cut in (True, False):
        half = Canned(chunks({"content": "half"}, stop=None), cut=cut)
        with serve(half) as server, pytest.raises(errors.Unreachable):
            ask(model(server), request())


def test_nobody_listens() -> None:
    with serve(Canned()) as server:
        pass
    with pytest.raises(errors.Unreachable, match="cannot be reached"):
        ask(model(server), request())


def test_cancelling_hangs_up() -> None:
    async def run(server: Server) -> None:
        opened, heard = model(server), list[Any]()

        async def listen() -> None:
            async for event in opened.stream(request()):
                heard.append(event)

        task = asyncio.create_task(listen())
        await until(lambda: bool(heard))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(server.hung_up.is_set)
        await opened.close()

    with serve(Canned(chunks({"content": "half"}, stop=None), hold=True)) as server:
        asyncio.run(run(server))


def test_without_a_key_nothing_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-the-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
    with serve(Canned(chunks({"content": "ok"}))) as server:
        ask(model(server), request(person("half a pair: \ud83d.")))
    assert server.headers[0]["authorization"] == "Bearer none"
    assert server.bodies[0]["messages"][-1]["content"] == "half a pair: ?."
