"""One home of Claude Code, used by Claude Code and by our own agent: hooks hear the same, and their answers count."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.programs import Run, installed, serve

pytestmark = pytest.mark.integration

SCRIPT = """
when /Look around/
  call Bash {"command": "ls", "description": "list"}
  ---
  say Nothing there.
end
call Bash {"command": "ls", "description": "list"}
call Bash {"command": "cat nowhere", "description": "read"}
---
call Agent {"description": "look", "prompt": "Look around, please.", "subagent_type": "KIND"}
---
repeat forever
  say The result: {result}
end
"""
EVENTS = (
    *("SessionStart", "InstructionsLoaded", "UserPromptSubmit", "UserPromptExpansion", "PreToolUse", "PostToolUse"),
    *("PostToolUseFailure", "PostToolBatch", "Stop", "SubagentStart", "SubagentStop", "SessionEnd"),
)
ONLY_THERE = {"effort", "session_crons", "context", "model"}


def prepare(tmp_path: Path) -> None:
    answer = {"hookEventName": "PostToolUse", "updatedToolOutput": {"stdout": "replaced", "stderr": ""}}
    answer["updatedToolOutput"] |= {"interrupted": False, "isImage": False}  # type: ignore[operator]
    replace = f"(cat; echo) >> \"$HOOK_LOG\"; echo '{json.dumps({'hookSpecificOutput': answer})}'"
    hooks: dict[str, Any] = {}
    for event in EVENTS:
        command = replace if event == "PostToolUse" else '(cat; echo) >> "$HOOK_LOG"'
        hooks[event] = [{"hooks": [{"type": "command", "command": command, "timeout": 20}]}]
    home = tmp_path / "home" / ".claude"
    (home / "commands" / "front").mkdir(parents=True)
    (home / "settings.json").write_text(json.dumps({"hooks": hooks, "permissions": {"allow": ["Bash(cat:*)"]}}))
    (home / "commands" / "front" / "fix.md").write_text("Fix $1 of $ARGUMENTS.\n")
    (tmp_path / "work" / "CLAUDE.md").write_text("Use tabs.\n")


def heard(log: Path) -> dict[str, dict[str, Any]]:
    """The first input of each event."""
    found = [json.loads(line) for line in log.read_text().splitlines() if line.strip()]
    return {one["hook_event_name"]: one for one in reversed(found)}


def test_hooks_of_one_home_hear_the_same_in_both(run: Run, tmp_path: Path) -> None:
    claude = installed("claude", "lib/python*/site-packages/claude_agent_sdk/_bundled/claude")
    prepare(tmp_path)
    told = dict[str, dict[str, dict[str, Any]]]()
    for name, kind, command in (
        ("theirs", "general-purpose", (claude, "-p", "--allowedTools", "Bash,Agent", "--model", "claude-opus-5-5")),
        ("ours", "general", (sys.executable, "-m", "reverie", "run", "--model", "anthropic:claude-opus-5-5")),
    ):
        with serve(SCRIPT.replace("KIND", kind)) as server:
            environment = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "simulated"}
            environment |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "HOOK_LOG": str(tmp_path / name)}
            run(*command, "/front:fix one two", **environment)
            told[name] = heard(tmp_path / name)
    theirs, ours = told["theirs"], told["ours"]
    assert set(theirs) <= set(ours) and set(ours) == set(EVENTS)
    for event, given in theirs.items():
        missing = set(given) - set(ours[event]) - ONLY_THERE
        assert not missing, f"{event}: {missing}"
    same = ("command_name", "command_args", "command_source", "expansion_type", "prompt")
    assert [theirs["UserPromptExpansion"][key] for key in same] == [ours["UserPromptExpansion"][key] for key in same]
    assert set(theirs["PostToolUse"]["tool_response"]) & set(ours["PostToolUse"]["tool_response"]) >= {
        "stdout",
        "stderr",
        "interrupted",
    }
