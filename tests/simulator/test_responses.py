"""The Responses API, through the vendor's SDK over real HTTP: plain and streamed, tools, cached tokens, refusals."""

from __future__ import annotations

import asyncio
import json
from typing import Any, ClassVar

import pytest

from reverie.simulator import Reply, Simulator
from tests.simulator.test_http import get, served

openai: Any

LOOK = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}
PATCH = {"type": "custom", "name": "patch", "description": "free text"}
LONG = "Which port does the server use? " * 200
SCRIPT = """
say Let me look.
call look {"at": "a rather long path, so that the arguments come in more than one piece of the stream, surely"}
call patch {"input": "*** Begin"}
---
say The port is 8080.
"""


@pytest.fixture(autouse=True, scope="module")
def _sdk() -> None:
    """Imported only where these tests run."""
    global openai
    openai = pytest.importorskip("openai")


def asked(url: str) -> Any:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="simulated", max_retries=0)


def results(answer: Any) -> list[dict[str, Any]]:
    """The items of an answer and the outputs of its calls, as a client sends them back."""
    items = [item.model_dump(exclude_none=True) for item in answer.output]
    outputs = [
        {"type": f"{item['type']}_output", "call_id": item["call_id"], "output": "port = 8080"}
        for item in items
        if item["type"].endswith("_call")
    ]
    return [*items, *outputs]


def test_a_conversation_with_tools_plain_and_streamed_reads_its_predecessor() -> None:
    common: dict[str, Any] = {"model": "gpt-5", "instructions": "Be short.", "tools": [LOOK, PATCH]}
    with served(SCRIPT) as (simulator, url):
        client = asked(url)
        first = client.responses.create(input=LONG, **common)
        _, look, patch = first.output
        assert (first.status, first.output_text) == ("completed", "Let me look.")
        assert json.loads(look.arguments)["at"].startswith("a rather") and patch.input == "*** Begin"
        assert first.usage.input_tokens_details.cached_tokens == 0
        history = [{"role": "user", "content": LONG}, *results(first)]
        with client.responses.stream(input=history, **common) as stream:
            kinds = [event.type for event in stream]
            second = stream.get_final_response()
        assert second.output_text == "The port is 8080."
        assert kinds[:2] == ["response.created", "response.in_progress"] and kinds[-1] == "response.completed"
        assert "response.output_text.delta" in kinds
        cached = second.usage.input_tokens_details.cached_tokens
        assert cached >= 1_024 and cached % 128 == 0
        with client.responses.stream(input=LONG, **common) as stream:
            assert [item.type for item in stream.get_final_response().output] == [
                "message",
                "function_call",
                "custom_tool_call",
            ]
        assert [row.endpoint for row in simulator.ledger.rows] == ["/v1/responses"] * 3
        assert simulator.ledger.totals()["misses"] == 0


def test_a_response_can_continue_an_earlier_one() -> None:
    with served(SCRIPT) as (_, url):
        client = asked(url)
        common: dict[str, Any] = {"model": "gpt-5", "tools": [LOOK, PATCH]}
        first = client.responses.create(input=LONG, **common)
        outputs = [item for item in results(first) if item["type"].endswith("_output")]
        second = client.responses.create(
            model="gpt-5", input=outputs, tools=[LOOK, PATCH], previous_response_id=first.id
        )
        assert second.output_text == "The port is 8080." and second.previous_response_id == first.id
        assert second.usage.input_tokens > first.usage.input_tokens
        kept = client.responses.create(model="gpt-5", input="hi", store=False)
        for name in (kept.id, "resp_unknown"):
            with pytest.raises(openai.BadRequestError, match="not found"):
                client.responses.create(model="gpt-5", input="hi", previous_response_id=name)
        other = openai.OpenAI(base_url=f"{url}/v1", api_key="another", max_retries=0)
        with pytest.raises(openai.BadRequestError, match="not found"):
            other.responses.create(model="gpt-5", input="hi", previous_response_id=first.id)


def test_a_conversation_can_be_compacted() -> None:
    script = "when /summary/\n  say The port was found: 8080.\nend\nwhen /Go on/\n  say I know {text}\nend\n" + SCRIPT
    with served(script) as (simulator, url):
        client = asked(url)
        common: dict[str, Any] = {"model": "gpt-5", "input": LONG}
        first = client.responses.create(tools=[LOOK, PATCH], **common)
        history = [{"role": "user", "content": LONG}, *results(first)]
        compacted = client.responses.compact(model="gpt-5", input=history, instructions="Be short.")
        said, sealed = compacted.output
        assert said.role == "user" and said.content[0].text == LONG
        assert sealed.type == "compaction" and "8080" not in sealed.encrypted_content
        assert compacted.usage.input_tokens > first.usage.input_tokens
        items = [item.model_dump(exclude_none=True) for item in compacted.output]
        again = client.responses.compact(model="gpt-5", input=[*items, {"role": "user", "content": "Go on."}])
        assert [item.type for item in again.output] == ["message", "message", "compaction"]
        foreign = {"type": "compaction", "encrypted_content": "sim_?"}
        told = client.responses.create(model="gpt-5", input=[*items, foreign, {"role": "user", "content": "Go on."}])
        assert told.output_text == "I know Go on."
        assert [row.endpoint for row in simulator.ledger.rows][1:3] == ["/v1/responses/compact"] * 2


def test_a_summary_is_asked_for_with_what_was_said_before() -> None:
    class Recorder:
        bodies: ClassVar[list[Any]] = []

        async def reply(self, body: Any, *, purpose: str = "main") -> Reply:
            self.bodies.append(body)
            return Reply([{"type": "text", "text": "It was about ships."}], "end_turn")

    async def talk() -> None:
        simulator = Simulator(Recorder())
        first = await simulator.responses({"model": "gpt-5", "input": "Ships?"})
        made = await simulator.compact({"model": "gpt-5", "previous_response_id": first["id"], "input": []})
        await simulator.responses({"model": "gpt-5", "input": [*made["output"], {"role": "user", "content": "More."}]})

    asyncio.run(talk())
    texts = [[block["text"] for turn in body["messages"] for block in turn["content"]] for body in Recorder.bodies]
    assert texts[1][:2] == ["Ships?", "It was about ships."] and "summary" in texts[1][2]
    assert texts[2] == ["Ships?", "It was about ships.", "More."]


def test_forms_that_the_request_fixes() -> None:
    schema = {"type": "object", "properties": {"port": {"type": "integer", "minimum": 1}}, "required": ["port"]}
    form = {"format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": True}}
    with served("say The port is 8080.") as (_, url):
        client = asked(url)
        assert json.loads(client.responses.create(model="gpt-5", input="?", text=form).output_text) == {"port": 1}
        for choice in ("required", {"type": "function", "name": "look"}):
            (call,) = client.responses.create(model="gpt-5", input="?", tools=[LOOK], tool_choice=choice).output
            assert (call.type, call.name) == ("function_call", "look")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"input": "hi"}, "model"),
        ({"model": "gpt-5"}, "input"),
        ({"model": "gpt-5", "input": [{"role": "judge", "content": "x"}]}, "input[0].role"),
        ({"model": "gpt-5", "input": [{"type": "function_call_output", "call_id": "c", "output": ""}]}, "No tool call"),
        ({"model": "gpt-5", "input": [{"type": "function_call", "call_id": "c", "name": "x"}]}, "No tool output"),
        ({"model": "gpt-5", "input": [{"type": "function_call", "name": "x"}]}, "input[0].call_id"),
        ({"model": "gpt-5", "input": "hi", "tool_choice": "look"}, "tool_choice"),
        ({"model": "gpt-5", "input": "hi", "tool_choice": {"type": "function", "name": "look"}}, "not in 'tools'"),
        ({"model": "gpt-5", "input": "hi", "tools": [{**LOOK, "name": "look at"}]}, "'tools[0].name': string does not"),
        ({"model": "gpt-5", "input": "hi", "max_output_tokens": 0}, "max_output_tokens"),
        ({"model": "gpt-5", "input": "hi", "temperature": 2.5}, "temperature"),
    ],
)
def test_refusals_have_the_form_of_this_api(body: dict[str, Any], said: str) -> None:
    with served(None) as (simulator, url):
        status, answer = get(url, "/v1/responses", body, {"authorization": "Bearer k"})
        assert status == 400 and said in answer["error"]["message"]
        assert set(answer["error"]) == {"message", "type", "param", "code"}
        assert [row.error for row in simulator.ledger.rows] == [answer["error"]["message"]]


def test_faults_of_a_script_reach_this_wire() -> None:
    with served("fail cut 9\nsay A sentence that is cut.\n---\nstop max_tokens\nsay Cut.") as (_, url):
        client = asked(url)
        pieces: list[str] = []
        with pytest.raises(openai.APIConnectionError), client.responses.stream(model="gpt-5", input="hi") as stream:
            pieces.extend(event.delta for event in stream if event.type == "response.output_text.delta")
        assert "".join(pieces) in ("", "A sentenc")
        short = client.responses.create(model="gpt-5", input="hi", max_output_tokens=2)
        assert (short.status, short.incomplete_details.reason) == ("incomplete", "max_output_tokens")


def test_one_model_is_told_and_an_unknown_one_is_not_found() -> None:
    anthropic = pytest.importorskip("anthropic")
    with served(None) as (_, url):
        assert asked(url).models.retrieve("gpt-5").owned_by == "openai"
        claude = anthropic.Anthropic(base_url=url, api_key="simulated", max_retries=0)
        found = claude.models.retrieve("claude-opus-5")
        assert (found.id, found.max_input_tokens, found.max_tokens) == ("claude-opus-5", 1_000_000, 128_000)
        assert claude.models.retrieve("claude-opus-4-5-20251101").id == "claude-opus-4-5-20251101"
        with pytest.raises(anthropic.NotFoundError):
            claude.models.retrieve("claude-nobody")


def test_each_route_has_its_own_faults_and_latency() -> None:
    import asyncio

    from reverie.simulator import ApiError
    from reverie.simulator.control import profile_of

    hello = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    simulator = Simulator()
    simulator.behave(profile_of({"/v1/messages": {"status": 529, "every": 3}, "*": {"wait_s": 60}}))

    async def outcome(call: Any) -> int:
        try:
            await call
        except ApiError as error:
            return error.code
        return 200

    async def scenario() -> None:
        assert [await outcome(simulator.messages(hello)) for _ in range(7)] == [200, 200, 529, 200, 200, 529, 200]
        late = asyncio.ensure_future(outcome(simulator.chat(hello)))
        assert not (await asyncio.wait([late], timeout=0.1))[0], "the other route waits"
        late.cancel()
        simulator.behave({})
        simulator.fail_next(500, route="/v1/responses")
        assert await outcome(simulator.messages(hello)) == 200
        assert [await outcome(simulator.responses({"model": "m", "input": "hi"})) for _ in range(2)] == [500, 200]

    asyncio.run(scenario())
