"""What requests cost: the same figures as the command line, the reason of every cost, and totals that go on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from bench.web_home import LONG, write_long_session, write_sessions
from reverie.context.ledger import Ledger
from reverie.models.catalogue import Catalogue
from reverie.settings import load_settings
from reverie.storage.transcript.records import CacheBreak, ForkUsage
from tests.web.served import Browser, served
from tests.web.test_window import HOSTILE, projects, session, talk


@pytest.fixture
def browser(tmp_path: Path) -> Generator[Browser]:
    with served(tmp_path) as found:
        yield found


def api(browser: Browser, path: str) -> Any:
    for _ in range(200):
        found = browser.json(path)
        if not found["reading"]:
            return found
        time.sleep(0.02)
    raise AssertionError("it was not read")


def ledger(cwd: Path) -> Ledger:
    files = sorted(load_settings(cwd).places.home.glob("projects/*/*.jsonl"))
    return Ledger.of_transcripts(files, Catalogue.load(()))


def test_a_session_costs_what_the_ledger_says_and_every_row_says_why(browser: Browser, tmp_path: Path) -> None:
    log = session(tmp_path)
    talk(log, 1, written=20_000)
    talk(log, 2, read=20_000, written=400)
    usage = {"input_tokens": 900, "output_tokens": 9_000}
    log.append(ForkUsage("notes", "claude-sonnet-4-5", usage, "notes-1"))
    log.append(CacheBreak("tools", f"the tool Read changed {HOSTILE}", 19_000, 20_400, 1_400, 0.07, path="tools[0]"))
    talk(log, 3, read=1_400, written=20_000)

    found = api(browser, "/sessions/one/money?sort=cost")
    assert found["total"] == ledger(tmp_path).total.to_json()
    assert sum(row["cost"] for row in found["rows"]) == pytest.approx(found["total"]["cost_usd"], abs=1e-5)
    assert sum(row["uncached"] for row in found["rows"]) == pytest.approx(found["total"]["uncached_usd"], abs=1e-5)
    why = {row["row"]: row["why"] for row in found["rows"]}
    assert [row["cost"] for row in found["rows"]] == sorted((row["cost"] for row in found["rows"]), reverse=True)
    assert "first request" in why[1]
    assert "20,000 tokens read from the cache" in why[2]
    assert "9,000 of output" in why[3].replace(" tokens", "")
    assert "the tool Read changed" in why[4]
    assert "19,000 tokens were paid again" in why[4]
    assert [(one["row"], one["cause"]) for one in found["breaks"]] == [(4, "tools")]
    detail = api(browser, "/sessions/one/money?request=3")["selected"]
    assert (detail["row"], detail["breaks"][0]["lost_tokens"]) == (4, 19_000)
    assert sum(part["cost"] for part in detail["parts"]) == pytest.approx(detail["cost"])
    assert {row["layer"] for row in api(browser, "/sessions/one/money?layer=notes")["rows"]} == {"notes"}

    page = browser.get("/sessions/one/money?row=4").text
    assert "the tool Read changed" in page
    assert "<script>alert" not in page
    assert browser.get("/sessions/one/money?sort=colour").status == 400
    assert browser.get("/sessions/one/money?row=99").status == 404


def test_totals_are_those_of_the_command_line_and_go_on(browser: Browser, tmp_path: Path) -> None:
    write_sessions(projects(tmp_path), tmp_path, 12)
    write_sessions(projects(tmp_path).parent / "-elsewhere", Path("/elsewhere"), 2, first=100)
    write_long_session(projects(tmp_path), tmp_path, 200)
    found, expected = api(browser, "/money"), ledger(tmp_path)
    assert found["total"] == expected.total.to_json()
    assert {one["name"]: one["cost_usd"] for one in found["by_day"]} == {
        day: sums.to_json()["cost_usd"] for day, sums in expected.by("day").items()
    }
    assert found["sessions"]["rows"][0]["name"] == LONG
    assert found["sessions"]["pages"]["total"] == 15
    assert {one["name"] for one in found["by_project"]} == {projects(tmp_path).name, "-elsewhere"}
    elsewhere = api(browser, "/money?project=-elsewhere")
    assert elsewhere["total"]["requests"] == 6
    log = session(tmp_path)
    talk(log, 1)
    time.sleep(1.1)  # the list of files is not read again at once
    assert api(browser, "/money")["total"]["requests"] == found["total"]["requests"] + 1
    assert browser.get("/money?project=none").status == 404
    assert LONG[:8] in browser.get("/money").text
    health = api(browser, "/money/health")
    assert {one["layer"]: one["counts"] for one in health["health"]["layers"]}["compaction"] == {"fired": 1}


def test_an_empty_home_says_what_to_do(browser: Browser) -> None:
    for path in ("/money", "/money/health"):
        api(browser, path)
        assert "reverie chat" in browser.get(path).text


def test_commands_lead_to_the_pages(tmp_path: Path) -> None:
    talk(session(tmp_path), 1)
    env = {**os.environ, "BROWSER": "true"}
    program = [sys.executable, "-m", "reverie"]
    server = subprocess.Popen([*program, "web", "--no-open"], cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        assert "token=" in server.stdout.readline()
        for arguments, page in (
            (["context", "--web"], "/sessions/one/window"),
            (["cost", "one", "--web"], "/sessions/one/money"),
        ):
            told = subprocess.run([*program, *arguments], cwd=tmp_path, env=env, capture_output=True, text=True)
            assert f"{page}?token=" in told.stdout, told.stderr
    finally:
        server.terminate()
        server.wait(10)
