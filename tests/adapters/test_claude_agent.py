"""The hooks for the Claude Agent SDK, with its own Claude Code over the simulator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.minds import Mind, Served, serve

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
PYTHON = Path(os.environ.get("REVERIE_TEST_ADAPTERS") or ROOT / ".venv-adapters" / "bin" / "python")
DRIVER = Path(__file__).with_name("claude_agent_driver.py")


def run(server: Served, folder: Path, *texts: str, resume: str = "") -> dict[str, Any]:
    """Runs the agent in a process of the environment that has the SDK."""
    given = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder), "LANG": "C.UTF-8"}
    given |= {"SIMULATOR": server.url, "STATE": str(folder), "PYTHONPATH": str(ROOT / "src")}
    return json.loads(start([str(DRIVER), resume, *texts], given, folder).strip().splitlines()[-1])


def start(arguments: list[str], environment: dict[str, str], folder: Path) -> str:
    if not PYTHON.exists():
        pytest.skip("there is no environment with the SDKs of adapters (REVERIE_TEST_ADAPTERS)")
    command = [str(PYTHON), "-P", *arguments]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=150, check=False
    )
    print(done.stdout, done.stderr, file=sys.stderr)
    assert done.returncode == 0, done.stderr[-2_000:]
    assert "hook of Reverie" not in done.stderr
    return done.stdout


def call(name: str) -> str:
    return f'call mcp__office__read_log {{"name": "{name}"}}'


def test_results_recall_and_extraction(tmp_path: Path) -> None:
    fact = "Please remember: I always want the prices of pears in euros, rounded to full euros."
    mind = Mind([f"{call('large-a')}\n{call('small')}", "say Three euros.", "say Four euros.", "say Five.", "say Six."])
    with serve(mind) as server:
        first = run(server, tmp_path, fact)
        assert first["answers"] == ["Three euros."]
        assert any("rounded to full euros" in text for text in first["memories"]), "learned when the agent stopped"
        kept = list(tmp_path.glob("home/projects/**/tool-results/*"))
        assert len(kept) == 1 and kept[0].read_text().startswith("line 0 of large-a")
        assert str(kept[0]) in mind.sent[-1] and "line 19 of small" in mind.sent[-1] and len(mind.sent[-1]) < 20_000
        second = run(server, tmp_path, "What are the prices of pears?", "And the prices of pears in euros again?")
        assert second["answers"] == ["Four euros.", "Five."]
        assert mind.sent[-2].count("> I always want the prices of pears") == 1, "recalled in another session"
        assert mind.sent[-1].count("> I always want the prices of pears") == 1, "once per session"
        assert "&lt;system-reminder" not in mind.sent[-1]
        third = run(server, tmp_path, "Go on.", resume=first["session"])
        assert third["session"] == first["session"] and str(kept[0]) in mind.sent[-1], "the same bytes after a restart"
    assert server.misses == []


def test_the_example_runs(tmp_path: Path) -> None:
    given = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    said = start([str(ROOT / "examples" / "11_claude_agent.py")], given | {"PYTHONPATH": str(ROOT / "src")}, tmp_path)
    assert said.count("is among them: True") == 2 and "520000" in said
