"""Hooks of a running session: who is told of what, and how often."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from reverie.session import Session
from tests.sessions import ended, in_session, script, turn


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    for flag in ("EXTRACTION", "SESSION_NOTES", "DREAM"):
        monkeypatch.setenv(f"REVERIE_FLAG_{flag}", "0")


def configure(text: str) -> None:
    home = Path(os.environ["REVERIE_HOME"])
    home.mkdir(parents=True, exist_ok=True)
    (home / "settings.toml").write_text(text)


def heard(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().split("\n") if line] if log.exists() else []


def test_post_tool_use_hears_only_of_calls_that_ran(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    refuse = tmp_path / "refuse.sh"
    refuse.write_text("if grep -q forbidden; then echo no >&2; exit 2; fi\n")
    configure(
        f'[[hooks.PreToolUse]]\ncommand = "sh {refuse}"\n'
        f'[[hooks.PostToolUse]]\ncommand = "(cat; echo) >> {log}"\n'
        f'[[hooks.PostToolUseFailure]]\ncommand = "(cat; echo) >> {log}"\n'
        '[permissions]\ndeny = ["Bash(cat:*)"]\n'
    )
    calls = (
        *('Bash {"command": "ls forbidden"}', 'Bash {"command": "cat denied"}', 'Bash {"command": "touch asked"}'),
        *('Nosuch {"a": 1}', 'Bash {"wrong": "input"}', 'Bash {"command": "ls nowhere"}', 'Bash {"command": "ls ran"}'),
    )
    (tmp_path / "ran").touch()
    model = script(tmp_path, "".join(f"call {call}\n---\n" for call in calls) + "say done\n")
    in_session(lambda session: turn(session, "go"), cwd=tmp_path, model=model)
    assert [(one["hook_event_name"], one["tool_input"]) for one in heard(log)] == [
        ("PostToolUseFailure", {"command": "touch asked"}),  # in the sandbox, and nobody could be asked about more
        ("PostToolUseFailure", {"command": "ls nowhere"}),
        ("PostToolUse", {"command": "ls ran"}),
    ]


AGENTS = {
    "fork": '"description": "look", "prompt": "Look."',
    "sub_agent": '"description": "look", "prompt": "Look.", "subagent_type": "general"',
    "background": '"description": "look", "prompt": "Look.", "subagent_type": "general", "run_in_background": true',
}


@pytest.mark.parametrize("kind", AGENTS)
def test_subagent_stop_fires_once_for_each_agent(tmp_path: Path, kind: str) -> None:
    log, stops = tmp_path / "log.jsonl", tmp_path / "stops.jsonl"
    configure(
        f'[[hooks.SubagentStop]]\ncommand = "(cat; echo) >> {log}"\n'
        f'[[hooks.Stop]]\ncommand = "(cat; echo) >> {stops}"\n'
    )
    agent = f"call Agent {{{AGENTS[kind]}}}\n"
    play = f"{agent}{agent}---\nsay Waiting.\n---\nsay Over.\n---\nsay Over.\n\n[agent]\nsay I looked.\n"
    in_session(lambda session: turn(session, "go"), cwd=tmp_path, model=script(tmp_path, play))
    told = heard(log)
    assert [one["hook_event_name"] for one in told] == ["SubagentStop"] * 2
    assert len({one["agent_id"] for one in told}) == 2
    assert all(one["last_assistant_message"] == "I looked." and one["stop_hook_active"] is False for one in told)
    assert all(one["hook_event_name"] == "Stop" for one in heard(stops)), "the main agent has its own"


def test_subagent_stop_may_send_an_agent_back_to_work(tmp_path: Path) -> None:
    log, hook = tmp_path / "log.jsonl", tmp_path / "hook.sh"
    hook.write_text(
        f'said=$(cat); echo "$said" >> {log}\n'
        "case \"$said\" in *'\"stop_hook_active\": false'*) echo 'Count again.' >&2; exit 2;; esac\n"
    )
    configure(f'[[hooks.SubagentStop]]\ncommand = "sh {hook}"\n')
    agent = "[agent]\nwhen /Count again/\n  say Four.\nend\nsay Three.\n"
    play = f"call Agent {{{AGENTS['sub_agent']}}}\n---\nsay It says: {{result}}\n\n{agent}"
    events = in_session(lambda session: turn(session, "go"), cwd=tmp_path, model=script(tmp_path, play))
    assert "Four." in ended(events).text
    assert [one["stop_hook_active"] for one in heard(log)] == [False, True]


def test_subagent_stop_fires_for_a_teammate_when_it_leaves(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    configure(f'[[hooks.SubagentStop]]\ncommand = "(cat; echo) >> {log}"\n')
    mate = script(tmp_path, "say North is clear.\n---\nsay Bye.\n", "mate.script")
    play = f"""
call Agent {{"description": "scout", "prompt": "Scout.", "name": "sam", "teammate": true, "model": "{mate}"}}
---
say Waiting.
---
call SendMessage {{"to": "sam", "message": {{"type": "shutdown_request", "request_id": "r1", "reason": "done"}}}}
---
say Ended.
---
say Over.
---
say Over.
"""

    async def work(session: Session) -> None:
        await turn(session, "go")

    in_session(work, cwd=tmp_path, model=script(tmp_path, play))
    assert [(one["agent_name"], one["last_assistant_message"]) for one in heard(log)] == [("sam", "Bye.")]
