"""Memory, the inbox, dreams and the first page in a real browser: every page and action, with JavaScript and without,
light, dark and narrow, with hostile content, and checked by axe."""

from __future__ import annotations

import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from reverie.layers.l6_dreaming.copy import MemoryCopy
from reverie.layers.l6_dreaming.proposal import Proposals, propose
from reverie.memory.gate.inbox import Item, ItemSource
from reverie.memory.opening import OpenedMemory
from reverie.web.site import Site
from tests.integration.browser import chromium
from tests.layers.dreams import BAKERY, GOOD_ANSWER, JOINED
from tests.web.served import Browser, served

pytestmark = pytest.mark.integration

HOSTILE = '<script>document.title="owned"</script><svg onload="document.title=\'owned\'">\u202eevil '
AXE = (Path(".venv-clients/node/node_modules/axe-core/axe.min.js"), Path("/tmp/npm/node_modules/axe-core/axe.min.js"))
LOOKS: tuple[dict[str, Any], ...] = (
    {"color_scheme": "light", "viewport": {"width": 1200, "height": 900}},
    {"color_scheme": "dark", "viewport": {"width": 1200, "height": 900}},
    {"color_scheme": "light", "viewport": {"width": 360, "height": 700}},
)


@pytest.fixture(scope="module")
def engine() -> Generator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def memory(tmp_path: Path) -> OpenedMemory:
    site = Site.open(tmp_path)
    memory = site.memory_of(site.here)
    root = memory.directory.root
    root.mkdir(parents=True, mode=0o700)
    for name, text in BAKERY.items():
        (root / name).write_text(text)
    memory.directory.absorb()
    (root / "x<svg onload=alert(1)>.md").write_text(
        f"---\nname: {HOSTILE}\ndescription: {HOSTILE * 20}\ntype: project\ntrust: inferred\n---\n\n{HOSTILE}\n"
        + "w" * 1_000_000
    )
    memory.inbox.add(
        Item("evidence", "reference_yeast.md", HOSTILE, (HOSTILE,), sources=(ItemSource("page", HOSTILE * 5),))
    )
    copy = MemoryCopy.make(root, tmp_path / "copies")
    copy.write("project_oven.md", JOINED.encode())
    copy.write("project_oven_copy.md", b"")
    proposal = propose(copy, GOOD_ANSWER, id="00c0ffee", created=time.time(), session="s", max_loss_pct=25)
    copy.remove()
    assert proposal is not None
    Proposals(root).add(proposal)
    return memory


@pytest.fixture
def server(tmp_path: Path, memory: OpenedMemory) -> Generator[Browser]:
    with served(tmp_path) as found:
        yield found


def pages(server: Browser) -> list[str]:
    project = server.json("/memory")["projects"][0]["name"]
    own = f"/memory/{project}"
    return [
        "/", "/memory", "/memory?q=oven", "/inbox", "/forgotten", "/dreams", f"/dreams/{project}/00c0ffee",
        f"{own}/project_oven.md", f"{own}/project_oven.md?view=history", f"{own}/project_oven.md?view=edit",
        f"{own}/x%3Csvg%20onload%3Dalert(1)%3E.md", f"{own}/x%3Csvg%20onload%3Dalert(1)%3E.md?whole=1",
        f"{own}/nothing.md",
    ]  # fmt: skip


def open_page(engine: Any, server: Browser, **more: Any) -> Any:
    page = engine.new_context(**more).new_page()
    page.set_default_timeout(10_000)
    page.goto(f"{server.url}/?token={server.token}")
    return page


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark", "narrow"])
def test_every_page_is_readable_and_runs_nothing_foreign(engine: Any, server: Browser, look: dict[str, Any]) -> None:
    axe = next((path.read_text() for path in AXE if path.is_file()), "")
    page = open_page(engine, server, bypass_csp=bool(axe), **look)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    for address in pages(server):
        page.goto(server.url + address)
        assert page.title() != "owned" and page.locator("h1").count() == 1, address
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= look["viewport"]["width"], f"{address} is {width} wide"
        if axe:
            page.add_script_tag(content=axe)
            found = page.evaluate("axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']})")
            bad = [(one["id"], one["nodes"][0]["html"][:200]) for one in found["violations"]]
            assert not bad, (address, bad)
    assert not problems


@pytest.mark.parametrize("script", [True, False], ids=["JavaScript", "no JavaScript"])
def test_every_action_works_by_its_button_and_is_undone(
    engine: Any, server: Browser, memory: OpenedMemory, script: bool
) -> None:
    page = open_page(engine, server, java_script_enabled=script)
    root = memory.directory.root
    project = server.json("/memory")["projects"][0]["name"]

    def press(name: str) -> None:
        page.get_by_role("button", name=name, exact=True).first.click()
        page.wait_for_load_state()

    def done() -> str:
        return page.locator("[role=status]").first.inner_text()

    page.goto(f"{server.url}/memory/{project}/user_mara.md")
    press("Confirm")
    assert "Confirmed: Mara runs the bakery alone." in done()
    press("Undo")
    assert "Inferred again" in done()
    press("Remove")
    assert "alone" not in (root / "user_mara.md").read_text()
    press("Undo")
    assert "alone" in (root / "user_mara.md").read_text()
    page.get_by_role("link", name="Edit").click()
    page.locator("textarea").fill(BAKERY["user_mara.md"].replace("alone", "with Jo"))
    press("Save")
    assert "with Jo" in (root / "user_mara.md").read_text()
    press("Undo")
    press("Forget this memory")
    assert not (root / "user_mara.md").exists()
    press("Undo")
    assert "alone" in (root / "user_mara.md").read_text()
    page.get_by_role("link", name="History").click()
    assert page.locator(".diff .add").count()

    page.goto(f"{server.url}/inbox")
    press("Reject")
    assert memory.inbox.count() == 0
    press("Undo")
    assert memory.inbox.count() == 1

    page.goto(f"{server.url}/dreams/{project}/00c0ffee")
    page.get_by_role("checkbox").nth(1).uncheck()
    press("Accept the marked files, keep the rest waiting")
    assert "fuse" in (root / "project_oven.md").read_text() and (root / "project_oven_copy.md").exists()
    press("Accept all")
    assert not (root / "project_oven_copy.md").exists()
    press("Undo this dream")
    assert (root / "project_oven_copy.md").exists()
    page.goto(f"{server.url}/memory?q=oven")
    assert page.get_by_role("link", name="Oven", exact=True).count() == 1


def test_another_origin_cannot_press_a_button(
    engine: Any, server: Browser, memory: OpenedMemory, tmp_path: Path
) -> None:
    page = open_page(engine, server)
    project = server.json("/memory")["projects"][0]["name"]
    target = f"{server.url}/memory/{project}/forget"
    page.route(
        "http://evil.example/*",
        lambda route: route.fulfill(
            content_type="text/html",
            body=f'<form method="post" action="{target}"><input name="file" value="user_mara.md"></form>'
            "<script>document.forms[0].submit()</script>",
        ),
    )
    page.goto("http://evil.example/")
    page.wait_for_timeout(500)
    assert (memory.directory.root / "user_mara.md").exists()
