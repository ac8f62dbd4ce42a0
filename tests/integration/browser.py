"""A real Chromium for the tests of the web view. They are skipped where Chromium or playwright is missing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.web.served import Browser

_ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")


@contextmanager
def chromium() -> Generator[Any]:
    """A playwright browser. New pages come from `browser.new_context(...)`."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (make integration)")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=list(_ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


def open_page(browser: Any, site: Browser, path: str, **options: Any) -> Any:
    """A page in a context of its own, entered with the token. `page.problems` has its errors."""
    page = browser.new_context(**options).new_page()
    page.problems = []
    page.on("console", lambda told: page.problems.append(told.text) if told.type == "error" else None)
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.goto(f"{site.url}/about?token={site.token}")
    page.goto(site.url + path)
    return page


def violations(page: Any) -> list[tuple[str, str]]:
    """What axe-core finds against WCAG A and AA: the rule and the first element. Skips if it is not installed."""
    clients = Path(os.environ.get("REVERIE_TEST_CLIENTS", ".venv-clients"))
    source = clients / "node" / "node_modules" / "axe-core" / "axe.min.js"
    if not source.is_file():
        pytest.skip("axe-core is not installed (make integration)")
    page.context.new_cdp_session(page).send("Page.setBypassCSP", {"enabled": True})
    page.evaluate(source.read_text())
    found = page.evaluate("axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']})")
    return [(one["id"], one["nodes"][0]["html"][:200]) for one in found["violations"]]
