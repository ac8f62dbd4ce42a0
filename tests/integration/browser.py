"""A real Chromium for the tests of the web view. They are skipped where Chromium or playwright is missing."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

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
