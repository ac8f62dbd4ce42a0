"""What files and addresses of strangers may contain: no page fails, and no other page with it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from reverie.cli.dream.display import Trail
from reverie.layers.l6_dreaming.proposal import ProposedChange
from reverie.paths import slug
from tests.web.recorded import answer, open_log, result, user, write_session
from tests.web.served import Browser, served

_LONG = "a" * 300
_STRANGE = "0d1c2b3a-0000-4000-8000-00000000000f"


def _write_strange(home: Path, cwd: Path) -> None:
    """A session of somebody else: every field that pages use has a value that makes no sense."""
    usage = {"input_tokens": 10**400, "output_tokens": -5, "cache_creation": {"ephemeral_1h_input_tokens": 10**30}}
    call = {"type": "tool_use", "id": "c\ud800" + "x" * 5_000, "name": "T" * 100_000, "input": {"k\ud800" * 9: "v"}}
    found = {"type": "tool_result", "tool_use_id": call["id"], "content": "half \ud800 of a pair"}
    records = [
        {"type": "user", "message": {"role": "user", "content": "{{7*7}} <script>alert(1)</script>"}},
        {"type": "assistant", "message": {"id": "m1", "role": "assistant", "usage": usage, "content": [call]}},
        {"type": "user", "message": {"role": "user", "content": [found]}},
    ]
    base = {"sessionId": _STRANGE, "cwd": "/" + _LONG, "gitBranch": "b" * 100_000, "timestamp": "9" * 100_000}
    lines = [
        json.dumps({**base, **one, "uuid": f"u{at}", "parentUuid": f"u{at - 1}" if at else None})
        for at, one in enumerate(records)
    ]
    (home / "projects" / slug(cwd) / f"{_STRANGE}.jsonl").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Generator[Browser]:
    base = tmp_path_factory.mktemp("hostile")
    home, cwd = base / "home", base / "work"
    cwd.mkdir()
    write_session(home, cwd)
    _write_strange(home, cwd)
    other = home / "projects" / os.fsdecode(b"bad\xffname") / "memory"
    other.mkdir(parents=True)
    (other / "a.md").write_text("---\nname: a\ntype: user\n---\nA memory.\n")
    costs = {"type": "system", "subtype": "fork_usage", "uuid": "z", "parentUuid": None, "sessionId": "only-costs"}
    (home / "projects" / slug(cwd) / "only-costs.jsonl").write_text(json.dumps(costs) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REVERIE_HOME", str(home))
        patch.setenv("HOME", str(base))
        with served(cwd) as found:
            yield found


def test_one_strange_file_does_not_take_other_pages_with_it(browser: Browser) -> None:
    for path in ("/", "/sessions", "/memory", "/dreams", "/inbox"):
        assert browser.get(path).status == 200, path
    for path in ("", "/window", "/money", "/notes"):
        text = browser.get(f"/sessions/{_STRANGE}{path}").text
        assert "<script>alert" not in text and len(text) < 400_000, path
        assert browser.get(f"/sessions/{_STRANGE}{path}").status == 200, path
    deadline = time.monotonic() + 10
    while (counted := browser.json("/sessions")["counted"])["read"] < counted["total"]:
        assert time.monotonic() < deadline, counted
        time.sleep(0.02)
    deadline = time.monotonic() + 10
    while browser.json("/money").get("reading"):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert browser.get("/money").status == browser.get("/money/health").status == 200


def test_a_file_without_a_conversation_is_no_session(browser: Browser) -> None:
    assert "only-costs" not in {one["id"] for one in browser.json("/sessions")["sessions"]}


@pytest.mark.parametrize(
    "path",
    [
        f"/memory?project={_LONG}",
        f"/memory/{_LONG}/a.md",
        f"/sessions?project={_LONG}",
        f"/dreams?project={_LONG}",
        f"/sessions/{_STRANGE}/images/call.c1.{'9' * 5_000}",
        "/?part=main",
        "/?part=__class__",
    ],
    ids=lambda path: path.split("?")[0][:20],
)
def test_addresses_that_name_nothing_are_not_found(browser: Browser, path: str) -> None:
    assert browser.get(path).status == 404


def test_a_form_with_too_many_fields_is_refused(browser: Browser) -> None:
    answer = browser.post("/memory/x/undo", {f"f{number}": "" for number in range(20_001)})
    assert (answer.status, "20,000 fields" in answer.text) == (413, True)


def test_sessions_are_in_the_order_of_their_last_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path / "home"))
    for number in (1, 2):
        log = open_log(tmp_path / "home", tmp_path, f"0d1c2b3a-0000-4000-8000-00000000000{number}")
        log.append_message(user(f"Question {number}"))
        log.append_message(answer("m1", "Yes."))
        log.append_message(result("none", "nothing"))
        log.close()
        time.sleep(0.01)
    first = next((tmp_path / "home" / "projects").glob("*/*1.jsonl"))
    os.utime(first, (time.time() + 60, time.time() + 60))  # as if it were imported just now
    with served(tmp_path) as browser:
        assert [one["title"] for one in browser.json("/overview")["sessions"]] == ["Question 2", "Question 1"]


def test_a_ticket_opens_one_browser_once(browser: Browser) -> None:
    given = Browser(browser.port, browser.token)
    assert given.post("/api/ticket", {}).status == 401
    made = given.post("/api/ticket", {}, authorization=f"Bearer {browser.token}").json["ticket"]
    first, second = Browser(browser.port, made), Browser(browser.port, made)
    assert first.enter().get("/memory").status == 200
    assert second.get(f"/?token={made}").status == 401
    assert first.get(f"/memory?token={made}").headers["location"] == "/memory"  # from the history of the same browser
    assert second.get("/api/about", authorization=f"Bearer {made}").status == 401


def test_a_page_of_another_local_server_may_link_but_not_load(browser: Browser) -> None:
    for mode, status in (("no-cors", 403), ("cors", 403), ("navigate", 200)):
        assert browser.get("/memory", **{"sec-fetch-site": "same-site", "sec-fetch-mode": mode}).status == status


def test_a_moved_line_comes_from_the_topic_file_not_from_the_index() -> None:
    line = "The staging database is called shop-stage and lives in Dublin"
    changes = [
        ProposedChange("MEMORY.md", f"- [Stage](b.md) — {line}\n", "", ""),
        ProposedChange("a.md", "Deploys go through argocd.\n", f"{line}\n", ""),
        ProposedChange("b.md", f"{line}\n", None, ""),
    ]
    assert Trail(changes).describe(f"+{line}", "a.md") == "← b.md"
