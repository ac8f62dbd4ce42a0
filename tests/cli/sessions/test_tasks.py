"""`reverie tasks` against sessions that live in other processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from reverie.cli.sessions.tasks import command
from reverie.errors import UserError
from reverie.storage.lease import Lease

SESSION = """
import asyncio, sys
from pathlib import Path
from reverie.runtime.background_log import BackgroundLog
from reverie.runtime.live import LiveServer
from reverie.storage.lease import Lease
from reverie.runtime.tasks import Tasks
from reverie.types import Purpose
async def forever(handle):
    handle.progress("reading notes.md")
    await asyncio.Event().wait()
async def quick(handle):
    pass
async def main():
    home, id, listens = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "listens"
    folder = home / "projects" / "slug" / id
    folder.mkdir(parents=True)
    path = home / "run" / (id + ".sock")
    tasks = Tasks(BackgroundLog(home / "logs" / "background.jsonl", id), lambda info: None)
    with Lease.take(folder / Lease.NAME, info={"session": id, "socket": str(path) if listens else None}):
        async with LiveServer(path, tasks.verbs()):
            await tasks.start(Purpose.EXTRACTION, "Learning", quick).wait()
            tasks.start(Purpose.NOTES, "Updating notes", forever)
            await asyncio.sleep(0)
            print("ready", flush=True)
            await asyncio.Event().wait()
asyncio.run(main())
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path / "h"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "h"


@pytest.fixture
def sessions(home: Path) -> Iterator[dict[str, int]]:
    """Two that listen and one that does not."""
    arguments = [("aaa-1", "listens"), ("bbb-2", "listens"), ("ccc-3", "silent")]
    started = [
        subprocess.Popen([sys.executable, "-c", SESSION, str(home), *each], stdout=subprocess.PIPE)
        for each in arguments
    ]
    for process in started:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    yield {id: process.pid for (id, _), process in zip(arguments, started, strict=True)}
    for process in started:
        process.kill()
        process.communicate()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)


def test_without_sessions_there_are_no_tasks(home: Path) -> None:
    assert run().output == "No background tasks.\n"
    assert json.loads(run("list", "--json").output) == []
    missing = run("--session", "x")
    assert isinstance(missing.exception, UserError) and "No live session begins with 'x'" in str(missing.exception)


def test_listing_for_people_and_for_programs(sessions: dict[str, int]) -> None:
    lines = run().output.splitlines()
    assert len(lines) == 4
    assert sum("running" in line and "Updating notes: reading notes.md" in line for line in lines) == 2
    assert sum("completed" in line and "Learning" in line for line in lines) == 2
    for way in (["--json"], ["list", "--json"], ["--json", "list"]):
        listed = json.loads(run(*way).output)
        assert {(task["session"], task["pid"]) for task in listed} == {
            ("aaa-1", sessions["aaa-1"]),
            ("bbb-2", sessions["bbb-2"]),
        }
    only = json.loads(run("list", "--session", "aaa", "--json").output)
    assert {task["session"] for task in only} == {"aaa-1"}


def test_killing_by_the_beginning_of_an_id(sessions: dict[str, int]) -> None:
    tasks = [task for task in json.loads(run("--json").output) if task["state"] == "running"]
    several = run("kill", "notes-")
    assert isinstance(several.exception, UserError)
    assert "2 running tasks begin with 'notes-'" in str(several.exception) and tasks[0]["id"] in str(several.exception)
    assert run("kill", tasks[0]["id"]).output == f"Killed {tasks[0]['id']} (Updating notes).\n"
    ended = json.loads(run("kill", "notes-", "--session", tasks[1]["session"], "--json").output)
    assert (ended["id"], ended["state"]) == (tasks[1]["id"], "killed")
    nothing = run("kill", "notes-")
    assert isinstance(nothing.exception, UserError) and "no task is running" in str(nothing.exception)
    assert {task["state"] for task in json.loads(run("--json").output)} == {"completed", "killed"}


def test_a_session_that_does_not_answer_is_named_and_the_others_are_shown(home: Path, sessions: dict[str, int]) -> None:
    folder = home / "projects" / "slug" / "ddd-4"
    folder.mkdir()
    with Lease.take(folder / Lease.NAME, info={"session": "ddd-4", "socket": str(home / "run" / "nobody.sock")}):
        result = run()
    assert f"Session ddd-4 (PID {os.getpid()}) is left out: No live session listens" in result.stderr
    assert len(result.stdout.splitlines()) == 4


def test_help_shows_an_example() -> None:
    for arguments in (["--help"], ["list", "--help"], ["kill", "--help"]):
        assert "reverie tasks" in run(*arguments).output and "Example" in run(*arguments).output


def test_it_loads_no_event_loop(home: Path) -> None:
    code = "import sys; from reverie.cli.sessions.tasks import command; command([], standalone_mode=False)"
    code += "; sys.exit('asyncio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0
