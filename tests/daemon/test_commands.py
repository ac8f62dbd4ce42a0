"""The commands of the plug-in: they work as the first thing in a session, and say where a text comes from."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from reverie.connect.plugin_files import plugin_files
from tests.daemon.hooks import Agent
from tests.daemon.test_work import do, places
from tests.waiting import LIMIT_S


@pytest.fixture
def agent(own_home: Path, tmp_path: Path) -> Agent:
    agent = Agent(own_home / ".reverie", tmp_path / "shop")
    agent.home.mkdir(parents=True)
    return agent


def run_command(agent: Agent, name: str, text: str) -> str:
    """As Claude Code runs a command of the plug-in."""
    script = plugin_files(agent.home, agent.home / "socket")["reverie/reverie.sh"]
    environment = {"CLAUDE_CODE_SESSION_ID": agent.session, "HOME": str(agent.home.parent), "PATH": "/usr/bin:/bin"}
    command = ["sh", "-c", script.decode(), "sh", name]
    done = subprocess.run(
        command,
        input=f"{text}\n",
        cwd=agent.cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0 and not done.stderr, done
    return " ".join(done.stdout.split())


def test_a_pin_is_possible_before_the_first_turn_and_stays_with_the_session(agent: Agent) -> None:
    assert run_command(agent, "pin", "Never touch the generated files") == "Pinned as 1."
    assert run_command(agent, "pin", "Ask before a release") == "Pinned as 2."
    agent.record(("user", "List the files"), ("assistant", [{"type": "text", "text": "There are none."}]))
    assert do(agent)["copy"] == "grew"
    assert "There are none." in places(agent).transcript(agent.session).read_text()
    start = agent.context("SessionStart", source="compact")
    assert "> Never touch the generated files\n> Ask before a release" in start
    assert "nothing to pin" in run_command(Agent(agent.home, agent.cwd, session=agent.session[:-1] + "6"), "pin", " ")


def test_a_text_for_memory_was_entered_and_does_not_come_from_a_pipe(agent: Agent) -> None:
    said = run_command(agent, "remember", "The staging port is 8080")
    assert "project_staging_port.md" in said and "entered in another program" in said and "pipe" not in said
