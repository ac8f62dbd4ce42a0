"""Clients that share a proxy with others: nothing of one reaches another one, and what looks odd arrives as it came."""

from __future__ import annotations

import itertools
import json
import posixpath
import re
import socket
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

import pytest

from tests.proxy.proxied import TOOLS, Agent, Recorder, post, proxy, stats
from tests.proxy.reader import LONG, LONG_SYSTEM, OURS, READ, Client, Mind, call, say, thinking_upstream
from tests.proxy.wild import chunked, wild
from tests.waiting import LIMIT_S

ANSWER = json.dumps({"id": "m", "content": [{"type": "text", "text": "Yes."}], "usage": {"input_tokens": 5}}).encode()
ASKED = json.dumps({"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": "hi"}]}).encode()
SECRET = "what only Alice knows: 4711. "
KNOWN = say("An answer that is long enough to be recognised by its words, whoever gives it back to the server.")


def test_headers_pass_as_they_came_and_no_cookie_reaches_another_client(tmp_path: Path) -> None:
    heads = list[list[bytes]]()
    head = b"HTTP/1.1 200 OK\r\nset-cookie: of=alice; Path=/\r\nset-cookie: two=2\r\nx-name: J\xc3\xbcrgen\r\n"

    def reply(line: socket.socket) -> None:
        line.sendall(head + b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(ANSWER), ANSWER))

    def ask(url: str, *headers: bytes) -> bytes:
        given = b"".join(one + b"\r\n" for one in (*headers, b"content-length: %d" % len(ASKED)))
        line = socket.create_connection((urlsplit(url).hostname, urlsplit(url).port), timeout=LIMIT_S)
        with line:
            line.sendall(
                b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n%s\r\n%s" % (given, ASKED)
            )
            return b"".join(iter(lambda: line.recv(65_536), b""))

    with wild(reply, heads) as to, proxy(tmp_path, to) as url:
        own = [
            b"anthropic-beta: one",
            b"anthropic-beta: two",
            b"x-who: J\xfcrgen",
            b"x-also: \xe2\x9c\x93",
            b"x-api-key: a",
        ]
        answer = ask(url, *own)
        assert (
            answer.count(b"set-cookie: ") == 2
            and b"x-name: J\xc3\xbcrgen" in answer
            and answer.startswith(b"HTTP/1.1 200")
        )
        ask(url, b"x-api-key: b")
    ours = (b"host:", b"connection:", b"accept-encoding: identity", b"content-length:")
    first, second = ([one for one in head[1:] if not one.lower().startswith(ours)] for head in heads)
    assert (first, second) == (own, [b"x-api-key: b"])


def test_a_number_that_cannot_be_written_again_passes_as_it_came(tmp_path: Path) -> None:
    recorder = Recorder()
    recorder.answer = ANSWER
    with recorder.running() as to, proxy(tmp_path, to) as url:
        client = Client("messages", url, system=LONG_SYSTEM)
        client.says("hi")
        assert OURS.encode() in recorder.bodies[0], "our tool is added to such a request"
        raw = json.dumps(client.body()).encode()[:-1] + b', "temperature": 1e999}'
        assert post(url, "/v1/messages", raw, authorization="Bearer x")[0] == 200
        assert stats(url)["failures"] == {"passed_as_it_came": 1}
    assert recorder.bodies[1] == raw


def test_the_password_of_an_upstream_is_not_shown(tmp_path: Path) -> None:
    with proxy(tmp_path, "http://user:hunter2@127.0.0.1:9/base") as url:
        assert set(stats(url)["upstreams"].values()) == {"http://127.0.0.1:9/base"}


@pytest.mark.parametrize("token", ["", "a-token-that-nobody-guesses-0123456789"])
def test_no_target_reaches_another_server_than_the_upstream(tmp_path: Path, token: str) -> None:
    """A password in the address of the upstream goes to no other server, and nothing of another one comes back."""
    upstream, other = list[list[bytes]](), list[list[bytes]]()
    reply = chunked(b"{}", kind="application/json")
    with wild(reply, upstream) as to, wild(reply, other) as elsewhere:
        port, evil = urlsplit(to).port, urlsplit(elsewhere).netloc
        of_upstream = f"http://user:hunter2@127.0.0.1:{port}/base"
        with proxy(tmp_path, of_upstream, token=token, layers=()) as url:
            own = urlsplit(url).netloc
            targets = (
                *("%2F@{}/x", "@{}/x", ":80@{}/x", ".{}/x", "%40{}/x", "%2f%2f{}/x", "\\@{}/x", ";@{}/x", "?@{}/x"),
                *("http://{}/x", "https://{}/x", "HTTP://user@{}/x", "//{}/x", "///{}/x", "/\\{}/x", "/@{}/x", "/;@{}"),
                *("/%2F@{}/x", "/..//{}/x", "/%09@{}/x", "/x?@{}/", "/x?http://{}/", "/:80@{}", "{}", "*", "/../../x"),
                *(f"http://{own}/reverie/stats", "%2Freverie/stats", "/x#@{}/", "/..%2f..%2f@{}/x"),
                *(
                    "/%2e%2e/x",
                    "/.%2E/x",
                    "/a/%2e./..%2fx",
                    "/..%5cx",
                    "/..\\x",
                    "/..;/x",
                    "/..;a=b/x",
                    "/%252e%252e/x",
                ),
                *("/a/..", "/%2e%2e", "/..?x", "//../../x", "/v1/%2e%2e%2f%2e%2e%2fx", "/a?/../..", "/...", "/..a/x"),
            )
            for method, target in itertools.product(("GET", "POST", "OPTIONS", "CONNECT"), targets):
                line = (f"/token/{token}" if token and target.startswith("/") else "") + target.format(evil)
                statuses = {_status(url, f"{method} {line}".encode(), host, token) for host in ("127.0.0.1", evil)}
                if not target.startswith("/") and method != "CONNECT":
                    assert statuses & {200, 502} == set(), (method, line, statuses)
    assert other == []
    assert upstream, "targets that begin with a slash arrive"
    for head in upstream:
        assert _resolved(head[0].split()[1]).startswith(b"/base/"), head[0]
    for path in (b"/base/a?/../..", b"/base/...", b"/base/..a/x"):
        assert any(head[0].split()[1] == path for head in upstream), "these leave nothing"


def _resolved(target: bytes) -> bytes:
    """The path of a target as the loosest of all servers reads it."""
    path, before = target.partition(b"?")[0], b""
    while path != before:
        path, before = unquote_to_bytes(path), path
    return posixpath.normpath(re.sub(rb";[^/]*", b"", path.replace(b"\\", b"/"))) + b"/"


def _status(url: str, line: bytes, host: str, token: str) -> int:
    """The status of an answer to a request with this first line."""
    with socket.create_connection((urlsplit(url).hostname, urlsplit(url).port), timeout=30) as connection:
        head = f"host: {host}\r\nx-reverie-token: {token}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
        connection.sendall(line + b" HTTP/1.1\r\n" + head.encode())
        return int(b"".join(iter(lambda: connection.recv(65_536), b"")).split()[1])


def test_calls_of_a_tool_of_the_client_with_our_name_are_the_clients(tmp_path: Path) -> None:
    mind = Mind([call("look_up")], [READ], [{**call(OURS), "input": {"path": "/mine"}}])
    with thinking_upstream(mind) as (_, tee), proxy(tmp_path, tee.url, layers=("1",)) as url:
        client = Client("messages", url, system=LONG_SYSTEM)
        client.tell(client.says("Which port?"), "short")
        client.tools = ("look_up", OURS)
        assert [name for _, name in client.calls(client.says("Use your own tool."))] == [OURS]
        assert json.loads(tee.bodies[-1][1])["tools"] == client.body()["tools"]


def test_an_answer_that_the_client_fetches_later_has_no_calls_of_ours(tmp_path: Path) -> None:
    recorder = Recorder()
    recorder.answer = json.dumps({"id": "resp_1", "status": "queued", "output": []}).encode()
    with recorder.running() as to, proxy(tmp_path, to) as url:
        client = Client("responses", url, system=LONG_SYSTEM, extra={"background": True, "store": True})
        client.history.append({"role": "user", "content": "hi"})
        post(url, "/v1/responses", client.body())
    assert recorder.bodies == [json.dumps(client.body()).encode()]


def test_a_branch_reads_what_its_client_sent_and_nothing_that_came_later(tmp_path: Path) -> None:
    """Two people with the same start, behind one key."""
    mind = Mind([call("look_up")], [KNOWN], [call("look_up")], [say("Thanks.")])
    with thinking_upstream(mind) as (_, tee), proxy(tmp_path, tee.url, layers=("1",)) as url:
        alice = Client("messages", url, system=LONG_SYSTEM)
        alice.tell(alice.says("Which port?"), LONG)
        (common,) = tmp_path.rglob("tool-results/*")
        other = Client("messages", url, system=LONG_SYSTEM, history=alice.history[:])
        alice.tell(alice.says("Then this."), SECRET * 3_000)
        (later,) = set(tmp_path.rglob("tool-results/*")) - {common}
        (theirs,) = tmp_path.rglob("proxy-*.jsonl")
        mind.moves = (*mind.moves[:2], [say("Hello.")])
        other.says("Hello.")
        (own,) = set(tmp_path.rglob("proxy-*.jsonl")) - {theirs}
        reads = [{"id": path.name, "offset": 0} for path in (common, later, theirs, own)]
        mind.moves = (*mind.moves[:3], [{**call(OURS), "input": one} for one in reads])
        mind.results.clear()
        other.says("Read all of that.")
    read, *refused = mind.results
    assert read.startswith(LONG[:1_000]) and all("is not the id of a kept result" in one for one in refused)


def test_a_call_of_ours_that_is_cut_off_leaves_a_history_that_servers_take(tmp_path: Path) -> None:
    """Without the call, the answer is empty, and a client gives it back."""
    cut = {**call(OURS), "input": {"path": "x" * 50_000}}
    limits = {"messages": "max_tokens", "chat": "max_completion_tokens"}
    for api, limit in limits.items():
        mind = Mind([call("look_up")], [cut], otherwise=KNOWN)
        with thinking_upstream(mind) as (_, tee), proxy(tmp_path / api, tee.url, layers=("1",)) as url:
            client = Client(api, url, system=LONG_SYSTEM, extra={limit: 1_000})
            client.tell(client.says("Which port?"), LONG)
            mind.moves = mind.moves[:1]
            assert client.text(client.says("And now?")) == KNOWN["text"]


def test_the_tools_that_a_response_repeats_are_those_of_the_client(tmp_path: Path) -> None:
    mind = Mind([call("look_up")], [READ], [KNOWN])
    with thinking_upstream(mind) as (_, tee), proxy(tmp_path, tee.url, layers=("1",)) as url:
        for streams in (False, True):
            client = Client("responses", url, streams, system=LONG_SYSTEM)
            answer = client.says(f"Which port? {streams}")
            assert answer["tools"] == client.body()["tools"] and OURS not in client.raw.decode()
            assert client.text(client.tell(answer, LONG)) == KNOWN["text"]
            assert OURS not in client.raw.decode() and OURS in tee.bodies[-1][1].decode()


def test_two_clients_that_say_the_same_have_two_conversations(tmp_path: Path) -> None:
    recorder = Recorder()
    with recorder.running() as to, proxy(tmp_path, to, layers=("1",), markers=False) as url:
        talks = {key: list[dict[str, Any]]([{"role": "user", "content": "Which port?"}]) for key in ("a", "b")}
        sent = dict[str, list[list[Any]]](a=[], b=[])
        for number in range(4):
            block = {"type": "tool_use", "id": f"toolu_long_{number:04}", "name": "Bash", "input": {}}
            recorder.answer = json.dumps(
                {"id": "m", "content": [block], "stop_reason": "tool_use", "usage": {}}
            ).encode()
            for key, talk in talks.items():
                body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "tools": TOOLS, "messages": talk}
                assert post(url, "/v1/messages", body, **{"x-api-key": key})[0] == 200
                sent[key].append(json.loads(recorder.bodies[-1])["messages"])
                told = {"type": "tool_result", "tool_use_id": block["id"], "content": f"{number} {LONG}"}
                talk += [{"role": "assistant", "content": [block]}, {"role": "user", "content": [told]}]
        found = stats(url)
    assert sorted(one["requests"] for one in found["sessions"]) == [4, 4] and len(found["clients"]) == 2
    for requests in sent.values():
        assert all(two[: len(one)] == one for one, two in itertools.pairwise(requests))


def test_a_new_key_begins_afresh_and_a_refusal_makes_no_second_conversation(tmp_path: Path) -> None:
    """Nobody knows whose it is: what came before stays as the client sends it, and may be in the server's cache."""
    recorder = Recorder()
    with recorder.running() as to, proxy(tmp_path, to, layers=("1",)) as url:
        agent = Agent(url)

        def answer(number: int) -> None:
            block = {"type": "tool_use", "id": f"toolu_long_{number}", "name": "Bash", "input": {}}
            recorder.answer = json.dumps({"id": "m", "content": [block], "usage": {"input_tokens": 5}}).encode()

        for number in range(3):
            answer(number)
            agent.step(LONG)
        recorder.status = 529
        for _ in range(3):
            post(url, "/v1/messages", agent.body(), **{"x-api-key": "renewed"})
        recorder.status = 200
        post(url, "/v1/messages", agent.body(), **{"x-api-key": "renewed"})
        assert len(stats(url)["sessions"]) == 2 and len(list(tmp_path.rglob("proxy-*.jsonl"))) == 2
    again = recorder.bodies[3:]
    assert all(one == again[0] for one in again)
    sent = [one["content"][0]["content"] for one in json.loads(again[0])["messages"] if "tool_result" in str(one)]
    assert sent[:2] == [LONG, LONG] and "persisted" in sent[2]
