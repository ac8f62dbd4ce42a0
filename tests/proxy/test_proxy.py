"""What a client and its server see through the proxy: the same bytes where nothing is decided, and a smaller bill."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from reverie.proxy.read_back import make_tool
from tests.proxy.proxied import (
    AGENT,
    TOOLS,
    Agent,
    Recorder,
    plain,
    post,
    proxy,
    same_but_cleared,
    stats,
    upstream,
)

ODD = (
    b'{ "model":"claude-sonnet-4-5", "max_tokens" : 9, "unknown_field": {"b": 1, "a": [1.0, 1e2, "\\ud800"]},\n'
    b'  "messages": [{"role": "user", "content": "hi \xc3\xa9"}], "metadata": {"user_id": "x"} }'
)


def lines(number: int, size: int) -> str:
    return "".join(f"line {at} of part {number}\n" for at in range(size // 20))


def test_a_request_that_no_layer_touches_arrives_byte_by_byte(tmp_path: Path) -> None:
    recorder = Recorder()
    recorder.answer = b'{"id": "msg_1", "content": [{"type": "text", "text": "hello"}], "usage": {}}'
    with recorder.running() as to, proxy(tmp_path, to) as url:
        for path in ("/v1/messages", "/v1/messages?beta=true", "/v1/messages/count_tokens", "/v1/something/new"):
            status, data = post(url, path, ODD, **{"anthropic-beta": "a,b", "x-own": "kept"})
            assert (status, data) == (200, recorder.answer)
    assert recorder.bodies == [ODD] * 4
    assert all(one["anthropic-beta"] == "a,b" and one["x-own"] == "kept" for one in recorder.headers)


@pytest.mark.parametrize("raw", [b"", b"not json", b"[1, 2]", b'{"messages": 5}', b'{"messages": [{"role": 7}]}'])
def test_what_is_not_a_conversation_is_passed_on(tmp_path: Path, raw: bytes) -> None:
    recorder = Recorder()
    recorder.status, recorder.answer = 400, b'{"error": "no"}'
    with recorder.running() as to, proxy(tmp_path, to) as url:
        assert post(url, "/v1/messages", raw) == (400, b'{"error": "no"}')
    assert recorder.bodies == [raw]


def test_keys_are_passed_on_and_never_stored(tmp_path: Path) -> None:
    key = "sk-ant-0123456789-very-secret"
    with upstream() as server, proxy(tmp_path, server.url) as url:
        agent = Agent(url)
        agent.step(lines(1, 60_000))
        status, _ = post(url, "/v1/messages", agent.body(), **{"x-api-key": key, "authorization": f"Bearer {key}"})
        assert status == 200
        assert key not in json.dumps(stats(url))
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and key.encode() in path.read_bytes()]


@pytest.mark.parametrize("marks", [1, 3])
def test_a_long_conversation_costs_less_and_the_direct_bill_is_foretold(tmp_path: Path, marks: int) -> None:
    sizes = [500, 3_000, 20_000, 60_000, 8_000] * 5
    with upstream() as direct:
        agent = Agent(direct.url, marks=marks)
        for number, size in enumerate(sizes):
            agent.step(lines(number, size))
        expected = direct.simulator.ledger.totals()["cost_usd"]
    with upstream() as server, proxy(tmp_path, server.url) as url:
        agent = Agent(url, marks=marks)
        for number, size in enumerate(sizes):
            agent.step(lines(number, size))
            assert stats(url)["total"]["ratio"] <= 1.01, "also if the conversation ends here"
        paid = server.simulator.ledger.totals()
        found = stats(url)["total"]
    assert paid["cost_usd"] < 0.6 * expected
    assert found["paid"] == pytest.approx(paid["cost_usd"])
    assert found["direct"] == pytest.approx(expected, rel=1e-6)
    assert found["requests"] == len(sizes)


@pytest.mark.parametrize("size", [1_500, 9_000])
def test_a_client_without_markers_pays_at_most_one_percent_more_whenever_it_ends(tmp_path: Path, size: int) -> None:
    bills = list[list[float]]()
    for way in ("direct", "proxy"):
        with upstream() as server, proxy(tmp_path / way, server.url, clock=server.time) as url:
            agent = Agent(server.url if way == "direct" else url, marks=0)
            bills.append([])
            for number in range(26):
                server.simulator.clock.advance(600 if number in (4, 18) else 20)  # also after the cache has expired
                agent.step(lines(number, size))
                stats(url)  # the bills are written
                bills[-1].append(server.simulator.ledger.totals()["cost_usd"])
    ratios = [through / direct for direct, through in zip(*bills, strict=True)]
    assert max(ratios) <= 1.01
    assert ratios[1] == 1.0 and ratios[-1] < 0.6
    assert sorted(ratios[-5:], reverse=True) == ratios[-5:], "each request saves more"


def test_a_large_result_goes_to_disk_and_its_path_is_shown(tmp_path: Path) -> None:
    recorder = Recorder()
    with recorder.running() as to, proxy(tmp_path, to) as url:
        agent = Agent(url)
        recorder.answer = _answer("toolu_1")
        agent.step(lines(1, 90_000))
        agent.step("short")
    sent = json.loads(recorder.bodies[1])
    (shown,) = sent["messages"][-1]["content"]
    path = next(word for word in shown["content"].split() if "/tool-results/" in word).rstrip(";")
    assert Path(path).read_text() == lines(1, 90_000)
    assert len(shown["content"]) < 4_000
    given = json.loads(json.dumps(agent.messages[:3]))
    given[-1]["content"][-1]["content"] = shown["content"]
    given[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
    assert sent["messages"] == given, "everything else is as the client wrote it"


def test_a_restart_and_a_second_worker_send_the_same_bytes(tmp_path: Path) -> None:
    recorder = Recorder()
    with recorder.running() as to:
        agent = Agent("")
        for number in range(6):
            with proxy(tmp_path, to) as url, proxy(tmp_path, to) as other:
                agent.url = url if number % 2 else other
                recorder.answer = _answer(f"toolu_{number}")
                agent.step(lines(number, 20_000 if number % 3 else 70_000))
    bodies = [json.loads(body)["messages"] for body in recorder.bodies]
    for before, after in itertools.pairwise(bodies):
        same_but_cleared(before, after)


def test_two_branches_of_one_conversation_do_not_disturb_each_other(tmp_path: Path) -> None:
    recorder = Recorder()
    with recorder.running() as to, proxy(tmp_path, to) as url:
        first = Agent(url)
        for number in range(3):
            recorder.answer = _answer(f"toolu_{number}")
            first.step(lines(number, 60_000))
        second = Agent(url, messages=json.loads(json.dumps(first.messages)))
        for number in range(3, 7):
            for name, agent in (("a", first), ("b", second)):
                recorder.answer = _answer(f"toolu_{name}{number}", name)
                agent.step(lines(number, 30_000))
        assert len(stats(url)["sessions"]) == 2
    own = {name: [json.loads(b)["messages"] for b in recorder.bodies[3 + at :: 2]] for at, name in enumerate("ab")}
    for bodies in own.values():
        for before, after in itertools.pairwise(bodies):
            same_but_cleared(before, after)
    shared = [plain(bodies[0])[:6] for bodies in own.values()]
    assert shared[0] == shared[1], "the common start has the same bytes in both"


def test_a_client_that_completes_its_calls_or_clears_results_has_one_conversation(tmp_path: Path) -> None:
    """Claude Code adds defaults to the input of a call before it gives it back, and clears old results by itself."""
    recorder = Recorder()
    with recorder.running() as to, proxy(tmp_path, to) as url:
        agent = Agent(url)
        for number in range(6):
            recorder.answer = _answer(f"toolu_long_{number}")
            agent.step(lines(number, 60_000))
            agent.messages[-2]["content"][-1]["input"]["replace_all"] = False
        found = stats(url)
        assert len(found["sessions"]) == 1 and found["sessions"][0]["breaks"] == {}
        agent.messages[2]["content"][0]["content"] = "[cleared by the client]"
        agent.step("short")
        found = stats(url)
    assert [one["requests"] for one in found["sessions"]] == [7] and found["failures"] == {}
    sent = json.loads(recorder.bodies[-1])["messages"]
    assert sent[2]["content"][0]["content"] == "[cleared by the client]"
    assert len(sent[4]["content"][0]["content"]) < 5_000, "what came after the edit is still on disk"


def test_streams_of_all_three_apis_are_passed_on_as_they_are(tmp_path: Path) -> None:
    with upstream("say One, two, three.") as server, proxy(tmp_path, server.url) as url:
        said = {"model": "claude-sonnet-4-5", "max_tokens": 50, "messages": [{"role": "user", "content": "Count."}]}
        chat = {**said, "model": "gpt-5", "stream_options": {"include_usage": True}}
        other = {"model": "gpt-5", "input": "Count.", "stream": True}
        for path, body in (
            ("/v1/messages", {**said, "stream": True}),
            ("/v1/chat/completions", {**chat, "stream": True}),
            ("/v1/responses", other),
        ):
            status, through = post(url, path, body, authorization="Bearer x")
            assert status == 200, through
            assert b"three." in through and b"data:" in through
        assert stats(url)["total"]["requests"] == 3
        assert stats(url)["total"]["output"] > 0


def test_a_client_that_cannot_read_files_keeps_its_results_unless_it_gets_our_tool(tmp_path: Path) -> None:
    recorder = Recorder()
    with recorder.running() as to, proxy(tmp_path, to) as url:
        messages = [
            {"role": "user", "content": "How is the weather?"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "weather", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "rain " * 20_000}]},
        ]
        tools = [{**TOOLS[0], "name": "weather"}]
        body = json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 5, "tools": tools, "messages": messages})
        raw = body.replace('"messages"', '"cache_control": null, "messages"').encode()
        for one in (raw, raw.replace(b'"tools": [', b'"tools": [], "other": ['), raw.replace(b"rain", b"x")):
            post(url, "/v1/messages", one)
    first, *others = recorder.bodies
    assert len(first) < 4_000 and json.loads(first)["tools"] == [*tools, make_tool("messages", ())]
    untouched = [raw.replace(b'"tools": [', b'"tools": [], "other": ['), raw.replace(b"rain", b"x")]
    assert others == untouched, "as they came"


def test_an_upstream_that_is_gone_is_one_sentence(tmp_path: Path) -> None:
    with proxy(tmp_path, "http://127.0.0.1:9") as url:
        status, data = post(url, "/v1/messages", ODD)
    assert status == 502
    assert "does not answer" in json.loads(data)["error"]["message"]


def test_pages_of_other_hosts_cannot_use_it(tmp_path: Path) -> None:
    with upstream(AGENT) as server, proxy(tmp_path, server.url) as url:
        assert post(url, "/v1/messages", ODD, origin="http://evil.example")[0] == 403


def _answer(call: str, words: str = "") -> bytes:
    text = f"Let me look at one more part of the log, there may be something in it that helps us {words}: {call}"
    content = [{"type": "text", "text": text}, {"type": "tool_use", "id": call, "name": "Bash", "input": {"n": call}}]
    return json.dumps(
        {"id": f"msg_{call}", "model": "m", "content": content, "stop_reason": "tool_use", "usage": {"input_tokens": 5}}
    ).encode()
