"""A home of an older version is used as it is: sessions go on, memory opens, nothing has to be converted."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from reverie.cli.app import commands
from reverie.models.request_log import read_log
from reverie.paths.places import slug

ARCHIVE = Path(__file__).parent / "data" / "old-home" / "home.tar.gz"
MADE_IN = "/tmp/reverie-old-home"
IMPORTED = "5d1c6a52"

Reverie = Callable[..., str]


@pytest.fixture
def old_home(prefix_watch: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The home, moved to a folder of its own; its path is short, because folders are named after it."""
    root = Path(tempfile.mkdtemp(prefix="rv")).resolve()
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(root, filter="tar")
    _moved(root)
    shutil.copy(root / "requests.jsonl", prefix_watch)
    monkeypatch.setenv("HOME", str(root))
    monkeypatch.setenv("REVERIE_HOME", str(root / "home"))
    for name in ("MICROCOMPACT_TIME", "MICROCOMPACT_ECONOMIC", "DREAM"):  # they act because time has passed
        monkeypatch.setenv(f"REVERIE_FLAG_{name}", "0")
    monkeypatch.chdir(root / "project")
    yield root
    shutil.rmtree(root)


def _moved(root: Path) -> None:
    old, new = slug(Path(MADE_IN)), slug(root)
    for folder, _, names in os.walk(root, topdown=False):
        for name in names if "objects" not in Path(folder).parts else ():
            path = Path(folder, name)
            data, times = path.read_bytes(), path.stat()
            changed = data.replace(MADE_IN.encode(), str(root).encode()).replace(old.encode(), new.encode())
            if changed != data:
                path.write_bytes(changed)
                os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        if old in Path(folder).name:
            Path(folder).rename(Path(folder).with_name(Path(folder).name.replace(old, new)))


@pytest.fixture
def reverie(old_home: Path) -> Reverie:
    """Runs a command in the project and returns its standard output."""

    def run(*args: str) -> str:
        done = CliRunner().invoke(commands, args, catch_exceptions=False, standalone_mode=False)
        assert done.exception is None and done.return_value in (None, 0), done.output
        return done.stdout

    return run


def told(reverie: Reverie, *args: str) -> Any:
    return json.loads(reverie(*args, "--json"))


def sessions(reverie: Reverie) -> list[str]:
    return [one["id"] for one in told(reverie, "sessions", "list")["sessions"]]


def test_every_session_is_listed_and_shown(reverie: Reverie) -> None:
    found = sessions(reverie)
    assert len(found) == 9 and "lamps" in found
    for one in found:
        reverie("sessions", "show", one)
        assert json.loads(reverie("sessions", "show", one, "--json").splitlines()[0])
        assert told(reverie, "context", one)
        assert told(reverie, "cost", one)
    shown = reverie("sessions", "show", "lamps")
    for text in ("Look at the long log of the lamps.", "Read file number 10, please.", "lamp 7 is out"):
        assert text in shown
    assert "Lamp 1 stands there." in reverie("sessions", "show", IMPORTED)
    assert "0999 lamp" not in shown and "0399 lamp" in Path(_large_result(reverie)).read_text()


def _large_result(reverie: Reverie) -> Path:
    (found,) = Path(reverie("sessions", "path", "lamps").strip()).with_suffix("").glob("tool-results/*.txt")
    return found


def test_each_session_goes_on_and_its_prefix_is_extended(reverie: Reverie, prefix_watch: Path) -> None:
    here = set(sessions(reverie))
    before = {one.conversation: one.parts for one in read_log(prefix_watch) if one.conversation in here}
    assert len(before) == 8
    for session, parts in before.items():
        reverie("run", "-q", "--resume", session, "Say one more thing.")
        request = next(one for one in read_log(prefix_watch) if one.conversation == session and one.parts != parts)
        assert request.parts[: len(parts)] == parts and len(request.parts) > len(parts), session


def test_the_newest_and_the_imported_session_go_on(reverie: Reverie, old_home: Path) -> None:
    assert reverie("run", "-q", "--continue", "Say one more thing.")
    script = old_home / "more.script"
    script.write_text("when /pier/\n  say I know of the pier.\nend\n")
    assert "pier" in reverie("run", "-q", "--resume", IMPORTED, "-m", f"scripted:{script}", "What of the pier?")


def test_the_compaction_is_taken_back_and_made_again(reverie: Reverie) -> None:
    small = told(reverie, "context", "lamps")["used"]
    assert reverie("compact", "undo", "-s", "lamps")
    assert told(reverie, "context", "lamps")["used"] > small
    assert "Lamp 7 is never switched off" in reverie("compact", "--preview", "-s", "lamps")
    assert reverie("run", "-q", "--resume", "lamps", "Read one more.")
    assert "Lamp 7 is never switched off" in reverie("pin", "-s", "lamps")
    assert "Lamp 7 is out" in reverie("notes", "lamps")


def test_memory_is_listed_changed_and_taken_back(reverie: Reverie) -> None:
    listed = told(reverie, "memory", "list")["memories"]
    assert {one["type"] for one in listed} == {"user", "feedback", "project", "reference"}
    assert "trust: inferred" in reverie("memory", "show", "feedback_commits")
    assert "8081" in reverie("memory", "show", "staging_port") and "8081" in reverie(
        "recall", "which port has staging?"
    )
    assert "imperative" in reverie("memory", "search", "imperative")
    versions = told(reverie, "memory", "log", "-n", "100")["versions"]
    writers = {one["writer"] for one in versions}
    assert {"user", "agent", "dream"} <= writers and any(one["reverses"] for one in versions)
    assert all(reverie("memory", "diff", one["short"]) for one in versions)
    assert "project_foghorn_again.md" in reverie("dream", "undo")
    assert "project_foghorn_again.md" in [one["file"] for one in told(reverie, "memory", "list")["memories"]]
    reverie("remember", "The staging port is 8082")
    assert "8082" in reverie("memory", "show", "project_staging_port_2")
    assert "8081" in reverie("memory", "show", "project_staging_port.md"), "nothing is replaced without a choice"
    reverie("memory", "undo")
    assert "8081" in reverie("memory", "show", "staging_port")
    reverie("memory", "check", "--fix")
    reverie("memory", "check")


def test_what_waits_in_the_inbox_can_be_accepted(reverie: Reverie) -> None:
    (item,) = told(reverie, "memory", "inbox")["items"]
    assert "Ivo loads the kiln" in reverie("memory", "inbox", "show", item["id"])
    reverie("memory", "inbox", "accept", item["id"])
    assert "Ivo loads the kiln" in reverie("memory", "show", "project_kiln")


def test_the_rest_of_the_home_is_read(reverie: Reverie, old_home: Path) -> None:
    assert told(reverie, "dream", "status") and "foghorn" in reverie("dream", "log")
    doctor = told(reverie, "doctor")
    assert doctor
    (team,) = told(reverie, "team", "status")
    assert team["team"] == "example" and [one["unread"] for one in team["members"]].count(1) == 1
    assert "reviewer" in reverie("agents", "list")
    assert "48" in reverie("settings", "window.context_window")
    assert "make lamps" in reverie("settings", "permissions.allow") or "trust" in reverie("settings")
    assert "team_memory" in reverie("settings", "--flags")
    assert told(reverie, "cost", "--all") and reverie("log")
    assert "nothing changed" in reverie("memory", "sync")
    (old_home / "shared" / "project_pier.md").write_text(
        "---\nname: Pier\ndescription: The pier is closed on Sundays\ntype: project\n---\nIt is closed on Sundays.\n"
    )
    assert "received" in reverie("memory", "sync")
    assert "closed on Sundays" in reverie("memory", "show", "team/project_pier")
    (tabs,) = (old_home / "home" / "agent-memory" / "reviewer").glob("feedback_tabs.md")
    assert "Use tabs" in tabs.read_text()


def test_a_session_can_be_rewound_and_deleted(reverie: Reverie) -> None:
    assert "Read the next file" in reverie("rewind", "-1", "-s", "lamps")
    reverie("sessions", "delete", "lamps", "--yes")
    assert "lamps" not in sessions(reverie)
