"""Sessions in Chromium: real and hostile sessions, live, no JavaScript, dark, narrow, and axe."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from reverie.paths import Places
from reverie.settings import load_settings
from reverie.storage.following.importing import import_file
from reverie.storage.lease import Lease
from reverie.types import ToolUseBlock
from tests.integration.browser import chromium, open_page, violations
from tests.shared_data import ROOT, sample
from tests.web.recorded import HOSTILE, ID, answer, open_log, result, user, write_session
from tests.web.served import Browser, served

pytestmark = pytest.mark.integration

HOSTILE_ID = "0d1c2b3a-0000-4000-8000-000000000009"
_LARGE = 1_000_000


@pytest.fixture(scope="module")
def browser() -> Generator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return load_settings(tmp_path).places.home


@pytest.fixture
def site(tmp_path: Path, home: Path) -> Generator[Browser]:
    write_session(home, tmp_path)
    log = open_log(home, tmp_path, HOSTILE_ID)
    log.append_message(user(HOSTILE + "A" * _LARGE))
    call = ToolUseBlock("h", HOSTILE + "B" * _LARGE, {HOSTILE: HOSTILE * 2_000})
    log.append_message(answer("h1", HOSTILE, call))
    log.append_message(result("h", HOSTILE + "C" * _LARGE))
    log.close()
    with served(tmp_path) as found:
        yield found


def transcripts(cwd: Path) -> list[str]:
    """Imports sessions of three agents: real ones if they are on this machine, else our samples."""
    places, found = Places.of(cwd, load_settings(cwd)), list[str]()
    for kind in ("transcripts", "pi-sessions", "codex-sessions"):
        folder = ROOT / kind if (ROOT / kind).is_dir() else sample(kind)
        for path in sorted(folder.glob("*.jsonl"))[:8]:
            session = import_file(path, places).session
            assert session is not None
            found.append(session)
    return found


PATHS = (
    "/sessions?sort=cost",
    "/sessions?q=cellar&in=text",
    f"/sessions/{ID}",
    f"/sessions/{ID}?q=fuse",
    f"/sessions/{ID}?agent=a1b2",
    f"/sessions/{ID}/results/c2",
    f"/sessions/{ID}/notes",
    f"/sessions/{HOSTILE_ID}",
    f"/sessions/{HOSTILE_ID}/results/h",
)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_pages_hold_in_every_form(browser: Any, site: Browser, scheme: str, width: int) -> None:
    branch = next(one for one in site.json(f"/sessions/{ID}")["items"] if one["kind"] == "branch")["address"]
    for path in (*PATHS, branch):
        page = open_page(browser, site, path, color_scheme=scheme, viewport={"width": width, "height": 800})
        assert page.locator("h1").count() == 1
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert page.problems == [], path
        assert violations(page) == [], path
        page.context.close()


def test_sessions_of_other_agents(browser: Any, tmp_path: Path) -> None:
    ids = transcripts(tmp_path)
    with served(tmp_path) as site:
        page = open_page(browser, site, "/sessions?sort=cost")
        page.wait_for_selector("text=sessions read", state="detached", timeout=60_000)
        assert page.locator("tbody tr").count() == len(ids)
        for id in ids:
            page.goto(f"{site.url}/sessions/{id}")
            assert page.locator("article.item").count() > 0
            for _ in range(3):
                if page.locator("a[rel=next]").count() == 0:
                    break
                with page.expect_navigation():
                    page.keyboard.press("n")
                assert page.locator("article.item").count() > 0
        assert page.problems == []


def test_without_javascript_everything_can_be_read(browser: Any, site: Browser) -> None:
    page = open_page(browser, site, "/sessions", java_script_enabled=False)
    page.click("th a:has-text('Cost')")
    page.click("text=Why does the lamp blink?")
    page.click("summary:has-text('on disk')")
    page.click("text=Show the whole result (200 KB)")
    page.click("text=The next 100,000 characters")
    page.click("text=The next 100,000 characters")
    assert "the end of the log" in page.inner_text("pre.tall")
    page.click("text=Back to the conversation")
    page.click("text=Read what this agent did")
    assert "behind the shelf" in page.inner_text("main")


def test_a_click_loads_the_whole_result_in_its_place(browser: Any, site: Browser) -> None:
    page = open_page(browser, site, f"/sessions/{ID}")
    page.click("summary:has-text('1,002 lines')")
    page.click("text=Show the whole result (5.1 KB)")
    page.wait_for_selector("details.result pre.tall")
    assert page.inner_text("details.result pre.tall").count("line\n") == 1_000
    assert page.url.endswith(ID) and page.problems == []


def test_a_live_session_grows_on_the_page(browser: Any, site: Browser, home: Path, tmp_path: Path) -> None:
    log = open_log(home, tmp_path, "0d1c2b3a-0000-4000-8000-000000000003")
    log.append_message(user("Count to three"))
    assert log.path is not None
    with Lease.take(log.path.with_suffix("") / Lease.NAME, info={"session": log.session_id}):
        page = open_page(browser, site, f"/sessions/{log.session_id}")
        assert "open" in page.inner_text("#live-status")
        log.append_message(answer("l1", "I count.", ToolUseBlock("c9", "Bash", {"command": "seq 3"})))
        page.wait_for_selector("text=I count.")
        page.wait_for_selector("#live-status >> text=Bash $ seq 3")
        log.append_message(result("c9", "one two three"))
        page.wait_for_selector("summary:has-text('one two three')")
        assert page.locator("article.item").count() == 2 and page.problems == []
        page.context.close()
    log.close()


def test_keys_go_from_line_to_line(browser: Any, site: Browser) -> None:
    page = open_page(browser, site, "/")
    for key in ("j", "j", "k"):
        page.keyboard.press(key)
    rows = page.locator("[data-row]")
    assert rows.count() > 1
    first = rows.nth(0).locator("a").nth(0).get_attribute("href")
    assert page.evaluate("document.activeElement.getAttribute('href')") == first
    page.keyboard.press("j")
    second = rows.nth(1).locator("a").nth(0).get_attribute("href")
    assert page.evaluate("document.activeElement.getAttribute('href')") == second
    page.keyboard.press("?")
    page.keyboard.press("2")  # the list of keys is open: nothing else happens
    assert page.url == site.url + "/"
