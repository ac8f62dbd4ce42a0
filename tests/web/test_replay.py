"""Replay over real HTTP: what a folder has, a job that ends, a job that is cancelled."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from tests.shared_data import sample
from tests.web.served import Browser, served


@pytest.fixture
def folder(scratch: Path) -> Path:
    first = min(sample("transcripts").glob("*.jsonl"))
    (scratch / "deep").mkdir()
    shutil.copy(first, scratch / "deep" / "one.jsonl")
    (scratch / "agent-7.jsonl").write_text("{}\n")
    (scratch / "empty.jsonl").write_text("")
    (scratch / "notes.txt").write_text("not a transcript")
    (scratch / "link.jsonl").symlink_to("/etc/passwd")
    (scratch / "odd.jsonl").write_text('{"type":"odd"}\n')
    return scratch


def wait_for_end(browser: Browser) -> Any:
    deadline = time.monotonic() + 60
    while (job := browser.json("/replay")["job"])["state"] == "running":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return job


def test_a_folder_is_listed_with_what_is_skipped(tmp_path: Path, folder: Path) -> None:
    with served(tmp_path) as browser:
        found = browser.json(f"/replay?folder={folder}")["found"]
        assert sorted(Path(one["path"]).name for one in found["files"]) == ["odd.jsonl", "one.jsonl"]
        skipped = {Path(one["path"]).name: one["why"] for one in found["skipped_files"]}
        assert skipped.keys() == {"agent-7.jsonl", "empty.jsonl", "link.jsonl"} and skipped["link.jsonl"] == "a link"
        assert "is not a folder" in browser.get(f"/replay?folder={folder}/nowhere").text


def test_a_replay_runs_beside_the_server_and_shows_costs(tmp_path: Path, folder: Path) -> None:
    with served(tmp_path) as browser:
        page = browser.submit(
            f"/replay?folder={folder}", "/replay/start", folder=str(folder), **{"policy-reverie": "1"}
        )
        assert "has started" in page.text
        job = wait_for_end(browser)
        assert (job["state"], job["done"], job["error"]) == ("done", 2, "")
        assert job["totals"]["policies"].keys() == {"cached", "reverie"}
        assert [one["why"] for one in job["left_out"]] == ["it has no recorded answer"]
        [row] = browser.json("/replay")["sessions"]
        assert row["session"] == "one" and row["policies"]["cached"]["ratio_to_cached"] == 1
        assert "In total: 1 session" in browser.get("/replay").text


def test_a_replay_can_be_cancelled_and_only_one_runs(tmp_path: Path, folder: Path) -> None:
    with served(tmp_path) as browser:
        order = {"folder": str(folder), "policy-reverie": "1"}
        browser.submit(f"/replay?folder={folder}", "/replay/start", **order)
        authorised = {"authorization": f"Bearer {browser.token}"}
        assert "already running" in browser.post("/api/replay/start", order, **authorised).text
        assert "was cancelled" in browser.submit("/replay", "/replay/cancel").text
        assert browser.json("/replay")["job"]["state"] == "cancelled"
        deadline = time.monotonic() + 10
        while _jobs():
            assert time.monotonic() < deadline
            time.sleep(0.05)


def _jobs() -> list[str]:
    """Replays that this process started."""
    found = list[str]()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
            if int(fields[1]) == os.getpid() and b"replay.job" in (entry.parent / "cmdline").read_bytes():
                found.append(entry.parent.name)
        except OSError:
            continue
    return found


def test_a_read_only_server_starts_nothing(tmp_path: Path, folder: Path) -> None:
    with served(tmp_path, read_only=True) as browser:
        assert "read-only" in browser.get(f"/replay?folder={folder}").text
        given = {"authorization": f"Bearer {browser.token}"}
        assert browser.post("/api/replay/start", {"folder": str(folder)}, **given).status in (404, 405)
