"""Hostile text in sessions of other agents: never obeyed, never learnt as the user's; and secrets in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.daemon.client import ensure_daemon, stop_daemon
from tests.daemon.hooks import Agent
from tests.daemon.services import run_hook, wait_for

ANSWER = ("assistant", [{"type": "text", "text": "Understood."}])


@pytest.fixture
def agent(own_home: Path, tmp_path: Path) -> Agent:
    agent = Agent(own_home / ".reverie", tmp_path / "shop")
    agent.home.mkdir(parents=True)
    return agent


def test_a_program_can_be_the_model_behind_the_hooks(agent: Agent, tmp_path: Path) -> None:
    program = tmp_path / "mind"
    program.write_text(
        f'#!/bin/sh\necho "$REVERIE_INSIDE" >{tmp_path}/inside\ncat >{tmp_path}/asked\necho Nothing new.\n'
    )
    program.chmod(0o755)
    (agent.home / "settings.toml").write_text(f'[connect]\nmodel = "command:{program}"\n')
    agent.record(("user", "No, always use pnpm instead of npm here."), ANSWER)
    payload = {"session_id": agent.session, "transcript_path": str(agent.transcript), "cwd": str(agent.cwd)}
    ensure_daemon(agent.home)
    try:
        assert run_hook("Stop", agent.home, payload) == ""
        wait_for(lambda: (tmp_path / "asked").exists())
        assert (tmp_path / "inside").read_text() == "1\n", "hooks of ours do nothing in it"
    finally:
        stop_daemon(agent.home)
