"""Who may use the web view, and what every answer says to a browser."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from reverie.web.rendering import STATIC, TEMPLATES
from tests.web.served import Browser, served


@pytest.fixture
def browser(tmp_path: Path) -> Generator[Browser]:
    with served(tmp_path) as found:
        yield found


def test_without_the_token_nothing_answers(browser: Browser) -> None:
    stranger = Browser(browser.port, "wrong")
    assert stranger.get("/").status == 401
    assert stranger.get("/?token=wrong").status == 401
    assert stranger.get("/api/overview", authorization="Bearer wrong").status == 401
    assert stranger.get("/nowhere").status == stranger.get("/api/nowhere").status == 401
    stranger.cookies = {name: value[:-1] + "x" for name, value in browser.cookies.items()}
    assert stranger.get("/memory").status == 401


def test_the_token_becomes_a_cookie_and_leaves_the_address(browser: Browser) -> None:
    answer = Browser(browser.port, browser.token).get(f"/memory?q=a%20b&token={browser.token}")
    assert (answer.status, answer.headers["location"]) == (303, "/memory?q=a+b")
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert "samesite=strict" in answer.headers["set-cookie"].lower()
    assert browser.token not in answer.headers["set-cookie"]


@pytest.mark.parametrize(
    "headers",
    [{"host": "evil.example"}, {"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}],
    ids=["host", "origin", "fetch-site"],
)
def test_a_page_of_another_host_gets_nothing(browser: Browser, headers: dict[str, str]) -> None:
    assert browser.get("/", **headers).status == 403


def test_every_answer_forbids_foreign_and_inline_scripts(browser: Browser) -> None:
    for path in ("/", "/nowhere", "/api/overview", "/static/style.css"):
        headers = browser.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


def test_templates_never_switch_escaping_off() -> None:
    for path in TEMPLATES.rglob("*.html"):
        text = path.read_text()
        for forbidden in ("|safe", "| safe", "autoescape", "style=", "onclick", "<style", "javascript:"):
            assert forbidden not in text, f"{path.name} has {forbidden}"


def test_nothing_is_loaded_from_elsewhere() -> None:
    for path in (*TEMPLATES.rglob("*.html"), STATIC / "style.css", STATIC / "reverie.js"):
        assert "//cdn" not in path.read_text()
        assert 'src="http' not in path.read_text()
