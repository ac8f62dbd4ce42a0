"""Memory in the web view: lists, search, one memory with its evidence, and every action with its way back."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from urllib.parse import quote

import pytest

from reverie.memory.changes import Mark, WriteInfo, Writer
from reverie.memory.directory import MemoryDirectory
from reverie.memory.gate.inbox import Item, ItemSource
from reverie.memory.gate.marks import Marks
from reverie.memory.opening import OpenedMemory
from reverie.memory.sharing.questions import ask_which
from reverie.memory.taxonomy import Trust
from reverie.memory.topic_file import TopicFile
from reverie.web.site import Site
from tests.web.served import Browser, served

DEPLOY = """\
---
name: Deploys
description: Deploys happen on Tuesday
type: project
trust: confirmed
---

Deploys happen on Tuesday at ten.
Anna approves each deploy.
See [[Runbook]] and [[nowhere]], and `src/gone.py`.
"""
RUNBOOK = """\
---
name: Runbook
description: The runbook is in the wiki
type: reference
---

The runbook is in the wiki under "Night shift".
"""
SESSION = "0a1b2c3d-0000-4000-8000-000000000001"


def write(memory: OpenedMemory, name: str, text: str) -> None:
    info = WriteInfo(Writer.USER, "A test.", confirms=True)
    memory.directory.create(name, TopicFile.parse(text), info)


@pytest.fixture
def memory(tmp_path: Path) -> OpenedMemory:
    site = Site.open(tmp_path)
    found = site.memory_of(site.here)
    write(found, "project_deploys.md", DEPLOY)
    write(found, "reference_runbook.md", RUNBOOK)
    said = Mark(Trust.INFERRED, "", "anna looks at it first", "2026-11-02T09:00:00+00:00", SESSION, "m-7")
    Marks(found.directory.root).add({"Anna approves each deploy.": said})
    site.here.path.mkdir(parents=True, exist_ok=True)
    line = {
        "type": "user",
        "uuid": "m-7",
        "sessionId": SESSION,
        "cwd": str(tmp_path),
        "timestamp": "2026-11-02T09:00:00Z",
    }
    line["message"] = {"role": "user", "content": "anna looks at it first"}  # type: ignore[assignment]
    surfaced = {
        "type": "system",
        "subtype": "surfaced_memories",
        "uuid": "m-8",
        "timestamp": "2026-11-02T09:01:00Z",
        "reverie": {"names": ["project_deploys.md"], "bytes": 10},
    }
    (site.here.path / f"{SESSION}.jsonl").write_text(json.dumps(line) + "\n" + json.dumps(surfaced) + "\n")
    return found


@pytest.fixture
def browser(tmp_path: Path, memory: OpenedMemory) -> Generator[Browser]:
    with served(tmp_path) as found:
        yield found


@pytest.fixture
def page(memory: OpenedMemory) -> str:
    return f"/memory/{memory.directory.root.parent.name}/project_deploys.md"


def text_of(memory: OpenedMemory, name: str = "project_deploys.md") -> str:
    return MemoryDirectory.open(memory.directory.root, gate=memory.gate).read(name).text


def test_the_list_is_filtered_and_searched(browser: Browser, memory: OpenedMemory) -> None:
    data = browser.json("/memory")
    assert {one["file"] for one in data["memories"]} == {"project_deploys.md", "reference_runbook.md"}
    assert data["types"] == {"project": 1, "reference": 1} and data["inferred"] == 1
    assert [one["file"] for one in browser.json("/memory?type=reference")["memories"]] == ["reference_runbook.md"]
    found = browser.json("/memory?q=who+approves+a+deploy")["memories"]
    assert found[0]["file"] == "project_deploys.md" and "deploy" in found[0]["why"]
    assert "No memory fits" in browser.get("/memory?q=zebra").text
    assert browser.get("/memory?part=list").text.strip().startswith('<div id="list">')
    assert browser.get("/memory?type=zebra").status == 400
    (memory.directory.root / "by_hand.md").write_text("Written in an editor.\n")
    assert "by_hand.md" in browser.get("/memory").text, "a new file is there at once"


def test_one_memory_has_evidence_links_and_what_is_gone(browser: Browser, page: str) -> None:
    found = browser.json(page)["memory"]
    by_text = {one["statement"]: one for one in found["statements"]}
    inferred = by_text["Anna approves each deploy."]
    assert inferred["trust"] == "inferred" and "anna looks at it first" in inferred["evidence"]
    assert inferred["link"] == f"/sessions/{SESSION}?at=m-7#message-m-7"
    assert [(one["as"], one["file"]) for one in found["links"]] == [
        ("Runbook", "reference_runbook.md"),
        ("nowhere", None),
    ]
    assert found["missing"] == ["src/gone.py"] and found["index_line"].startswith("- [Deploys](project_deploys.md)")
    assert [one["session"] for one in found["recalled"]] == [SESSION]
    assert browser.json(page.replace("project_deploys", "reference_runbook"))["memory"]["linked_from"] == [
        {"file": "project_deploys.md", "name": "Deploys"}
    ]
    shown = browser.get(page).text
    assert "≈ inferred" in shown and "no such memory" in shown and "Not in the repository any more" in shown


def undo(browser: Browser, shown: str) -> str:
    """Presses the Undo button beside the sentence about the last action; the page after it."""
    box = shown.split('class="done"')[1].split("</div>")[0]
    path = box.split('action="')[1].split('"')[0]
    fields = dict(part.split('" value="', 1) for part in box.split('name="')[1:])
    from html import unescape

    form = {name: unescape(value.split('">')[0]) for name, value in fields.items()}
    answer = browser.post(unescape(path), form)
    assert answer.status == 303, answer.text
    return browser.get(answer.headers["location"]).text


def test_a_statement_is_confirmed_doubted_and_removed(browser: Browser, memory: OpenedMemory, page: str) -> None:
    project = page.split("/")[2]
    one = next(one for one in browser.json(page)["memory"]["statements"] if one["trust"] == "inferred")
    form = {"file": "project_deploys.md", "id": one["id"]}
    shown = browser.submit(page, f"/memory/{project}/confirm", **form).text
    assert "Confirmed: Anna approves each deploy." in shown
    assert browser.json("/memory")["inferred"] == 0
    assert "Inferred again" in undo(browser, shown)
    assert browser.json("/memory")["inferred"] == 1
    shown = browser.submit(page, f"/memory/{project}/reject", **form).text
    assert "Anna" not in text_of(memory)
    undo(browser, shown)
    assert text_of(memory) == DEPLOY


def test_an_edit_is_saved_refused_or_shown_beside_the_text_of_somebody_else(
    browser: Browser, memory: OpenedMemory, page: str
) -> None:
    project, edit = page.split("/")[2], f"{page}?view=edit"
    base = browser.json(page)["memory"]["digest"]
    form = {"file": "project_deploys.md", "base": base}
    shown = browser.submit(edit, f"/memory/{project}/edit", text=DEPLOY.replace("ten", "eleven"), **form).text
    assert "Saved project_deploys.md." in shown and "eleven" in text_of(memory)
    late = DEPLOY.replace("Tuesday", "Friday")
    both = browser.submit(edit, f"/memory/{project}/edit", text=late, **form).text
    assert 'class="problem"' in both and "nothing was saved" in both and "eleven" in both and "Friday" in both
    assert "eleven" in text_of(memory)
    form["base"] = browser.json(page)["memory"]["digest"]
    secret = DEPLOY + "The key is AKIAQ4ZT7WLR2XN6VPDK.\n"
    refused = browser.submit(edit, f"/memory/{project}/edit", text=secret, **form).text
    assert "Not saved:" in refused and "secret" in refused.split('class="problem"')[1][:600].lower()
    assert "AKIA" not in text_of(memory)
    answer = browser.post(
        f"/api/memory/{project}/edit", {**form, "text": secret}, authorization=f"Bearer {browser.token}"
    )
    assert answer.status == 409 and "AKIA" not in answer.text
    undo(browser, shown)
    assert text_of(memory) == DEPLOY


def test_a_memory_is_forgotten_restored_and_its_versions_are_undone(
    browser: Browser, memory: OpenedMemory, page: str
) -> None:
    project = page.split("/")[2]
    shown = browser.submit(page, f"/memory/{project}/forget", file="project_deploys.md").text
    assert "Forgot project_deploys.md." in shown and not memory.directory.exists("project_deploys.md")
    assert "This memory was forgotten" in browser.get(page).text
    assert [one["file"] for one in browser.json("/forgotten")["forgotten"]] == ["project_deploys.md"]
    undo(browser, shown)
    assert text_of(memory) == DEPLOY
    browser.submit(page, f"/memory/{project}/forget", file="project_deploys.md")
    browser.submit("/forgotten", f"/memory/{project}/restore", file="project_deploys.md")
    assert text_of(memory) == DEPLOY and "project_deploys.md" in memory.directory.index()
    versions = browser.json(f"{page}?view=history")["versions"]
    assert [one["change"] for one in versions] == ["add", "remove", "add", "remove", "add"]
    assert "+Anna approves each deploy." in versions[0]["diff"]
    history = browser.get(f"{page}?view=history").text
    assert 'class="add"' in history and "Undo this version" in history


def test_the_inbox_is_decided_and_decisions_are_taken_back(browser: Browser, memory: OpenedMemory, page: str) -> None:
    project = page.split("/")[2]
    text = RUNBOOK.replace("Night shift", "Day shift")
    item = Item(
        "evidence", "reference_wiki.md", text, ('It is under "Day shift".',), sources=(ItemSource("page", "<b>x</b>"),)
    )
    id = memory.inbox.add(item)
    assert [one["id"] for one in browser.json("/inbox")["items"]] == [id]
    shown = browser.get("/inbox").text
    assert "&lt;b&gt;x" in shown and "<b>x" not in shown
    shown = browser.submit("/inbox", f"/memory/{project}/inbox/accept", id=id).text
    assert text_of(memory, "reference_wiki.md") and browser.json("/inbox")["items"] == []
    undo(browser, shown)
    assert not memory.directory.exists("reference_wiki.md")
    assert [one["id"] for one in browser.json("/inbox")["items"]] == [id]
    shown = browser.submit("/inbox", f"/memory/{project}/inbox/reject", id=id).text
    assert browser.json("/inbox")["items"] == []
    undo(browser, shown)
    assert [one["id"] for one in browser.json("/inbox")["items"]] == [id]
    assert [one["statement"] for one in browser.json("/inbox")["statements"]] == ["Anna approves each deploy."]


def test_two_versions_of_a_memory_are_a_question(browser: Browser, memory: OpenedMemory, page: str) -> None:
    project = page.split("/")[2]
    for name, said in (("wiki.md", "Elsewhere: port 1."), ("wiki_other_version_1.md", "Here: port 2.")):
        memory.directory.create(
            name, TopicFile.parse(RUNBOOK.replace("Night shift", said)), WriteInfo(Writer.USER, "x")
        )
    own, other = (memory.directory.read(name).content for name in ("wiki_other_version_1.md", "wiki.md"))
    for verb, left, said in (("keep", 2, "port 1"), ("reject", 1, "port 1"), ("accept", 1, "port 2")):
        assert not ask_which(memory.directory, "wiki.md", "wiki_other_version_1.md", own, other)
        (item,) = browser.json("/inbox")["items"]
        assert "Keep both" in browser.get("/inbox").text
        shown = browser.submit("/inbox", f"/memory/{project}/inbox/{verb}", id=item["id"]).text
        assert said in text_of(memory, "wiki.md") and browser.json("/inbox")["items"] == []
        assert len([name for name in memory.directory.names() if name.startswith("wiki")]) == left
        undo(browser, shown)
        memory.inbox.reject(item["id"])


@pytest.mark.parametrize(
    "name",
    ["../../../etc/passwd.md", "..%2f..%2fx.md", "a\0b.md", "<script>alert(1)</script>.md", "\u202egnp.md",
     "x" * 20_000 + ".md", ".trust/marks.md", "/etc/hosts.md", "logs/2026-01-01.md", "plain.txt"],
)  # fmt: skip
def test_a_hostile_name_is_not_found_and_changes_nothing(
    browser: Browser, memory: OpenedMemory, page: str, name: str
) -> None:
    project = page.split("/")[2]
    answer = browser.get(f"/memory/{project}/{quote(name, safe='')}")
    assert answer.status in (400, 404) and "<script>alert" not in answer.text and len(answer.text) < 20_000
    for verb in ("forget", "edit", "restore", "confirm"):
        form = {"file": name, "text": "x", "base": "absent", "id": "00"}
        answer = browser.post(f"/api/memory/{project}/{verb}", form, authorization=f"Bearer {browser.token}")
        assert answer.status in (400, 404, 409), (verb, answer.text[:200])
        assert len(answer.text) < 1_000
    assert sorted(path.name for path in memory.directory.root.glob("*.md")) == [
        "MEMORY.md",
        "project_deploys.md",
        "reference_runbook.md",
    ]


def test_hostile_text_is_shown_and_never_run(browser: Browser, memory: OpenedMemory, page: str) -> None:
    hostile = '<script>alert(1)</script> <svg onload="alert(2)"> \u202eevil'
    path = memory.directory.root / "x<svg onload=alert(3)>.md"
    path.write_text(f"---\nname: {hostile}\ndescription: {hostile}\ntype: project\n---\n\n{hostile}\n{'w' * 50_000}\n")
    project = page.split("/")[2]
    for address in ("/memory", f"/memory/{project}/{quote(path.name)}", "/memory?q=evil", "/inbox", "/"):
        answer = browser.get(address)
        assert answer.status == 200
        assert "<script>alert" not in answer.text and "<svg onload" not in answer.text and "\u202e" not in answer.text
    assert "Show everything" in browser.get(f"/memory/{project}/{quote(path.name)}").text


def test_read_only_shows_no_button_and_has_no_action(tmp_path: Path, memory: OpenedMemory, page: str) -> None:
    with served(tmp_path, read_only=True) as browser:
        for address in (page, f"{page}?view=history", "/inbox", "/forgotten"):
            assert 'method="post"' not in browser.get(address).text
        project = page.split("/")[2]
        assert browser.post(f"/memory/{project}/forget", {"file": "project_deploys.md"}).status in (404, 405)
    assert text_of(memory) == DEPLOY


def test_the_memory_of_an_agent_is_there_and_that_of_a_repository_is_not_changed(
    tmp_path: Path, memory: OpenedMemory
) -> None:
    own = memory.places.agent_memory_user("reviewer")
    shared = memory.places.agent_memory_project("reviewer")
    for root in (own, shared):
        root.mkdir(parents=True)
        (root / "feedback_short.md").write_text("Keep reviews short.\n")
    with served(tmp_path) as browser:
        names = [one["name"] for one in browser.json("/memory")["projects"]]
        assert "agent:reviewer" in names and "agent:agent-memory:reviewer" in names
        headers = {"authorization": f"Bearer {browser.token}"}
        form = {"file": "feedback_short.md"}
        refused = browser.post("/api/memory/agent:agent-memory:reviewer/forget", form, **headers)
        assert refused.status == 400 and "belongs to the repository" in refused.text
        assert browser.post("/api/memory/agent:reviewer/forget", form, **headers).status == 200
    assert (shared / "feedback_short.md").exists() and not (own / "feedback_short.md").exists()
