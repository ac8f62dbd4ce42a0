"""`reverie log`: lines for people, objects for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from reverie.cli.sessions.log import command
from reverie.runtime.background_log import BackgroundLog


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BackgroundLog:
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path / "h"))
    monkeypatch.chdir(tmp_path)
    return BackgroundLog(tmp_path / "h" / "logs" / "background.jsonl", "aaa-session-1")


def run(*arguments: str) -> str:
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_an_empty_log_says_so(log: BackgroundLog) -> None:
    assert run().startswith("Nothing in the background log") and run("--json") == ""


def test_newest_lines_filtered(log: BackgroundLog) -> None:
    for n in range(60):
        log.write("task_failed", task=f"notes-{n}", seconds=1.5, error="Cannot write: full\x1b[2J", where=None)
    BackgroundLog(log.path, "bbb-2").write("retry", files=["a", "ä"])
    lines = run().splitlines()
    assert len(lines) == 50 and "retry" in lines[-1] and 'files=["a", "ä"]' in lines[-1] and "bbb-2" in lines[-1]
    assert 'aaa-sess  task failed       task=notes-59  seconds=1.5  error="Cannot write: full [2J"' in lines[-2]
    assert "where" not in lines[-2]
    assert len(run("-n", "3", "--kind", "task").splitlines()) == 3
    (only,) = run("--session", "bbb", "--json").splitlines()
    entry = json.loads(only)
    assert (entry["kind"], entry["session"], entry["files"]) == ("retry", "bbb-2", ["a", "ä"]) and "time" in entry
    assert run("--kind", "nope").startswith("Nothing of that kind")
