"""Dreams in the web view: what waits, accepting file by file, rejecting, undoing, and starting one."""

from __future__ import annotations

import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from reverie.layers.l6_dreaming.copy import MemoryCopy
from reverie.layers.l6_dreaming.proposal import Proposals, propose
from tests.layers.dreams import BAKERY, GOOD, GOOD_ANSWER, JOINED, House, house
from tests.waiting import wait_until
from tests.web.served import Browser, served
from tests.web.test_memory import undo

FLOUR = BAKERY["reference_flour.md"].replace("by fax", "by fax only")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    monkeypatch.setenv("REVERIE_MEMORY_PATH", str(tmp_path / "memory"))
    return house(tmp_path)


@pytest.fixture
def browser(place: House) -> Generator[Browser]:
    with served(place.work) as found:
        yield found


def wait_for_decision(place: House) -> str:
    copy = MemoryCopy.make(place.memory, place.work.parent / "copies")
    changes = {"project_oven.md": JOINED, "project_oven_copy.md": "", "reference_flour.md": FLOUR}
    for name, text in changes.items():
        copy.write(name, text.encode())
    proposal = propose(copy, GOOD_ANSWER, id="00c0ffee", created=time.time(), session="s", max_loss_pct=25)
    copy.remove()
    assert proposal is not None
    Proposals(place.memory).add(proposal)
    return proposal.id


def test_a_dream_is_accepted_file_by_file_and_taken_back(browser: Browser, place: House) -> None:
    id = wait_for_decision(place)
    listed = browser.json("/dreams")
    assert [one["id"] for one in listed["waiting"]] == [id] and listed["status"]["gate"]
    link = listed["waiting"][0]["link"]
    shown = browser.json(link)
    reasons = {one["file"]: one["reason"] for one in shown["changes"]}
    assert reasons["project_oven.md"] == "joined with its copy"
    moved = [line for one in shown["changes"] for line in one["lines"] if line["moved"]]
    assert moved[0]["moved"].endswith(".md"), "a line says where it went"
    html = browser.get(link).text
    assert 'type="checkbox" name="file-1"' in html and "It needs a 63 A fuse." in html

    part = browser.submit(link, f"{link}/accept", rest="keep", **{"file-3": "reference_flour.md"}).text
    assert "Accepted: reference_flour.md." in part and place.files["reference_flour.md"] == FLOUR
    assert [one["file"] for one in browser.json(link)["changes"]] == ["project_oven.md", "project_oven_copy.md"]
    undo(browser, part)
    assert place.files == dict(BAKERY) and len(browser.json(link)["changes"]) == 3

    done = browser.submit(link, f"{link}/accept", all="1").text
    assert place.files["project_oven.md"] == JOINED and "project_oven_copy.md" not in place.files
    assert "What a dream changed" in done and "What an undo would change" in done
    assert browser.json("/dreams")["waiting"] == []
    landed = browser.json("/dreams")["dreams"][0]
    assert landed["outcome"] == "accepted" and not landed["undone"]
    back = browser.json(landed["link"])["undo"]["changes"]
    assert {one["file"]: one["change"] for one in back}["project_oven_copy.md"] == "add"
    again = browser.submit(landed["link"], f"{landed['link']}/undo").text
    assert place.files == dict(BAKERY) and "undone by" in again and browser.json("/dreams")["dreams"][0]["undone"]
    undo(browser, again)
    assert place.files["project_oven.md"] == JOINED


def test_a_dream_is_rejected_and_waits_again(browser: Browser, place: House) -> None:
    link = f"/dreams/{browser.json('/dreams')['projects'][0]['name']}/{wait_for_decision(place)}"
    shown = browser.submit(link, f"{link}/reject").text
    assert "Memory did not change" in shown and place.files == dict(BAKERY) and browser.get(link).status == 404
    undo(browser, shown)
    assert browser.get(link).status == 200
    nothing = browser.post(f"/api{link}/accept", {"files": ""}, authorization=f"Bearer {browser.token}")
    assert nothing.status == 400 and "Choose at least one file" in nothing.text
    other = browser.post(f"/api{link}/accept", {"files": "../x.md"}, authorization=f"Bearer {browser.token}")
    assert other.status == 400 and "does not change" in other.text


def test_a_dream_is_started_from_the_page(browser: Browser, place: House, own_home: Path) -> None:
    settings = own_home / ".reverie" / "settings.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(f'[model]\nname = "{place.script(GOOD)}"\n')
    name = browser.json("/dreams")["projects"][0]["name"]
    assert "A dream has begun" in browser.submit("/dreams", f"/dreams/{name}/run", wait="1").text

    def ended() -> object:
        run = browser.json("/dreams")["status"]["run"]
        return None if run is None or run["is_running"] else run

    run: Any = wait_until(ended)
    assert (run["error"], run["outcome"]) == ("", "proposed"), run
    assert place.files == dict(BAKERY) and browser.json("/dreams")["waiting"][0]["id"] == run["id"]
    assert "Review it" in browser.get("/dreams?part=running").text


def test_without_a_budget_no_dream_begins(browser: Browser, place: House, own_home: Path) -> None:
    (own_home / ".reverie").mkdir(exist_ok=True)
    (own_home / ".reverie" / "flags.toml").write_text("dream = false\n")
    name = browser.json("/dreams")["projects"][0]["name"]
    assert "A dream cannot be started now" in browser.get("/dreams").text
    answer = browser.post(f"/api/dreams/{name}/run", {}, authorization=f"Bearer {browser.token}")
    assert answer.status == 400 and "switched off" in answer.text
    for id in ("../../x", "zz", "0" * 40, "<b>"):
        assert browser.get(f"/dreams/{name}/{id}").status == 404


def test_the_first_page_says_what_waits_and_leads_there(browser: Browser, place: House) -> None:
    assert "No session yet" in browser.get("/").text
    id = wait_for_decision(place)
    (place.memory / ".dreams" / "state.json").write_text('{"failures_in_a_row": 2, "reason": "the model is away"}')
    data = browser.json("/overview")
    assert [one["id"] for one in data["waiting"]["dreams"]] == [id] and data["memories"] == 4
    assert data["waiting"]["failures"][0]["error"] == "the model is away"
    assert data["money"] == {"today": 0, "week": 0, "dearest_session": None, "dearest_cost": None}
    shown = browser.get("/").text
    assert data["waiting"]["dreams"][0]["link"] in shown and "failed 2 times in a row" in shown
