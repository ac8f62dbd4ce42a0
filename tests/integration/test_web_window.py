"""The window and money pages in Chromium: real sessions, hostile ones, no JavaScript, dark, narrow, and axe."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from bench.web_home import LONG, write_long_session
from reverie.storage.transcript.session_log import SessionLog
from reverie.types import Message, Origin, TextBlock, ToolResultBlock, ToolUseBlock
from tests.integration.browser import chromium
from tests.shared_data import sample
from tests.web.served import Browser, served
from tests.web.test_window import projects

pytestmark = pytest.mark.integration

HOSTILE = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>\u202eevil "


@pytest.fixture(scope="module")
def browser() -> Generator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def site(tmp_path: Path) -> Generator[Browser]:
    folder = projects(tmp_path)
    write_long_session(folder, tmp_path, 420)
    log = SessionLog(folder / "hostile.jsonl", "hostile", cwd=tmp_path, version="0")
    for number in range(3):
        log.append_message(Message("user", (TextBlock(HOSTILE + "x" * 1_000_000 * (number == 1), Origin.TYPED),)))
        usage = {"input_tokens": 9, "cache_creation_input_tokens": 90_000, "output_tokens": 9}
        fields = {"id": f"m{number}", "model": HOSTILE, "usage": usage}
        call = ToolUseBlock(f"call{number}", HOSTILE, {HOSTILE: HOSTILE})
        log.append_message(Message("assistant", (TextBlock(HOSTILE, Origin.MODEL), call), fields=fields))
        log.append_message(Message("user", (ToolResultBlock(f"call{number}", HOSTILE * 500),)))
    for path in sorted(sample("transcripts").glob("*.jsonl"))[:2]:
        (folder / path.name).write_bytes(path.read_bytes())
    with served(tmp_path) as found:
        yield found


def axe() -> str:
    """The source of axe-core, or a skip."""
    folders = (os.environ.get("REVERIE_TEST_CLIENTS", ".venv-clients"),)
    for folder in folders:
        path = Path(folder) / "node" / "node_modules" / "axe-core" / "axe.min.js"
        if path.is_file():
            return path.read_text()
    pytest.skip("axe-core is not installed (make integration)")


def open_page(browser: Any, site: Browser, path: str, **options: Any) -> Any:
    context = browser.new_context(**options)
    page = context.new_page()
    page.problems = []
    page.on("console", lambda told: page.problems.append(told.text) if told.type == "error" else None)
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.goto(f"{site.url}/about?token={site.token}")
    page.goto(site.url + path)
    for _ in range(100):
        if page.locator("progress").count() == 0:
            break
        page.wait_for_timeout(100)
        page.goto(site.url + path)
    return page


def paths(site: Browser) -> list[str]:
    found = [f"/sessions/{LONG}/window?request=90&block=12", f"/sessions/{LONG}/money?sort=cost&row=81", "/money"]
    hostile = ["/sessions/hostile/window?block=1", "/sessions/hostile/money?row=1"]
    return [*found, *hostile, "/money/health"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_pages_hold_in_every_form(browser: Any, site: Browser, scheme: str, width: int) -> None:
    source = axe()
    for path in paths(site):
        page = open_page(browser, site, path, color_scheme=scheme, viewport={"width": width, "height": 800})
        assert page.locator("h1").count() == 1
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert page.evaluate("window.hacked") is None
        assert page.problems == [], path
        page.evaluate(source)
        options = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}
        found = page.evaluate("options => axe.run(document, options)", options)["violations"]
        assert [(one["id"], one["nodes"][0]["html"][:200]) for one in found] == [], path
        page.context.close()


def test_without_javascript_everything_is_there(browser: Any, site: Browser) -> None:
    page = open_page(browser, site, f"/sessions/{LONG}/window?request=100", java_script_enabled=False)
    assert page.get_by_role("heading", name="Request 100 of 420").count() == 1
    page.get_by_role("link", name="Next request").click()
    assert page.get_by_role("heading", name="Request 101 of 420").count() == 1
    page.locator("table a").get_by_text("7", exact=True).first.click()
    assert page.get_by_text("What the model sees").count() == 1
    page.get_by_role("link", name="What it cost").click()
    assert page.get_by_role("heading", name="Why row 101 cost").count() == 1


def test_keys_and_clicks(browser: Any, site: Browser) -> None:
    page = open_page(browser, site, f"/sessions/{LONG}/window?request=100")
    page.keyboard.press("n")
    page.wait_for_url("**request=101*")
    page.keyboard.press("p")
    page.wait_for_url("**request=100*")
    page.locator("tr[data-row] a[hx-get]").nth(3).click()
    page.get_by_text("What the model sees").wait_for()
    assert "block=" not in page.url  # the details came into this page
    page.locator("svg.wall a").nth(2).click()
    page.wait_for_url("**block=*")
    page.goto(f"{site.url}/sessions/{LONG}/money")
    page.locator("tr[data-row] a[hx-get]").first.click()
    page.get_by_role("heading", name="Why row 1 cost").wait_for()
    page.get_by_label("Sort by").select_option("cost")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**sort=cost*")


def test_the_five_questions_about_money_and_windows_take_few_clicks(browser: Any, site: Browser) -> None:
    """Which session cost most; why did its dearest request cost so much; what filled its window."""
    page = open_page(browser, site, "/money")
    page.locator("h2:has-text('Sessions by cost') + .scroll a").first.click()
    page.locator("tr[data-row] a[hx-get]").first.click()
    answer = page.locator(".answer").inner_text()
    assert "tokens" in answer
    page.get_by_role("link", name="What filled the window in this request").click()
    assert "tool results" in page.locator("h3:has-text('By source') + .scroll").inner_text()
