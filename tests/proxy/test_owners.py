"""Everything that the proxy keeps belongs to the client whose credentials brought it: nothing of it is found with other
ones, in no form of a request, on no page, and after no restart."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.proxy.proxied import TOOLS, Recorder, get, post, proxy, stats
from tests.proxy.reader import LONG, LONG_SYSTEM, NEEDLE, OURS, Client, Mind, call, say, thinking_upstream
from tests.proxy.users import needs_root, run_as

SECRET = "what only Alice knows: 4711. "
KNOWN = say("An answer that is long enough to be recognised by its words, whoever gives it back to the server.")
ASKED = {"model": "claude-sonnet-4-5", "max_tokens": 9, "tools": TOOLS}


def talk(url: str, recorder: Recorder, rounds: int, path: str = "/v1/messages", **headers: str) -> list[Any]:
    """One conversation, with the same words and calls for everybody; returns its messages as they were sent."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Which port?"}]
    for number in range(rounds):
        block = {"type": "tool_use", "id": f"toolu_long_{number:04}", "name": "Bash", "input": {}}
        answered = {"id": "m", "content": [block], "stop_reason": "tool_use", "usage": {"input_tokens": 5}}
        recorder.answer = json.dumps(answered).encode()
        assert post(url, path, {**ASKED, "messages": messages}, **headers)[0] == 200
        told = {"type": "tool_result", "tool_use_id": block["id"], "content": f"{number} {LONG}"}
        messages += [{"role": "assistant", "content": [block]}, {"role": "user", "content": [told]}]
    return json.loads(recorder.bodies[-1])["messages"]


def files_of(home: Path, name: str) -> list[Path]:
    """The transcript of a conversation, and all files beside it."""
    return [path for path in home.rglob("*") if path.is_file() and name in str(path)]


def test_who_continues_the_words_of_another_client_gets_nothing_that_was_kept(tmp_path: Path) -> None:
    mind = Mind([call("look_up")], [KNOWN], [call("look_up")], [say("Thanks.")])
    with thinking_upstream(mind) as (_, tee), proxy(tmp_path, tee.url, layers=("1",)) as url:
        alice = Client("messages", url, system=LONG_SYSTEM, headers={"x-api-key": "alice"})
        alice.tell(alice.says("Which port?"), LONG)
        start = json.loads(json.dumps(alice.history))
        alice.tell(alice.says("Then this."), SECRET * 3_000)
        theirs = {one["id"] for one in stats(url)["sessions"]}
        sent = len(tee.bodies)
        for length in (len(start), 1):  # all that Alice said, and only the beginning
            bob = Client("messages", url, system=LONG_SYSTEM, headers={"x-api-key": "bob"}, history=start[:length])
            if length > 1:
                bob.says("And now something else, please.")
            else:
                bob.ask()
        own = [one for one in stats(url)["sessions"] if one["id"] not in theirs]
        assert len(stats(url)["clients"]) == 2 and all(one["client"] not in theirs for one in own)
    assert all("4711. what" not in body.decode() for _, body in tee.bodies[sent:])
    for one in own:
        assert not [path for path in files_of(tmp_path, one["id"]) if SECRET.encode() in path.read_bytes()]
    first = next(
        one for one in json.loads(tee.bodies[sent][1])["messages"] if "toolu_long" in json.dumps(one["content"])
    )
    assert first == start[1], "no result, no call and no answer that the proxy added"


CREDENTIALS: list[tuple[Mapping[str, str], Mapping[str, str]]] = [
    ({"x-api-key": "a"}, {"x-api-key": "b"}),
    ({"authorization": "Bearer a"}, {"authorization": "Bearer b"}),
    ({"authorization": "Basic YTph"}, {"authorization": "Basic YTpi"}),
    ({"proxy-authorization": "Bearer a"}, {"proxy-authorization": "Bearer b"}),
    ({"api-key": "a"}, {"api-key": "b"}),
    ({"x-goog-api-key": "a"}, {"x-goog-api-key": "b"}),
    ({"cookie": "session=a"}, {"cookie": "session=b"}),
    ({"cf-aig-authorization": "a"}, {"cf-aig-authorization": "b"}),
    ({"X-Auth-Token": "a"}, {"X-Auth-Token": "b"}),
    ({"ocp-apim-subscription-key": "a"}, {"ocp-apim-subscription-key": "b"}),
    ({"x-api-key": "a"}, {"authorization": "a"}),
    ({"x-api-key": ""}, {"x-api-key": "a"}),
    ({"path": "/v1/messages?key=a"}, {"path": "/v1/messages?key=b"}),
    ({"path": "/v1/messages?api%5Fkey=a"}, {"path": "/v1/messages?api%5Fkey=b"}),
    ({"path": "/v1/messages?a"}, {"path": "/v1/messages?b"}),
    ({"path": "/v1/messages?a=1;key=a"}, {"path": "/v1/messages?a=1;key=b"}),
]


@pytest.mark.parametrize(("one", "other"), CREDENTIALS, ids=lambda given: str(given))
def test_other_credentials_in_any_form_are_another_client(
    tmp_path: Path, one: Mapping[str, str], other: Mapping[str, str]
) -> None:
    recorder = Recorder()
    with recorder.running() as to:
        for number in range(2):  # a restart does not change whose something is
            with proxy(tmp_path, to, layers=("1",), markers=False) as url:
                for headers in (one, other):
                    talk(
                        url,
                        recorder,
                        2,
                        **headers,
                        **{"user-agent": f"agent/{number}", "x-request-id": os.urandom(9).hex()},
                    )
        with proxy(tmp_path, to) as url:
            found = stats(url)
    assert len(found["clients"]) == 2, "two clients, whatever else their requests have"
    assert {client["sessions"] for client in found["clients"].values()} == {1} or len(found["sessions"]) == 4
    names = {client: [one["id"] for one in found["sessions"] if one["client"] == client] for client in found["clients"]}
    for client, own in names.items():
        assert all(client[:8] in name for name in own), "the name of a session begins with its client"


def test_a_history_that_the_server_keeps_is_found_by_its_own_client_only(tmp_path: Path) -> None:
    mind = Mind([say("Hm."), call(OURS)], [say("Hello."), call("look_up")], [say("Done.")])
    with thinking_upstream(mind) as (_, tee), proxy(tmp_path, tee.url) as url:
        alice = Client("responses", url, system=LONG_SYSTEM, extra={"store": True}, headers={"x-api-key": "alice"})
        first = alice.says(f"Which port? {SECRET}")
        assert OURS in tee.bodies[-1][1].decode(), "Alice has our tool, and a hidden round"
        last = json.loads(tee.bodies[-1][1])
        body = {**alice.body(), "input": [{"role": "user", "content": "Go on."}], "previous_response_id": first["id"]}
        post(url, "/v1/responses", body, authorization="Bearer x", **{"x-api-key": "bob"})
        sent = json.loads(tee.bodies[-1][1])
        assert sent == body, "byte by byte what Bob asked for: no tool, no result, no other id"
        post(url, "/v1/responses", body, authorization="Bearer x", **{"x-api-key": "alice"})
        assert json.loads(tee.bodies[-1][1]) != body and last["tools"][-1]["name"] == OURS


@pytest.mark.parametrize("api", ["messages", "chat", "responses"])
def test_kept_results_have_ids_and_no_path_reads_anything(tmp_path: Path, api: str) -> None:
    """A path of one's own, of another one, and every way to write one."""
    with thinking_upstream(Mind([call("look_up")], [say("Hm.")])) as (_, tee), proxy(tmp_path, tee.url) as url:
        alice = Client(api, url, headers={"x-api-key": "alice"})
        alice.tell(alice.says("Which port?"), SECRET + LONG)
    (theirs,) = tmp_path.rglob("tool-results/*")
    (transcript,) = tmp_path.rglob("proxy-*.jsonl")
    mind = Mind([call("look_up")], [say("Hm.")])
    with thinking_upstream(mind) as (_, tee), proxy(tmp_path, tee.url) as url:
        extra = {"max_tokens": 30_000} if api == "messages" else {}
        bob = Client(api, url, headers={"x-api-key": "bob"}, extra=extra)
        bob.tell(bob.says("Which port?"), LONG)
        (own,) = set(tmp_path.rglob("tool-results/*")) - {theirs}
        assert str(tmp_path) not in json.dumps(json.loads(tee.bodies[-1][1])), "no path is shown"
        forms = [
            *(str(path) + end for path in (theirs, own, transcript) for end in ("", "/", "/.", "//", "\0")),
            *(f"{up}{theirs.relative_to(theirs.parents[2])}" for up in ("../", "./", "../../", "")),
            *(f"{own.name}{end}" for end in ("/", "/.", " ", "\0", "/..")),
            *(f"./{own.name}", f"..//{own.name}", f"{own.parent.name}/{own.name}", f"{transcript.stem}/{theirs.name}"),
            *(transcript.name, transcript.name + "/", "", ".", "..", "*", "/" * 500),
        ]
        reads = [{**call(OURS), "input": {"id": "", key: form}} for form in forms for key in ("id", "path")]
        reads.append({**call(OURS), "input": {"id": own.name}})
        mind.moves = (*mind.moves, reads)
        bob.says("Read all of that.")
    assert len(mind.results) == len(reads)
    assert [text for text in mind.results if "Nothing was read" not in text] == [mind.results[-1]]
    assert mind.results[-1].endswith(NEEDLE) and SECRET not in json.dumps(mind.results)


def test_stats_show_a_client_what_is_its_own(tmp_path: Path) -> None:
    recorder = Recorder()
    far = {"x-forwarded-for": "10.9.8.7"}
    with recorder.running() as to, proxy(tmp_path, to) as url:
        talk(url, recorder, 1, **far, **{"x-api-key": "alice"})
        talk(url, recorder, 1, **far, **{"x-api-key": "bob"})
        everything = stats(url)
        seen = {key: json.loads(get(url, "/reverie/stats", **far, **{"x-api-key": key})[1]) for key in ("alice", "eve")}
    assert everything["total"]["requests"] == 2 and everything["upstreams"]
    assert seen["alice"]["total"]["requests"] == 1 and len(seen["alice"]["clients"]) == 1
    assert seen["eve"]["total"]["requests"] == 0 and seen["eve"]["sessions"] == [] and seen["eve"]["clients"] == {}
    assert all("upstreams" not in one and "failures" not in one for one in seen.values())


@needs_root
def test_users_of_the_machine_with_the_same_key_are_two_clients(tmp_path: Path) -> None:
    """Local servers ask for no key, so all their clients send the same one, or none."""
    recorder = Recorder()
    recorder.answer = json.dumps({"id": "m", "content": [KNOWN], "usage": {"input_tokens": 5}}).encode()
    with recorder.running() as to, proxy(tmp_path, to) as url:
        body = {**ASKED, "messages": [{"role": "user", "content": "Which port?"}]}
        for user in (54_321, 54_322):
            run_as(user, lambda: post(url, "/v1/messages", body))
        found = stats(url)
    assert len(found["clients"]) == len(found["sessions"]) == 2


def test_the_key_behind_the_names_is_private(tmp_path: Path) -> None:
    recorder = Recorder()
    with recorder.running() as to, proxy(tmp_path, to) as url:
        talk(url, recorder, 1)
    key = tmp_path / "proxy" / "names.key"
    assert key.stat().st_mode & 0o777 == 0o600 and len(key.read_text()) > 32
    key.unlink()
    with recorder.running() as to, proxy(tmp_path, to) as url:
        talk(url, recorder, 1)
        assert len(stats(url)["clients"]) == 2, "without it, nobody can say whose anything was"
