"""Upstreams and clients that behave badly, over real sockets: the other side sees what it would have seen directly."""

from __future__ import annotations

import gzip
import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from http.client import HTTPConnection, IncompleteRead, RemoteDisconnected
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.counts import count
from tests.proxy.proxied import TOOLS, Agent, Recorder, get, post, proxy, stats
from tests.proxy.wild import chunked, has_left, wild
from tests.waiting import LIMIT_S

ASKED = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "stream": True}
START = b'event: message_start\ndata: {"type":"message_start","message":{"id":"m","content":[],"usage":{}}}\n\n'
STOP = b'data: {"type":"message_stop"}\n\n'
ANSWER = json.dumps(
    {"id": "msg_1", "model": "m", "content": [{"type": "text", "text": "Yes."}], "stop_reason": "end_turn", "usage": {}}
).encode()
LONG = "".join(f"{number} a line of the log\n" for number in range(4_000))


def test_refusals_arrive_with_their_bodies_and_headers(tmp_path: Path) -> None:
    body = b'{"type":"error","error":{"type":"overloaded_error","message":"later"}}'
    raw = b"HTTP/1.1 %d No\r\nretry-after: 7\r\nx-should-retry: true\r\ncontent-length: %d\r\n\r\n%s"
    replies = [raw % (status, len(body), body) for status in (429, 529, 500)]
    with wild(lambda line: line.sendall(replies[0])) as to, proxy(tmp_path, to) as url:
        for status in (429, 529, 500):
            connection = HTTPConnection(urlsplit(url).netloc, timeout=LIMIT_S)
            connection.request("POST", "/v1/messages", json.dumps(ASKED))
            answer = connection.getresponse()
            assert (answer.status, answer.headers["retry-after"]) == (status, "7")
            assert (answer.headers["x-should-retry"], answer.read()) == ("true", body)
            connection.close()
            replies.pop(0)


def test_a_stream_that_is_broken_or_has_no_end_arrives_as_it_is(tmp_path: Path) -> None:
    streams: list[tuple[bytes, ...]] = [
        (START, b"data: {not json\n\nnonsense\n\n", STOP),
        (START, b'data: {"type":"content_block_delta","index":9,"delta":5}\n\n'),
        (b"\xff\xfe\x00 no stream at all",),
        (START,),
        (),
    ]
    with wild(lambda line: chunked(*parts)(line)) as to, proxy(tmp_path, to) as url:
        for parts in streams:
            assert post(url, "/v1/messages", ASKED) == (200, b"".join(parts))
        assert stats(url)["failures"] == {"answer_not_read": 4}, "all but the first, which has an end"


def test_an_upstream_that_breaks_off_breaks_off_for_the_client(tmp_path: Path) -> None:
    with wild(lambda line: chunked(START, START, kind=kind, ends=False)(line)) as to, proxy(tmp_path, to) as url:
        for kind in ("text/event-stream", "application/json"):
            with pytest.raises(IncompleteRead) as broken:
                post(url, "/v1/messages", ASKED)
            assert START in broken.value.partial or kind == "application/json"
        with pytest.raises(IncompleteRead):
            post(url, "/v1/messages", ASKED)


def test_a_compressed_answer_passes_and_is_read(tmp_path: Path) -> None:
    packed = gzip.compress(ANSWER)
    reply = chunked(packed[:20], packed[20:], kind="application/json", content_encoding="gzip")
    with wild(reply) as to, proxy(tmp_path, to) as url:
        assert post(url, "/v1/messages", ASKED) == (200, packed)
        assert stats(url)["total"]["requests"] == 1


@pytest.mark.parametrize("when", ["before the answer", "during the stream"])
def test_a_client_that_leaves_ends_the_request_upstream(tmp_path: Path, when: str) -> None:
    seen, asked = queue.Queue[bool](), threading.Event()

    def reply(line: socket.socket) -> None:
        asked.set()
        if when == "during the stream":
            chunked(START, ends=False)(line)
        seen.put(has_left(line))

    with wild(reply) as to, proxy(tmp_path, to) as url:
        line = socket.create_connection((urlsplit(url).hostname, urlsplit(url).port))
        raw = json.dumps(ASKED).encode()
        line.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: %d\r\n\r\n%s" % (len(raw), raw))
        if when == "during the stream":
            assert b"200 OK" in line.recv(1_000)
        else:
            assert asked.wait(LIMIT_S)
        line.close()
        assert seen.get(timeout=LIMIT_S)


def test_a_client_that_leaves_while_it_asks_is_forgotten(tmp_path: Path) -> None:
    recorder = Recorder()
    with recorder.running() as to, proxy(tmp_path, to) as url:
        line = socket.create_connection((urlsplit(url).hostname, urlsplit(url).port))
        line.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 9000\r\n\r\n{")
        line.close()
        assert post(url, "/v1/messages", ASKED)[0] == 200
    assert len(recorder.bodies) == 1


@pytest.mark.soak
def test_a_request_that_no_window_holds_passes(tmp_path: Path) -> None:
    recorder = Recorder()
    recorder.answer = ANSWER
    raw = json.dumps(
        {**ASKED, "stream": False, "messages": [{"role": "user", "content": "x" * count(5_000_000, 50_000_000)}]}
    ).encode()
    with recorder.running() as to, proxy(tmp_path, to) as url:
        assert post(url, "/v1/messages", raw) == (200, ANSWER)
        assert post(url, "/v1/messages", ASKED)[0] == 200
    assert recorder.bodies[0] == raw


def test_what_we_cannot_read_passes_and_is_counted(tmp_path: Path) -> None:
    bodies = [
        b'{"model": "m", "messages": [{"role": "user", "content": "\xff\xfe"}]}',
        b'{"model": "m", "messages": [{"role": "user", "content": ' + b"[" * 5_000 + b"]" * 5_000 + b"}]}",
        b'{"model": "m", "messages": [{"role": "user", "content": [' + b"[" * 90 + b"]" * 90 + b"]}]}",
        b'{"model": "m", "messages": [{"role": "robot", "content": "hi"}]}',
        b'{"model": ["m"], "messages": [{"role": "user", "content": 7}]}',
    ]
    recorder = Recorder()
    recorder.answer = ANSWER
    with recorder.running() as to, proxy(tmp_path, to) as url:
        for raw in bodies:
            assert post(url, "/v1/messages", raw) == (200, ANSWER)
        assert stats(url)["failures"] == {"passed_as_it_came": len(bodies)}
    assert recorder.bodies == bodies


def test_nan_and_odd_numbers_pass(tmp_path: Path) -> None:
    recorder = Recorder()
    recorder.answer = ANSWER
    raw = b'{"model":"claude-sonnet-4-5","temperature":NaN,"x":[1e400,-0.0,00.1e1]}'.replace(b"00.1e1", b"0.1e1")
    raw = raw[:-1] + b',"messages":[{"role":"user","content":"hi"}]}'
    with recorder.running() as to, proxy(tmp_path, to) as url:
        assert post(url, "/v1/messages", raw) == (200, ANSWER)
    assert recorder.bodies == [raw]


ODD_BLOCKS: list[dict[str, Any]] = [
    {
        "role": "user",
        "content": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
            {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}, "citations": {"x": 1}},
            {"type": "container_upload", "file_id": "file_1"},
            {"type": "text", "text": "Look.", "unknown": None},
        ],
    },
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "ZGF0YQ=="},
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"type": "web_search_result"}]},
            {"type": "never_seen_before", "payload": [1, {"a": None}]},
            {"type": "tool_use", "id": "toolu_long_enough_1", "name": "Bash", "input": {"a": 1}},
            {"type": "tool_use", "id": "toolu_long_enough_2", "name": "Bash", "input": {"a": 2}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "toolu_long_enough_1", "content": LONG, "is_error": True},
            {
                "type": "tool_result",
                "tool_use_id": "toolu_long_enough_2",
                "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}],
                "cache_control": {"type": "ephemeral", "ttl": "1h"},
            },
            {"type": "text", "text": "And?"},
        ],
    },
]


def test_blocks_that_nobody_knows_stay_and_only_the_long_result_changes(tmp_path: Path) -> None:
    recorder = Recorder()
    recorder.answer = ANSWER
    with recorder.running() as to, proxy(tmp_path, to) as url:
        first = {"model": "claude-sonnet-4-5", "max_tokens": 9, "tools": TOOLS, "messages": ODD_BLOCKS[:1]}
        recorder.answer = json.dumps({"id": "m1", "content": ODD_BLOCKS[1]["content"], "usage": {}}).encode()
        post(url, "/v1/messages", first)
        whole = {**first, "messages": ODD_BLOCKS}
        post(url, "/v1/messages", whole)
        assert stats(url)["failures"] == {}
    sent = json.loads(recorder.bodies[1])
    changed = sent["messages"][2]["content"][0]
    assert changed["is_error"] is True and len(changed["content"]) < 5_000 < len(LONG)
    sent["messages"][2]["content"][0]["content"] = LONG
    assert sent == whole


def test_calls_with_the_same_id_keep_their_own_results(tmp_path: Path) -> None:
    """Some servers count from one in every response."""
    recorder = Recorder()
    with recorder.running() as to, proxy(tmp_path, to) as url:
        for api in ("messages", "chat", "responses"):
            _same_ids(url, recorder, api)


def _same_ids(url: str, recorder: Recorder, api: str) -> None:
    texts = [f"RESULT {number}\n{LONG}" for number in range(3)]
    tools = TOOLS if api == "messages" else [{"type": "function", "name": "Bash", "function": {"name": "Bash"}}]
    body: dict[str, Any] = {"model": "gpt-5", "max_tokens": 9, "tools": tools}
    items: list[dict[str, Any]] = [{"role": "user", "content": "Go on."}]
    path = {"messages": "/v1/messages", "chat": "/v1/chat/completions", "responses": "/v1/responses"}[api]
    for text in texts:
        items += _step(api, text)
        post(url, path, {**body, "input" if api == "responses" else "messages": items})
    assert stats(url)["failures"].keys() <= {"answer_not_read"}
    sent = json.loads(recorder.bodies[-1])["input" if api == "responses" else "messages"]
    shown = [json.dumps(item) for item in sent[1:] if "RESULT" in json.dumps(item)]
    assert len(shown) == 3
    for number, one in enumerate(shown):
        assert f"RESULT {number}" in one and not any(f"RESULT {n}" in one for n in range(3) if n != number)
    assert min(map(len, shown)) < 5_000, "a layer acted"


def _step(api: str, text: str) -> list[dict[str, Any]]:
    if api == "messages":
        call = {"type": "tool_use", "id": "call_0", "name": "Bash", "input": {}}
        result = {"type": "tool_result", "tool_use_id": "call_0", "content": text}
        return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    if api == "chat":
        function = {"id": "call_0", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}
        told = {"role": "tool", "tool_call_id": "call_0", "content": [{"type": "text", "text": text}]}
        return [{"role": "assistant", "content": None, "tool_calls": [function]}, told]
    asked = {"type": "function_call", "call_id": "call_0", "name": "Bash", "arguments": "{}"}
    return [asked, {"type": "function_call_output", "call_id": "call_0", "output": text}]


def test_a_history_that_the_server_keeps_passes_unchanged_as_one_conversation(tmp_path: Path) -> None:
    recorder = Recorder()
    before = ""
    with recorder.running() as to, proxy(tmp_path, to) as url:
        for number in range(4):
            result = {"type": "function_call_output", "call_id": f"call_{number}", "output": LONG}
            body = {"model": "gpt-5", "input": [result] if before else "Go on.", "store": True}
            body |= {"tools": [{"type": "function", "name": "shell"}]}
            body |= {"previous_response_id": before} if before else {}
            before = f"resp_{number}"
            output = [{"type": "function_call", "call_id": f"call_{number + 1}", "name": "shell", "arguments": "{}"}]
            recorder.answer = json.dumps({"id": before, "output": output, "usage": {"input_tokens": 5}}).encode()
            raw = json.dumps(body, indent=1).encode()
            post(url, "/v1/responses", raw)
            assert recorder.bodies[-1] == raw
        found = stats(url)
    assert [one["requests"] for one in found["sessions"]] == [4] and found["failures"] == {}


def test_items_of_the_responses_api_that_only_the_server_can_read_stay(tmp_path: Path) -> None:
    recorder = Recorder()
    items: list[dict[str, Any]] = [
        {"type": "compaction", "encrypted_content": "b3BhcXVl"},
        {"role": "user", "content": [{"type": "input_text", "text": "Go on."}, {"type": "input_file", "file_id": "f"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "b3BhcXVl"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}},
        {"type": "custom_tool_call", "call_id": "call_long_enough", "name": "exec", "input": "ls"},
        {"type": "custom_tool_call_output", "call_id": "call_long_enough", "output": LONG},
        {"type": "tomorrow", "payload": {"a": None}},
    ]
    body = {"model": "gpt-5", "store": False, "tools": [{"type": "custom", "name": "exec"}], "input": items[:4]}
    with recorder.running() as to, proxy(tmp_path, to) as url:
        recorder.answer = json.dumps({"id": "r1", "output": items[4:5], "usage": {}}).encode()
        post(url, "/v1/responses", body)
        post(url, "/v1/responses", {**body, "input": items})
        assert stats(url)["failures"] == {}
    sent = json.loads(recorder.bodies[1])
    assert len(sent["input"][5]["output"]) < 5_000
    assert sent == {**body, "input": [*items[:5], {**items[5], "output": sent["input"][5]["output"]}, items[6]]}


def test_a_client_that_rewrites_its_history_costs_no_more_and_leaves_little_behind(tmp_path: Path) -> None:
    """As aider does with its map of the files: the second message is another one in every request."""
    recorder = Recorder()
    talk: list[dict[str, Any]] = []
    with recorder.running() as to, proxy(tmp_path, to) as url:
        for number in range(14):
            start = [{"role": "user", "content": f"The map, version {number}: " + "file " * 500}]
            asked = {"role": "user", "content": f"Question {number}"}
            if talk:
                told = {"type": "tool_result", "tool_use_id": f"toolu_long_{number - 1:04}", "content": LONG}
                asked = {"role": "user", "content": [told]}
            talk.append(asked)
            call = {"type": "tool_use", "id": f"toolu_long_{number:04}", "name": "Bash", "input": {}}
            usage = {"input_tokens": 1_000}
            recorder.answer = json.dumps({"id": f"m{number}", "content": [call], "usage": usage}).encode()
            messages = [*start, {"role": "assistant", "content": "Ok."}, *talk]
            body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "tools": TOOLS, "messages": messages}
            assert post(url, "/v1/messages", body)[0] == 200
            talk.append({"role": "assistant", "content": [call]})
        found = stats(url)
    assert len(found["sessions"]) == 1 and "changes the history" in found["sessions"][0]["stopped"]
    assert found["total"]["paid"] <= 1.01 * found["total"]["direct"]
    transcripts = list(tmp_path.rglob("proxy-*.jsonl"))
    assert len(transcripts) == 1 and sum(path.stat().st_size for path in transcripts) < 3_000_000
    assert "cache_control" not in recorder.bodies[-1].decode()


def test_a_first_request_that_is_refused_many_times_is_one_conversation(tmp_path: Path) -> None:
    recorder = Recorder()
    with recorder.running() as to, proxy(tmp_path, to) as url:
        body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "tools": TOOLS, "messages": ODD_BLOCKS}
        recorder.status = 529
        for _ in range(5):
            post(url, "/v1/messages", body)
        assert stats(url)["sessions"] == []
        recorder.status, recorder.answer = 200, ANSWER
        post(url, "/v1/messages", body)
        assert [one["requests"] for one in stats(url)["sessions"]] == [1]
    assert len(set(recorder.bodies)) == 1 and len(list(tmp_path.rglob("proxy-*.jsonl"))) == 1


def test_branches_without_end_share_one_conversation(tmp_path: Path) -> None:
    recorder = Recorder()
    with recorder.running() as to, proxy(tmp_path, to) as url:
        agent = Agent(url)
        for number in range(3):
            recorder.answer = _call(f"toolu_long_{number}")
            agent.step(LONG)
        for number in range(20):
            branch = Agent(url, messages=json.loads(json.dumps(agent.messages[:3])))
            branch.messages.append({"role": "assistant", "content": "Hm."})
            branch.messages.append({"role": "user", "content": [{"type": "text", "text": f"Or way {number}?"}]})
            recorder.answer = _call(f"toolu_branch_{number}")
            branch.step("short")
        found = stats(url)
    assert found["total"]["requests"] == 23
    assert len(found["sessions"]) <= 18 and len(list(tmp_path.rglob("proxy-*.jsonl"))) <= 17


def test_a_home_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    recorder = Recorder()
    with recorder.running() as to, proxy(tmp_path, to) as url:
        (tmp_path / "projects").write_text("a file where a folder should be")
        agent = Agent(url)
        for number in range(3):
            recorder.answer = _call(f"toolu_long_{number}")
            agent.step(LONG)
    assert len(recorder.bodies) == 3


def test_a_damaged_book_is_put_aside(tmp_path: Path) -> None:
    book = tmp_path / "proxy" / "book.sqlite"
    book.parent.mkdir()
    book.write_bytes(b"this is not a database, " * 500)
    recorder = Recorder()
    recorder.answer = ANSWER
    with recorder.running() as to, proxy(tmp_path, to) as url:
        assert post(url, "/v1/messages", {**ASKED, "stream": False})[0] == 200
        assert stats(url)["total"]["requests"] == 1
    assert book.with_name("book.sqlite.damaged").is_file()


def test_without_layers_every_byte_is_the_clients(tmp_path: Path) -> None:
    recorder = Recorder()
    with recorder.running() as to, proxy(tmp_path, to, layers=()) as url:
        agent = Agent(url)
        sent = list[bytes]()
        for number in range(4):
            recorder.answer = _call(f"toolu_long_{number}")
            sent.append(json.dumps(agent.body()).encode())
            agent.step(LONG)
        plain = json.dumps({**ASKED, "stream": False, "system": "You help. " * 1_000}).encode()
        post(url, "/v1/messages", plain)
        assert len(stats(url)["sessions"]) == 2
    assert recorder.bodies == [*sent, plain]


def test_a_token_is_asked_for_and_never_passed_on(tmp_path: Path) -> None:
    recorder = Recorder()
    recorder.answer = ANSWER
    token = "a-token-that-nobody-guesses-0123456789"
    with recorder.running() as to, proxy(tmp_path, to, token=token) as url:
        assert post(url, "/v1/messages", ASKED)[0] == 401
        assert post(url, "/token/wrong/v1/messages", ASKED)[0] == 401
        assert get(url, "/reverie/stats")[0] == 401
        assert post(url, "/v1/messages", ASKED, **{"x-reverie-token": token})[0] == 200
        assert post(url, f"/token/{token}/v1/messages?beta=true", ASKED)[0] == 200
        assert get(url, f"/token/{token}/reverie/stats")[0] == 200
        assert post(url, f"/token/{token}/v1/files/a%2Fb?x=%20", b"")[0] == 200
    assert recorder.paths == ["/v1/messages", "/v1/messages?beta=true", "/v1/files/a%2Fb?x=%20"]
    assert token not in json.dumps(recorder.headers)


def test_an_upstream_that_says_nothing_leaves_others_alone(tmp_path: Path) -> None:
    with wild(lambda line: time.sleep(5)) as to, proxy(tmp_path, to) as url:
        line = socket.create_connection((urlsplit(url).hostname, urlsplit(url).port))
        raw = json.dumps(ASKED).encode()
        line.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: %d\r\n\r\n%s" % (len(raw), raw))
        assert stats(url)["total"]["requests"] == 0
        line.close()
    with wild(lambda line: line.close()) as to, proxy(tmp_path, to) as url:
        try:
            assert post(url, "/v1/messages", ASKED)[0] == 502
        except RemoteDisconnected:
            pytest.fail("the client gets an answer")


def _call(call: str) -> bytes:
    content = [{"type": "tool_use", "id": call, "name": "Bash", "input": {"n": call}}]
    return json.dumps({"id": f"msg_{call}", "content": content, "usage": {"input_tokens": 5}}).encode()


def test_other_machines_need_the_token_that_is_printed(tmp_path: Path) -> None:
    recorder = Recorder()
    recorder.answer = ANSWER
    environment = {**os.environ, "REVERIE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    with recorder.running() as to:
        command = [sys.executable, "-m", "reverie", "proxy", "--host", "0.0.0.0", "--upstream", to, "--layers", ""]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
            try:
                assert process.stdout is not None
                url = process.stdout.readline().split()[2]
                printed = (
                    next(line for line in process.stdout if "ANTHROPIC_BASE_URL" in line).partition("=")[2].strip()
                )
                assert post(url, "/v1/messages", ASKED)[0] == 401
                assert post(url, f"{urlsplit(printed).path}/v1/messages", ASKED)[0] == 200
            finally:
                process.terminate()
    token = tmp_path / "proxy" / "token"
    assert token.stat().st_mode & 0o777 == 0o600 and token.read_text().strip() in printed
    assert recorder.bodies == [json.dumps(ASKED).encode()]
