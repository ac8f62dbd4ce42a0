"""The Anthropic adapter over real HTTP: what it sends, what it makes of answers, how it fails."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reverie import errors
from reverie.models.anthropic import AnthropicModel
from reverie.models.base import PURPOSE_HEADER, Marker, TextDelta, ThinkingDelta, ToolCallStarted
from reverie.models.sdk import own_headers
from reverie.types import OtherBlock, Purpose, TextBlock, ThinkingBlock, ToolUseBlock, Usage
from tests.models.canned import Canned, Server, call, events, message, serve, text
from tests.models.requests import ask, collect, person, request
from tests.waiting import LIMIT_S, until


def model(server: Server, key: str | None = "sk-test", **more: Any) -> AnthropicModel:
    return AnthropicModel("claude-test", key=key, base_url=server.url, timeout_s=LIMIT_S, **more)


def sent_key(server: Server) -> str:
    """SDK releases differ in the header they use."""
    headers = server.headers[0]
    return headers.get("x-api-key") or headers["authorization"].removeprefix("Bearer ")


def test_streams_text_and_reports_usage() -> None:
    with serve(Canned(message(text("Hel", "lo.")), headers={"request-id": "req_7"})) as server:
        got, response = ask(model(server), request(markers=(Marker("system", 0), Marker("messages", 0))))
    assert [event.text for event in got if isinstance(event, TextDelta)] == ["Hel", "lo."]
    assert response.content == (TextBlock("Hello.", response.content[0].origin),)
    assert (response.id, response.model, response.stop_reason, response.request_id) == (
        "msg_1",
        "claude-test",
        "end_turn",
        "req_7",
    )
    assert response.usage == Usage(10, 25, 90)
    assert server.paths == ["/v1/messages"]
    assert sent_key(server) == "sk-test" and "anthropic-beta" not in server.headers[0]
    sent = server.bodies[0]
    assert sent["stream"] is True and sent["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert sent["messages"][0]["content"][0]["text"] == "hello"


def test_parallel_calls_thinking_and_blocks_we_do_not_know() -> None:
    answer = message(
        [
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "hm"},
            {"type": "signature_delta", "signature": "sig"},
        ],
        [{"type": "novelty", "value": 3}],
        call("toolu_1", "Read", '{"file_', 'path": "a"}'),
        call("toolu_2", "Glob"),
        call("toolu_3", "Read", '{"file_path": "a'),
        call("toolu_4", "Read", "[1]"),
        stop="tool_use",
    )
    with serve(Canned(answer)) as server:
        got, response = ask(model(server), request())
    assert [event.id for event in got if isinstance(event, ToolCallStarted)] == [f"toolu_{n}" for n in range(1, 5)]
    assert [event.text for event in got if isinstance(event, ThinkingDelta)] == ["hm"]
    assert response.content[:2] == (ThinkingBlock("hm", "sig"), OtherBlock({"type": "novelty", "value": 3}, "model"))
    calls = [block for block in response.content if isinstance(block, ToolUseBlock)]
    assert [block.input for block in calls] == [
        {"file_path": "a"},
        {},
        {"_unparsed": '{"file_path": "a'},
        {"_unparsed": "[1]"},
    ]
    assert response.stop_reason == "tool_use"


def test_betas_and_context_edits_go_over_the_beta_endpoint() -> None:
    edits = [{"type": "clear_tool_uses_20250919", "cleared_tool_uses": 4, "cleared_input_tokens": 9000}]
    answer = message(text("ok"), context_management={"applied_edits": edits})
    managed = {"edits": [{"type": "clear_tool_uses_20250919"}]}
    with serve(Canned(answer)) as server:
        opened = model(server, betas=("one-beta",))
        _, response = ask(opened, request(betas=("two-beta", "one-beta"), context_management=managed))
    assert response.applied_edits == tuple(edits)
    assert server.headers[0]["anthropic-beta"] == "one-beta,two-beta"
    assert server.bodies[0]["context_management"] == managed
    assert server.paths[0].startswith("/v1/messages")


def test_the_last_stop_reason_is_passed_on() -> None:
    with serve(Canned(message(text("a"), stop="model_context_window_exceeded"))) as server:
        assert ask(model(server), request())[1].stop_reason == "model_context_window_exceeded"


def refused(kind: str, said: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": said}, "request_id": "req_1"}


@pytest.mark.parametrize(
    ("answer", "error", "status"),
    [
        (Canned.error(401, refused("authentication_error", "invalid x-api-key")), errors.AuthenticationFailed, 401),
        (Canned.error(403, refused("permission_error", "no")), errors.AuthenticationFailed, 403),
        (Canned.error(404, refused("not_found_error", "model: claude-9")), errors.BadRequest, 404),
        (Canned.error(400, refused("invalid_request_error", "messages: odd")), errors.BadRequest, 400),
        (Canned.error(429, refused("rate_limit_error", "slow down"), retry_after="7"), errors.Overloaded, 429),
        (Canned.error(529, refused("overloaded_error", "Overloaded")), errors.Overloaded, 529),
        (Canned.error(500, "<html>oops</html>"), errors.Overloaded, 500),
        (Canned.error(413, refused("request_too_large", "too large")), errors.PromptTooLong, 413),
    ],
)
def test_refusals_are_mapped(answer: Canned, error: type[errors.ModelError], status: int) -> None:
    with serve(answer) as server, pytest.raises(error) as caught:
        ask(model(server), request())
    assert caught.value.status == status
    assert caught.value.retry_after == (7.0 if status == 429 else None)
    assert len(server.bodies) == 1, "an adapter does not retry"
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("said", "actual", "limit"),
    [
        ("prompt is too long: 208310 tokens > 200000 maximum", 208310, 200000),
        (
            "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length",
            190000,
            168000,
        ),
    ],
)
def test_a_prompt_that_is_too_long_says_by_how_much(said: str, actual: int, limit: int) -> None:
    answer = Canned.error(400, refused("invalid_request_error", said))
    with serve(answer) as server, pytest.raises(errors.PromptTooLong) as caught:
        ask(model(server), request())
    assert (caught.value.actual, caught.value.limit) == (actual, limit)


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("overloaded_error", errors.Overloaded),
        ("api_error", errors.Overloaded),
        ("rate_limit_error", errors.Overloaded),
        ("invalid_request_error", errors.BadRequest),
    ],
)
def test_an_error_in_the_middle_of_a_stream_is_mapped_by_its_kind(kind: str, error: type[errors.ModelError]) -> None:
    begun = message(text("half"))[:3] + events(refused(kind, "sorry"))
    with serve(Canned(begun)) as server, pytest.raises(error):
        ask(model(server), request())


@pytest.mark.parametrize("kept", [0, 1, 3, -1])
def test_a_cut_stream_is_unreachable_and_not_an_answer(kept: int) -> None:
    for cut in (True, False):
        with serve(Canned(message(text("half"))[:kept], cut=cut)) as server, pytest.raises(errors.Unreachable):
            ask(model(server), request())


def test_garbage_is_unreachable() -> None:
    garbage = Canned(["event: message_start\ndata: {not json\n\n"])
    with serve(garbage) as server, pytest.raises(errors.Unreachable, match="cannot be read"):
        ask(model(server), request())


def test_nobody_listens() -> None:
    with serve(Canned()) as server:
        pass
    with pytest.raises(errors.Unreachable, match="cannot be reached"):
        ask(model(server), request())


def test_a_server_that_stops_talking_is_given_up() -> None:
    with serve(Canned(message(text("half"))[:3], hold=True)) as server:
        slow = AnthropicModel("claude-test", key="k", base_url=server.url, timeout_s=0.3)
        with pytest.raises(errors.Unreachable):
            ask(slow, request())
        assert server.hung_up.wait(LIMIT_S)


def test_cancelling_hangs_up() -> None:
    async def run(server: Server) -> None:
        opened = model(server)
        heard: list[Any] = []

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

    with serve(Canned(message(text("half"))[:3], hold=True)) as server:
        asyncio.run(run(server))


def test_one_model_serves_several_event_loops_and_conversations_at_once() -> None:
    with serve(Canned(message(text("ok")))) as server:
        opened = model(server)

        async def both() -> int:
            asked = (collect(opened.stream(request(person(str(n))))) for n in range(4))
            done = len(await asyncio.gather(*asked))
            await opened.close()
            return done

        assert asyncio.run(both()) == asyncio.run(both()) == 4


def test_without_a_key_nothing_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-from-the-environment")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    with serve(Canned(message(text("ok")))) as server:
        ask(model(server, key=None), request())
    assert sent_key(server) == "none"


def test_text_that_is_not_unicode_is_still_sent() -> None:
    with serve(Canned(message(text("ok")))) as server:
        ask(model(server), request(person("half a pair: \ud83d.")))
    assert server.bodies[0]["messages"][0]["content"][0]["text"].startswith("half a pair: ")


def test_only_a_server_on_this_machine_is_told_what_a_request_is_for() -> None:
    with serve(Canned(message(text("Hi.")))) as server:
        ask(model(server), request(purpose=Purpose.NOTES))
    assert server.headers[0][PURPOSE_HEADER] == "notes"
    asked = request(purpose=Purpose.NOTES)
    assert own_headers("https://api.anthropic.com", asked) == {}
    assert own_headers("https://127.0.0.1.example.org/v1", asked) == {}
