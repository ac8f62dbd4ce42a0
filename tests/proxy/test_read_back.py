"""The tool of the proxy: clients without a file tool get copies read back, and see nothing of it."""

from __future__ import annotations

import json
import queue
import socket
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from reverie.simulator.errors import ApiError
from reverie.simulator.responder import Reply
from tests.proxy.proxied import Recorder, proxy, stats
from tests.proxy.reader import (
    LONG,
    LONG_SYSTEM,
    NEEDLE,
    OURS,
    READ,
    Client,
    Mind,
    assert_one_prefix,
    call,
    say,
    sent,
    thinking_upstream,
)
from tests.proxy.wild import has_left, wild
from tests.waiting import LIMIT_S

APIS = ("messages", "chat", "responses")
ALL = [(api, streams) for api in APIS for streams in (False, True)]
LATER = [
    say(f"Answer {number} to a later question, which is long enough to be known again by its words alone.")
    for number in range(5)
]
MOVES = ([call("look_up", what="port")], [say("Let me see."), READ], [READ], [say(f"Now I know: {NEEDLE}.")])


def key_of(api: str) -> str:
    return "input" if api == "responses" else "messages"


def later(api: str, streams: bool) -> int:
    return 5 if (api, streams) == ("messages", True) else 1


def test_a_copy_is_read_back_unseen_and_the_server_sees_one_growing_prompt(tmp_path: Path) -> None:
    mind = Mind(*MOVES, *([one] for one in LATER))
    with thinking_upstream(mind) as (_, tee), proxy(tmp_path, tee.url, layers=("1",)) as url:
        for api, streams in ALL:
            client = Client(api, url, streams)
            mind.results.clear()
            answer = client.tell(client.says(f"{api} {streams}: which port?"), LONG)
            assert client.calls(answer) == [] and OURS not in json.dumps(client.history)
            assert client.text(answer).replace("\n\n", "") == f"Let me see.Now I know: {NEEDLE}."
            if streams:
                assert_one_stream(api, client.raw)
            assert [NEEDLE in text for text in mind.results] == [True, True]
            for number in range(later(api, streams)):
                assert client.text(client.says(f"And {number}?")) == LATER[number]["text"]
        found = stats(url)
    assert (found["total"]["requests"], found["total"]["rounds"], found["total"]["reads"]) == (6 * 2 + 5 + 5, 12, 12)
    assert found["failures"] == {} and len(found["sessions"]) == 6
    for api, streams in ALL:
        bodies = sent(tee, f"{api} {streams}")
        assert len(bodies) == 4 + later(api, streams)
        assert_one_prefix(bodies, key_of(api))
        assert LONG not in json.dumps(bodies[-1]), "the result is on disk"


def assert_one_stream(api: str, raw: bytes) -> None:
    events = [json.loads(line[6:]) for line in raw.decode().splitlines() if line.startswith("data: {")]
    kinds = [str(one.get("type")) for one in events]
    if api == "messages":
        assert kinds.count("message_start") == kinds.count("message_stop") == kinds.count("message_delta") == 1
        assert [one["index"] for one in events if one["type"] == "content_block_start"] == [0, 1]
        assert len(events[-2]["usage"]["iterations"]) == 3
    elif api == "chat":
        assert len({one["id"] for one in events}) == 1 and raw.count(b"[DONE]") == 1
        assert [one["choices"][0]["finish_reason"] for one in events if one["choices"]][-1] == "stop"
        assert sum(bool(one["choices"]) and "role" in one["choices"][0]["delta"] for one in events) == 1
        assert sum(one.get("usage") is not None for one in events) == 1
    else:
        assert [one["sequence_number"] for one in events] == list(range(len(events)))
        assert kinds.count("response.created") == kinds.count("response.completed") == 1
        assert [one["output_index"] for one in events if one["type"] == "response.output_item.added"] == [0, 1]


def test_our_call_beside_calls_of_the_client_comes_back_with_its_result(tmp_path: Path) -> None:
    mind = Mind(
        [call("look_up", what="port")],
        [say("Both."), call("look_up", what="a"), READ, call("open_ticket", what="b")],
        [say("Two, and " + NEEDLE)],
        [LATER[0]],
    )
    clients = {api: Client(api, streams=True) for api in APIS}
    with thinking_upstream(mind) as (_, tee):

        def step(*results: str) -> None:
            with proxy(tmp_path, tee.url) as url:  # each time another one
                for api, client in clients.items():
                    client.url = url
                    answers[api] = client.tell(answers[api], *results) if results else client.says(f"{api}: go on.")

        answers: dict[str, dict[str, Any]] = {}
        step()
        step(LONG)
        for api, client in clients.items():
            assert [name for _, name in client.calls(answers[api])] == ["look_up", "open_ticket"]
        step("result a", "result b")
        for api, client in clients.items():
            assert client.text(answers[api]) == "Two, and " + NEEDLE
        step()
        with proxy(tmp_path, tee.url) as url:
            found = stats(url)
    assert NEEDLE in mind.results[0] and len(mind.results) == 3
    assert (found["total"]["requests"], found["total"]["rounds"]) == (12, 0) and found["failures"] == {}
    for api in APIS:
        bodies = sent(tee, f"{api}: go on.")
        assert len(bodies) == 4
        assert_one_prefix(bodies, key_of(api))


def test_a_branch_and_a_completed_call_have_the_hidden_rounds(tmp_path: Path) -> None:
    """The model thinks between calls. The client completes its own call, as Claude Code does, and goes back once."""
    thought = {"type": "thinking", "thinking": "I must look.", "signature": "c2lnbmVk"}
    moves = (MOVES[0], [thought, READ], [thought, say("So."), call("look_up", what="b")], [LATER[0]])
    mind = Mind(*moves, [thought, READ], [LATER[1]])
    with thinking_upstream(mind) as (_, tee), proxy(tmp_path, tee.url) as url:
        client = Client("messages", url, True, extra={"thinking": {"type": "enabled", "budget_tokens": 1_024}})
        answer = client.tell(client.says("Which port?"), LONG)
        assert [one["type"] for one in answer["content"]] == ["thinking", "thinking", "text", "tool_use"]
        client.history[-1]["content"][-1]["input"]["limit"] = 5
        client.tell(answer, "short")
        other = Client("messages", url, True, extra=client.extra, history=json.loads(json.dumps(client.history)))
        client.says("And now?")
        assert other.text(other.says("Or else?")) == LATER[1]["text"]
        assert [NEEDLE in text for text in mind.results] == [True] * 3, "also by a branch"
        assert len(stats(url)["sessions"]) == 2 and stats(url)["failures"] == {}
    bodies = sent(tee)
    assert_one_prefix(bodies[:6], "messages")
    assert_one_prefix([*bodies[:4], *bodies[6:]], "messages")
    assert bodies[4]["messages"][3]["content"][0] == thought
    assert {"limit": 5} not in [one.get("input") for one in bodies[4]["messages"][5]["content"]]


def test_a_round_that_the_server_refuses_is_an_error_and_can_be_asked_again(tmp_path: Path) -> None:
    class Once(Mind):
        refused: tuple[str, ...] = ()

        async def reply(self, body: Mapping[str, Any], *, purpose: str = "main") -> Reply:
            made, prompt = await super().reply(body, purpose=purpose), json.dumps(body["messages"][0])
            if made.content == MOVES[3] and prompt not in self.refused:
                self.refused += (prompt,)
                raise ApiError(529, "later")
            return made

    told = {"messages": b"event: error", "chat": b'data: {"error"', "responses": b"response.failed"}
    ways = [*((api, True) for api in APIS), ("messages", False)]
    with thinking_upstream(Once(*MOVES)) as (_, tee), proxy(tmp_path, tee.url) as url:
        for api, streams in ways:
            client = Client(api, url, streams)
            answer = client.says(f"{api} {streams}: which port?")
            before = json.loads(json.dumps(client.history))
            with pytest.raises(AssertionError):
                client.tell(answer, LONG)
            assert client.status == (200 if streams else 529) and b"later" in client.raw
            assert not streams or told[api] in client.raw
            client.history = before
            assert NEEDLE in client.text(client.tell(answer, LONG))
        assert len(stats(url)["sessions"]) == 4
    for api, streams in ways:
        bodies = sent(tee, f"{api} {streams}")
        assert bodies[1] == bodies[4], "the same bytes as before"
        assert_one_prefix(bodies[4:], key_of(api), adds=False)


def test_paths_of_others_are_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text(NEEDLE)
    with ExitStack() as stack:
        mind = Mind(MOVES[0], [READ], [say("One.")])
        _, tee = stack.enter_context(thinking_upstream(mind))
        url = stack.enter_context(proxy(tmp_path / "home", tee.url))
        client = Client("messages", url)
        client.tell(client.says("Which port?"), LONG)
        (copy,) = (tmp_path / "home").glob("projects/*/*/tool-results/*")
        link = copy.with_name("link.txt")
        link.symlink_to(secret)
        wanted = [str(secret), str(copy), str(copy.parent / ".." / ".." / ".." / "x"), str(link), "", "\0", "/" * 5_000]
        bad = Mind(*([call(OURS, path=path, offset="x")] for path in wanted), [say("Nothing.")])
        _, tee = stack.enter_context(thinking_upstream(bad))
        url = stack.enter_context(proxy(tmp_path / "home", tee.url))
        assert client.text(Client("messages", url, system=LONG_SYSTEM).says("Which port?")) == "Nothing."
        assert stats(url)["failures"] == {}
    assert len(bad.results) == len(wanted)
    assert all(
        "is not a kept result of this conversation" in text or "Nothing was read" in text for text in bad.results
    )
    assert NEEDLE not in json.dumps(bad.results)


def test_what_cannot_be_kept_is_counted_and_the_client_has_its_answer(tmp_path: Path) -> None:
    mind = Mind(MOVES[0], MOVES[0], [READ], [LATER[0]])
    with thinking_upstream(mind) as (_, tee), proxy(tmp_path, tee.url) as url:
        client = Client("messages", url, True)
        answer = client.tell(client.says("Which port?"), LONG)
        (folder,) = tmp_path.glob("projects/*/proxy-*/")
        (folder / "hidden").write_text("in the way")
        assert client.text(client.tell(answer, "short")) == LATER[0]["text"]
        assert client.text(client.says("And?")) == LATER[0]["text"], "its history has no hidden round"
        assert stats(url)["failures"] == {"answer_not_recorded": 1} and len(stats(url)["sessions"]) == 1


def test_a_model_that_only_reads_comes_to_an_end(tmp_path: Path) -> None:
    mind = Mind(MOVES[0], *([READ] for _ in range(9)), [LATER[0]])
    with thinking_upstream(mind) as (_, tee), proxy(tmp_path, tee.url) as url:
        client = Client("messages", url, True)
        answer = client.tell(client.says("Which port?"), LONG)
        assert (answer["stop_reason"], answer["content"]) == ("end_turn", [])
        assert client.text(client.says("Well?")) == LATER[0]["text"]
        assert stats(url)["total"]["rounds"] == 8
    bodies = sent(tee)
    assert_one_prefix(bodies, "messages")
    assert "often enough" in json.dumps(bodies[-1])


def test_who_gets_the_tool(tmp_path: Path) -> None:
    def tools() -> list[list[str]]:
        return [[one["name"] for one in json.loads(body).get("tools", [])] for body in recorder.bodies]

    recorder = Recorder()
    recorder.answer = b'{"id": "m", "content": [{"type": "text", "text": "hello"}], "usage": {}}'
    with recorder.running() as to, proxy(tmp_path, to) as url:
        for names in (("Bash", "look_up"), ("mcp__files__read_file",), (), ("look_up", OURS), ("category_search",)):
            Client("messages", url, tools=names, system=LONG_SYSTEM).says(f"With {names}")
        known = Client("messages", url, tools=("look_up",), system=LONG_SYSTEM)
        known.history = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
        known.says("A client that began without the proxy.")
        far = Client("messages", url, tools=("Bash",), system=LONG_SYSTEM, headers={"x-forwarded-for": "10.0.0.9"})
        far.says("A client that cannot read files of this machine.")
        assert tools() == [
            ["Bash", "look_up"],
            ["mcp__files__read_file"],
            [],
            ["look_up", OURS, f"{OURS}_2"],
            ["category_search", OURS],
            ["look_up"],
            ["Bash", OURS],
        ]


def test_the_tool_comes_with_the_first_result_that_pays_for_it(tmp_path: Path) -> None:
    def has_tool(*texts: str) -> list[bool]:
        mind = Mind(*([call("look_up", n=n)] for n, _ in enumerate(texts)), [say("Done.")])
        with thinking_upstream(mind) as (_, tee), proxy(tmp_path, tee.url) as url:
            client = Client("messages", url)
            answer = client.says("Which port?")
            for text in texts:
                answer = client.tell(answer, text)
                assert stats(url)["total"]["ratio"] <= 1.0, "also if the conversation ends here"
            breaks = [one["breaks"] for one in stats(url)["sessions"]]
        found = [OURS in json.dumps(one["tools"]) for one in sent(tee)]
        assert breaks[0] == ({"header": 1} if any(found) else {})
        return found

    assert has_tool("short", LONG, "short") == [False, False, True, True]
    assert has_tool("x" * 49_000, "y" * 49_000, LONG) == [False] * 4, "what is cached is worth more than the result"


def test_a_client_that_leaves_ends_a_hidden_round(tmp_path: Path) -> None:
    seen, first_answered = queue.Queue[bool](), threading.Event()
    again = threading.Event()
    content = [{"type": "tool_use", "id": "toolu_long_0001", "name": OURS, "input": {"path": "/x"}}]
    first = json.dumps({"id": "m", "content": content, "stop_reason": "tool_use", "usage": {}}).encode()
    head = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"

    def reply(line: socket.socket) -> None:
        if not first_answered.is_set():
            first_answered.set()
            line.sendall(head % len(first) + first)
            return
        again.set()
        seen.put(has_left(line))

    with wild(reply) as to, proxy(tmp_path, to) as url:
        client = Client("messages", url, system=LONG_SYSTEM)
        client.history = [{"role": "user", "content": [{"type": "text", "text": "Hi."}]}]
        raw = json.dumps(client.body()).encode()
        line = socket.create_connection((urlsplit(url).hostname, urlsplit(url).port))
        line.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: %d\r\n\r\n%s" % (len(raw), raw))
        assert again.wait(LIMIT_S)
        line.close()
        assert seen.get(timeout=LIMIT_S)


def test_a_history_that_the_server_keeps_goes_on_after_the_last_round(tmp_path: Path) -> None:
    mind = Mind([say("Hm."), READ], [call("look_up", what="a"), READ], [say("Done.")])
    with thinking_upstream(mind) as (_, tee), proxy(tmp_path, tee.url) as url:
        client = Client("responses", url, True, system=LONG_SYSTEM, extra={"store": True})
        first = client.says("Which port?")
        assert [name for _, name in client.calls(first)] == ["look_up"]
        client.history.clear()
        client.extra["previous_response_id"] = first["id"]
        assert client.text(client.tell(first, "short")) == "Done."
        assert stats(url)["failures"] == {} and len(stats(url)["sessions"]) == 1
    bodies = sent(tee)
    assert [one["call_id"] for one in bodies[-1]["input"]] == ["toolu_long_0001_1", "toolu_long_0001_0"]
    assert bodies[-1]["tools"] == bodies[0]["tools"] and bodies[0]["tools"][-1]["name"] == OURS


def test_a_model_that_reads_everything_again_gets_new_results_whole(tmp_path: Path) -> None:
    class Thorough(Mind):
        """Reads each copy in three parts, before it looks further."""

        async def reply(self, body: Mapping[str, Any], *, purpose: str = "main") -> Reply:
            said = [block for message in body["messages"] for block in message["content"]]
            calls = [block for block in said if block["type"] == "tool_use"]
            looked = sum(one["name"] == "look_up" for one in calls)
            last = max((at for at, one in enumerate(calls) if one["name"] == "look_up"), default=0)
            shown = [block["content"] for block in said if block["type"] == "tool_result"]
            made = READ if looked and "<persisted" in shown[last] and len(calls) - last <= 3 else call("look_up")
            made = say("Done.") if looked == 5 and made is not READ else made
            part = call(OURS, offset=(len(calls) - last - 1) * 20_000) if made is READ else made
            block = self._block(part, len(calls), 0, body)
            return Reply([block], "tool_use" if block["type"] == "tool_use" else "end_turn")

    with thinking_upstream(Thorough()) as (_, tee), proxy(tmp_path, tee.url) as url:
        client = Client("messages", url)
        answer = client.says("Look at all parts.")
        for number in range(5):
            answer = client.tell(answer, f"part {number}\n{LONG}")
        found = stats(url)["total"]
    assert client.text(answer) == "Done." and found["rounds"] == 3, "only the first one is taken out"
    assert 1.01 < found["ratio"] < 1.1
    assert sent(tee)[-1]["messages"][-1]["content"][0]["content"].startswith("part 4")


def test_the_bill_is_smaller_than_directly(tmp_path: Path) -> None:
    moves = [[say(f"Part {n}."), call("look_up", part=n)] for n in range(6)]
    moves = [*moves[:3], [READ], *moves[3:], [say("Done.")]]

    def run(url: str) -> None:
        client = Client("messages", url)
        answer = client.says("Look at all parts.")
        for number in range(6):
            answer = client.tell(answer, f"part {number}\n{LONG}")
        assert client.text(answer).endswith("Done.")

    with thinking_upstream(Mind(*(move for move in moves if READ not in move))) as (direct, tee):
        run(tee.url)
    with thinking_upstream(Mind(*moves)) as (server, tee), proxy(tmp_path, tee.url) as url:
        run(url)
        found = stats(url)["total"]
    paid, expected = (one.ledger.totals()["cost_usd"] for one in (server, direct))
    assert found["paid"] == pytest.approx(paid) and paid < 0.4 * expected
    assert found["direct"] == pytest.approx(expected, rel=1e-6)
