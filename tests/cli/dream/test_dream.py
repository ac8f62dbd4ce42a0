"""`reverie dream` as people run it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command
from tests.layers.dreams import BAKERY, GOOD, JOINED, House, house, writes
from tests.waiting import LIMIT_S, wait_until


@pytest.fixture
def place(reverie: Command, tmp_path: Path) -> House:
    folder = tmp_path / "bakery"
    folder.mkdir()
    reverie.extra |= {"REVERIE_MEMORY_PATH": str(folder / "memory"), "REVERIE_DISABLE_MEMORY": "0"}
    return house(folder)


def as_json(reverie: Command, *args: str, **more: Any) -> dict[str, Any]:
    return json.loads(reverie("dream", *args, "--json", **more).stdout)


def test_a_day_with_dreams(reverie: Command, place: House) -> None:
    """Status, a dry run, a dream, its review and log, and the way back."""
    mind = place.script(GOOD)
    status = as_json(reverie, "status")
    assert status["gate"] == "transcripts" and status["last_success"] is None
    assert "Not yet (transcripts)" in reverie("dream", "--model", mind).stdout
    shown = reverie("dream", "--dry-run", "--model", mind).stdout
    assert "remove project_oven_copy.md: joined into project_oven.md" in shown and "+It needs a 63 A fuse." in shown
    assert place.files == dict(BAKERY)

    done = as_json(reverie, "--now", "--model", mind)
    assert done["outcome"] == "landed" and {one["file"] for one in done["files"]} == {
        "project_oven.md",
        "project_oven_copy.md",
    }
    assert place.files["project_oven.md"] == JOINED
    status = as_json(reverie, "status")
    assert status["gate"] == "time" and status["last"]["outcome"] == "landed" and status["last_success"]
    review = reverie("dream", "review").stdout
    assert "change project_oven.md: joined with its copy" in review and "+It needs a 63 A fuse." in review
    log = as_json(reverie, "log")
    assert [one["version"] for one in log["dreams"]] == [done["version"]]
    assert [one["kind"] for one in log["runs"]] == ["dream_completed", "dream_completed"][-len(log["runs"]) :]

    assert "Undone:" in reverie("dream", "undo").stdout
    assert place.files == dict(BAKERY)
    assert "taken back already" in reverie("dream", "undo", code=2).stderr
    checks = json.loads(reverie("doctor", "--json", code=None).stdout)["checks"]
    assert "landed" in next(check for check in checks if check["name"] == "dream")["found"]


def test_a_dream_that_waits_is_reviewed_and_decided(reverie: Command, place: House) -> None:
    (reverie.home).mkdir(parents=True, exist_ok=True)
    (reverie.home / "settings.toml").write_text('[dream]\nmode = "inbox"\n')
    mind = place.script(GOOD)
    first = as_json(reverie, "--now", "--model", mind)
    assert first["outcome"] == "proposed" and place.files == dict(BAKERY)
    assert f"Dream {first['id']}" in reverie("dream", "review").stdout
    assert as_json(reverie, "status")["waiting"] == 1
    assert as_json(reverie, "reject") == {"rejected": first["id"]}
    second = as_json(reverie, "--now", "--model", mind)
    waiting = as_json(reverie, "review")["waiting"]
    assert waiting[0]["changes"][0]["diff"].startswith("--- a/")
    accepted = as_json(reverie, "accept", second["id"][:4])
    assert accepted["version"]["files"] and place.files["project_oven.md"] == JOINED
    assert "No dream waits" in reverie("dream", "accept", code=2).stderr


def test_a_dream_waits_on_request_and_is_accepted_file_by_file(reverie: Command, place: House) -> None:
    assert as_json(reverie, "--wait", "--model", place.script(GOOD))["outcome"] == "proposed"
    assert "needs --only" in reverie("dream", "accept", "--keep-rest", code=2).stderr
    part = as_json(reverie, "accept", "--only", "project_oven.md", "--keep-rest")
    assert part["left"] == {"project_oven_copy.md": "project_oven_copy.md: not accepted"}
    assert place.files["project_oven.md"] == JOINED and "project_oven_copy.md" in place.files
    assert [one["file"] for one in as_json(reverie, "review")["waiting"][0]["changes"]] == ["project_oven_copy.md"]
    as_json(reverie, "accept", "--only", "project_oven_copy")
    assert "project_oven_copy.md" not in place.files and as_json(reverie, "status")["waiting"] == 0


def test_a_refused_dream_says_why_and_changes_nothing(reverie: Command, place: House) -> None:
    mind = place.script(writes(dict.fromkeys(BAKERY, ""), "- all: reset"))
    done = reverie("dream", "--now", "--model", mind, code=1)
    assert "without naming them" in done.stderr and place.files == dict(BAKERY)
    status = as_json(reverie, "status")
    assert status["last"]["failures_in_a_row"] == 1 and status["gate"] == "retry"
    assert "would lose" in reverie("dream", "log").stdout


def test_memory_off_dreams_nothing_and_undo_stays_possible(reverie: Command, place: House) -> None:
    as_json(reverie, "--now", "--model", place.script(GOOD))
    reverie.extra["REVERIE_DISABLE_MEMORY"] = "1"
    assert "Memory is off" in reverie("dream", "--now", code=1).stderr
    reverie("dream", "undo")
    assert place.files == dict(BAKERY)


def test_a_running_dream_is_seen_and_killed_from_another_terminal(reverie: Command, place: House) -> None:
    mind = writes({"project_oven.md": JOINED}, "x").rpartition("say")[0] + "wait 1000\nsay late\n"
    process = reverie.start("dream", "--now", "--model", place.script(mind))
    running = list[dict[str, Any]]()

    def is_updating() -> bool:
        running[:] = as_json(reverie, "status")["running"]
        return bool(running) and running[0]["phase"] == "updating"

    wait_until(is_updating)
    assert running[0]["touched"] == ["project_oven.md"] and running[0]["tools"] == 2
    assert "killed" in reverie("dream", "kill").stdout
    assert process.wait(LIMIT_S) == 1
    assert place.files == dict(BAKERY)
    assert "No live session is dreaming" in reverie("dream", "kill", code=2).stderr


def test_a_purge_reaches_what_waits(reverie: Command, place: House) -> None:
    reverie.home.mkdir(parents=True, exist_ok=True)
    (reverie.home / "settings.toml").write_text('[dream]\nmode = "inbox"\n')
    as_json(reverie, "--now", "--model", place.script(GOOD))
    before = [path for path in place.memory.rglob("*.json") if "Electrician Petra" in path.read_text()]
    assert len(before) == 1
    reverie("memory", "purge", "Electrician Petra", "--yes")
    held = [path for path in place.memory.rglob("*.json") if "Electrician Petra" in path.read_text()]
    assert held == [] and as_json(reverie, "status")["waiting"] == 1


def test_a_dream_of_the_stand_in_is_told_as_such(reverie: Command) -> None:
    reverie.extra.pop("REVERIE_DISABLE_MEMORY", None)
    reverie.extra["ANTHROPIC_BASE_URL"] = "http://127.0.0.1:9"
    done = reverie("dream", "--now", "--model", "anthropic:claude-haiku-4-5")
    assert "done by the embedded model" in " ".join(done.stderr.split())
    assert "embedded agent" in done.stdout
