"""The list of sessions and the reader, over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Generator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from reverie.settings import load_settings
from reverie.storage.lease import Lease
from reverie.types import ToolUseBlock
from tests.shared_data import sample
from tests.waiting import LIMIT_S, wait_until
from tests.web.recorded import ID, PNG, answer, open_log, result, user, write_session
from tests.web.served import Browser, served


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return load_settings(tmp_path).places.home


@pytest.fixture
def browser(tmp_path: Path, home: Path) -> Generator[Browser]:
    write_session(home, tmp_path)
    with served(tmp_path) as found:
        yield found


def kinds(items: list[Any], kind: str) -> list[Any]:
    return [item for item in items if item["kind"] == kind]


def parts(items: list[Any], kind: str) -> list[Any]:
    return [part for item in kinds(items, "message") for part in item["parts"] if part["type"] == kind]


def counted(browser: Browser, path: str = "/sessions") -> Any:
    def found() -> Any:
        now = browser.json(path)
        return now if now["counted"]["read"] == now["counted"]["total"] else None

    return wait_until(found)


def test_the_list_has_cost_and_is_sorted_by_it(browser: Browser, home: Path, tmp_path: Path) -> None:
    log = open_log(home, tmp_path, "0d1c2b3a-0000-4000-8000-000000000002")
    log.append_message(user("A dear question"))
    log.append_message(answer("d1", "A dear answer", tokens=900_000))
    log.close()
    found = counted(browser, "/sessions?sort=cost")
    assert [one["title"] for one in found["sessions"]] == ["A dear question", "Why does the lamp blink?"]
    assert found["sessions"][0]["cost_usd"] > found["sessions"][1]["cost_usd"] > 0
    assert [one["source"] for one in found["sessions"]] == ["reverie", "reverie"]
    assert found["sessions"][1]["rounds"] == 6
    page = browser.get("/sessions?sort=cost").text
    assert page.index("A dear question") < page.index("Why does the lamp blink?")
    kept = home / "indexes" / "web-sessions.json"
    wait_until(lambda: kept.exists() and len(json.loads(kept.read_text())["sessions"]) == 2)
    with served(tmp_path) as again:  # figures are kept: a new server has them at once
        assert again.json("/sessions")["counted"] == {"read": 2, "total": 2}


@pytest.mark.parametrize(
    ("query", "hits"),
    [
        ("q=LAMP", 1),
        ("q=cellar", 0),
        ("q=cellar&in=text", 1),
        ("q=the+end+of+the+log&in=text", 1),
        ("q=zzz&in=text", 0),
    ],
)
def test_search_in_titles_and_in_whole_conversations(browser: Browser, query: str, hits: int) -> None:
    counted(browser)
    assert len(browser.json(f"/sessions?{query}")["sessions"]) == hits


def test_the_reader_shows_what_layers_did(browser: Browser) -> None:
    found = browser.json(f"/sessions/{ID}")
    items = found["items"]
    calls = {part["id"]: part for part in parts(items, "call")}
    assert calls["c1"]["result"]["state"] == "cleared"
    assert calls["c1"]["result"]["text"].startswith("def blink()")
    assert calls["c2"]["result"]["state"] == "on disk"
    assert calls["c3"]["agent"] == f"/sessions/{ID}?agent=a1b2"
    assert [part["text"] for part in parts(items, "thinking")] == ["I look at the code first."]
    assert "Hook says hello." in [part["text"] for part in parts(items, "text") if part["label"] == "from a hook"]
    [compaction] = kinds(items, "compaction")
    assert "the fuse must be replaced" in compaction["summary"]["text"]
    assert compaction["survival"]["lost"] == {"paths": ["gone.py"]}
    [branch] = kinds(items, "branch")
    left = browser.json(branch["address"])["items"]
    assert [part["text"] for part in parts(left, "text")] == ["Left behind: paint it red.", "Painted."]
    events = {item["event"]: item for item in kinds(items, "event")}
    assert events["recall"]["links"][0]["address"].endswith("/lamp.md")
    assert {"rewind", "clears", "pin"} <= events.keys()
    assert found["pins"] == [{"id": "p1", "text": "Never touch the mains."}]
    [agent] = found["agents"]
    said = browser.json(agent["address"])["items"][-1]
    assert "behind the shelf" in browser.get(said["here"].partition("#")[0]).text
    assert [one["kind"] for one in found["outline"]] == ["start", "compaction"]
    assert {one["kind"] for one in found["outline"][0]["children"]} == {"branch", "rewind", "agent"}


def test_whole_results_come_from_the_transcript_or_the_disk(browser: Browser) -> None:
    cleared = browser.json(f"/sessions/{ID}/results/c1")
    assert (cleared["state"], cleared["text"].count("line\n")) == ("cleared", 1_000)
    kept = browser.json(f"/sessions/{ID}/results/c2?start=200000")
    assert kept["text"].endswith("the end of the log") and kept["pages"]["previous"] is not None
    assert "<html" not in browser.get(f"/sessions/{ID}/results/c2?part=text").text


def test_a_result_behind_a_link_is_not_read(browser: Browser, home: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("SECRET")
    [path] = home.glob(f"projects/*/{ID}/tool-results/c2.txt")
    path.unlink()
    path.symlink_to(tmp_path / "secret.txt")
    assert "SECRET" not in browser.get(f"/sessions/{ID}/results/c2").text


def test_every_message_has_an_address(browser: Browser) -> None:
    items = browser.json(f"/sessions/{ID}?size=500")["items"]
    last = items[-1]["id"]
    found = browser.json(f"/sessions/{ID}?size=3&at={last}")
    assert found["at"] == last and last in [item["id"] for item in found["items"]]
    assert f'id="message-{last}"' in browser.get(f"/sessions/{ID}?size=3&at={last}").text
    assert browser.get(f"/sessions/{ID}?at=nowhere").status == 404
    assert "Done." in browser.get(f"/sessions/{ID}/messages/{last}").text
    [hit] = browser.json(f"/sessions/{ID}?q=replaced")["items"]
    assert hit["kind"] == "compaction"


def test_foreign_text_is_shown_as_text(browser: Browser) -> None:
    page = browser.get(f"/sessions/{ID}").text
    assert "<script>alert" not in page and "<svg onload" not in page and "\u202e" not in page
    assert "&lt;script&gt;alert(1)" in page and "⟨U+202E⟩" in page


def test_only_raster_pictures_are_served(browser: Browser) -> None:
    pictures = parts(browser.json(f"/sessions/{ID}")["items"], "image")
    assert [bool(one["address"]) for one in pictures] == [True, False]
    connection = HTTPConnection("127.0.0.1", browser.port)
    connection.request("GET", pictures[0]["address"], headers={"authorization": f"Bearer {browser.token}"})
    answered = connection.getresponse()
    assert (answered.headers["content-type"], answered.read()) == ("image/png", PNG)
    svg = pictures[0]["address"].rpartition("/")[0] + "/call.c1.0"
    assert browser.get(svg).status == 404


def test_a_live_session_sends_what_is_new(browser: Browser, home: Path, tmp_path: Path) -> None:
    log = open_log(home, tmp_path, "0d1c2b3a-0000-4000-8000-000000000003")
    log.append_message(user("Count to three"))
    address = f"/sessions/{log.session_id}"
    assert log.path is not None
    with Lease.take(log.path.with_suffix("") / Lease.NAME, info={"session": log.session_id}):
        found = browser.json(address)
        assert found["session"]["open_in"] is not None and found["live"]["state"] == "open"
        connection = HTTPConnection("127.0.0.1", browser.port, timeout=LIMIT_S)
        headers = {"authorization": f"Bearer {browser.token}"}
        connection.request("GET", f"{address}/live?last={found['last']}", headers=headers)
        stream = connection.getresponse()
        assert "open" in _event(stream)
        log.append_message(answer("l1", "One", ToolUseBlock("c9", "Bash", {"command": "seq 3"})))
        text = _event(stream)
        assert 'hx-target="#messages"' in text and "One" in text and "No result was recorded" in text
        log.append_message(result("c9", "three"))
        assert "outerHTML" in (text := _event(stream)) and "three" in text
        connection.close()
    log.close()


def _event(stream: Any) -> str:
    lines = list[str]()
    while (line := stream.readline().decode()) != "\n":
        assert line
        lines.append(line)
    return "".join(lines)


def test_sessions_of_other_agents_are_read(tmp_path: Path, home: Path) -> None:
    from reverie.paths import Places
    from reverie.storage.following.importing import import_file

    places = Places.of(tmp_path, load_settings(tmp_path))
    kinds_of = {"transcripts": "claude-code", "pi-sessions": "pi", "codex-sessions": "codex"}
    made = {import_file(next(sample(one).glob("*.jsonl")), places).session: kind for one, kind in kinds_of.items()}
    with served(tmp_path) as browser:
        assert {one["id"]: one["source"] for one in counted(browser)["sessions"]} == made
        for id in made:
            assert kinds(browser.json(f"/sessions/{id}")["items"], "message")
            assert browser.get(f"/sessions/{id}").status == browser.get(f"/sessions/{id}/notes").status == 200


def test_an_empty_home_says_what_to_do(tmp_path: Path) -> None:
    with served(tmp_path) as browser:
        assert "reverie sessions import" in browser.get("/sessions").text
        assert browser.get("/sessions/../../etc").status == 404
        assert browser.get("/sessions/nobody").status == 404
