"""The map of a window: every request adds up, what left the window stays visible, and a growing session goes on."""

from __future__ import annotations

import re
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from bench.web_home import LONG, write_long_session
from reverie.context.window_fill import fill
from reverie.models.window import thresholds
from reverie.storage.transcript.chain import conversation
from reverie.storage.transcript.file import read_records
from reverie.storage.transcript.records import Clears, ResultDecisions, Rewind
from reverie.storage.transcript.session_log import SessionLog
from reverie.storage.transcript.view import View
from reverie.types import Message, Origin, TextBlock, ToolResultBlock, ToolUseBlock
from reverie.web.readings import Readings, SessionReading
from reverie.web.site import Site
from tests.shared_data import sources
from tests.web.served import Browser, served

HOSTILE = "<script>alert(1)</script>\u202eevil<svg onload=alert(2)>"


@pytest.fixture
def browser(tmp_path: Path) -> Generator[Browser]:
    with served(tmp_path) as found:
        yield found


def projects(cwd: Path) -> Path:
    return Site.open(cwd).here.path


def talk(log: SessionLog, number: int, *, read: int = 0, written: int = 5_000, result: str = "fine") -> None:
    """One round: a question, an answer with a call, and its result."""
    log.append_message(Message("user", (TextBlock(f"Question {number} {HOSTILE}", Origin.TYPED),)))
    usage = {"input_tokens": 3, "cache_read_input_tokens": read, "cache_creation_input_tokens": written}
    fields = {"id": f"msg_{number}", "model": "claude-sonnet-4-5", "usage": {**usage, "output_tokens": 40}}
    call = ToolUseBlock(f"call{number}", "Bash", {"command": "ls"})
    log.append_message(Message("assistant", (TextBlock("I look.", Origin.MODEL), call), fields=fields))
    log.append_message(Message("user", (ToolResultBlock(f"call{number}", result),)))


def session(cwd: Path, name: str = "one") -> SessionLog:
    return SessionLog(projects(cwd) / f"{name}.jsonl", name, cwd=cwd, version="0")


def api(browser: Browser, name: str, query: str = "") -> Any:
    for _ in range(200):
        found = browser.json(f"/sessions/{name}/window{query}")
        if not found["reading"]:
            return found
        time.sleep(0.02)
    raise AssertionError("the session was not read")


@pytest.mark.parametrize("folder", sources("transcripts"))
def test_every_request_adds_up_and_the_last_is_what_context_shows(folder: Path, tmp_path: Path) -> None:
    catalogue = Readings(Site.open(tmp_path)).catalogue
    for path in sorted(folder.glob("*.jsonl"))[:4]:
        reading = SessionReading(path, catalogue)
        reading.catch_up()
        shown = fill(View.of(conversation(read_records(path).records)), thresholds(200_000, 32_000))
        assert (reading.now.shares, reading.now.used) == (shown.shares, shown.used)
        for at in reading.life.requests:
            assert sum(share.tokens for share in at.shares) == at.used
            assert at.usage is None or at.usage.prompt == at.used
        chosen = reading.life.requests[len(reading.life.requests) // 2]
        unknown = sum(share.tokens for share in chosen.shares if share.source == "not_recorded")
        assert sum(block.tokens for block in reading.life.blocks(chosen)) == chosen.used - unknown


def test_cleared_and_offloaded_results_stay_visible(browser: Browser, tmp_path: Path) -> None:
    log = session(tmp_path)
    talk(log, 1, result="the old result " * 300)
    talk(log, 2, read=5_000, result="the large result " * 2_000)
    kept = projects(tmp_path) / "one" / "tool-results" / "call2.txt"
    kept.parent.mkdir(parents=True)
    kept.write_text("the large result " * 2_000)
    log.append(ResultDecisions({"call2": f"It is in {kept}; read that file."}))
    talk(log, 3, read=8_000)
    log.append(Clears("economic", {"call1": "[Cleared to save room]"}, 900))
    talk(log, 4, read=2_000)

    found = api(browser, "one", "?request=4")
    gone = {one["kind"]: one for one in found["selected"]["gone"]}
    assert {kind: one["since"] for kind, one in gone.items()} == {"on disk": 3, "cleared": 4}
    assert all(one["tokens_before"] > 500 for one in gone.values())
    cleared = api(browser, "one", f"?request=4&block={gone['cleared']['number']}&whole=before")["block"]
    assert cleared["text"]["shown"] == "[Cleared to save room]"
    assert cleared["before"]["shown"] == "the old result " * 300
    assert cleared["since"] == 2
    disk = api(browser, "one", f"?request=4&block={gone['on disk']['number']}")["block"]
    assert disk["kept"]["path"] == str(kept)
    assert not disk["kept"]["text"]["is_whole"]
    page = browser.get(f"/sessions/one/window?request=4&block={gone['on disk']['number']}&whole=copy").text
    assert "the large result " * 2_000 in page
    assert api(browser, "one", "?request=2")["selected"]["gone"] == []  # before that, it was in the window


def test_a_session_that_grows_or_turns_back_is_shown_as_it_is(browser: Browser, tmp_path: Path) -> None:
    log = session(tmp_path)
    talk(log, 1)
    head = log.head
    talk(log, 2, read=5_000)
    assert api(browser, "one")["requests"] == 2
    talk(log, 3, read=5_000)
    found = api(browser, "one")
    assert (found["requests"], found["left_out"]) == (3, 0)
    log.append(Rewind(head))
    log.head = head
    talk(log, 4, read=5_000)
    found = api(browser, "one")
    assert (found["requests"], found["left_out"]) == (2, 2)


def test_the_page_steps_through_requests_and_shows_foreign_text_as_text(browser: Browser, tmp_path: Path) -> None:
    log = session(tmp_path)
    for number in range(1, 4):
        talk(log, number, result=HOSTILE)
    api(browser, "one")
    page = browser.get("/sessions/one/window?request=2&block=2").text
    assert 'rel="prev" href="?request=1' in page
    assert 'rel="next" href="?request=3' in page
    assert "<script>alert" not in page
    assert "<svg onload" not in page
    assert "\u202e" not in page
    part = browser.get("/sessions/one/window?request=2&block=2&part=detail").text
    assert part.lstrip().startswith("<div")
    assert "What the model sees" in part
    assert browser.get("/sessions/one/window?block=99").status == 404
    assert browser.get("/sessions/one/window?request=x").status == 400
    assert browser.get("/sessions/none/window").status == 404


def test_a_long_session_has_few_columns_and_every_peak(browser: Browser, tmp_path: Path) -> None:
    write_long_session(projects(tmp_path), tmp_path, 410)
    found = api(browser, LONG)
    assert found["requests"] == 410
    assert len(found["columns"]) <= 400
    life = Readings.of(Site.open(tmp_path)).session(projects(tmp_path) / f"{LONG}.jsonl", 60)
    assert isinstance(life, SessionReading)
    assert max(column["tokens"] for column in found["columns"]) == max(one.used for one in life.life.requests)
    page = browser.get(f"/sessions/{LONG}/window?request=170").text
    assert len(re.findall(r'class="strip', page)) == len(found["columns"])
    assert {one["kind"] for one in found["events"]} == {"compaction", "clearing", "break"}


def test_a_reading_that_takes_long_says_how_far_it_is(tmp_path: Path) -> None:
    write_long_session(projects(tmp_path), tmp_path, 150)
    readings, path = Readings(Site.open(tmp_path)), projects(tmp_path) / f"{LONG}.jsonl"
    first = readings.session(path, 0)
    assert isinstance(first, dict)
    assert 0 <= first["done"] <= first["of"]
    ready = readings.session(path, 60)
    assert isinstance(ready, SessionReading)
    assert len(ready.life.requests) == 150
    assert readings.session(path, 0) is ready


def test_an_empty_session_says_what_to_do(browser: Browser, tmp_path: Path) -> None:
    log = session(tmp_path)
    log.append_message(Message("user", (TextBlock("Hello", Origin.TYPED),)))
    api(browser, "one")
    assert browser.get("/sessions/one/window").status == 200
    assert browser.get("/sessions/one/money").status == 200
