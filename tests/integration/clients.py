"""Today's clients and what every test of them shares: the programs, how they start, and what a scripted model says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.integration.programs import installed

FIRST, SECOND = {"port": 8080, "where": "server.log"}, {"port": 8080, "where": "in the log"}
CLAUDE_ENVIRONMENT = {"ANTHROPIC_API_KEY": "simulated", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
CODEX_OPTIONS = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json")
OPENCODE_ENVIRONMENT = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
AIDER_ENVIRONMENT = {"ANTHROPIC_API_KEY": "simulated", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
AIDER_FILE = "PORT = 8080\n" + "# a line that says nothing much\n" * 1_500


def agent_script(*rounds: str) -> str:
    """A model for agents of SDKs: it reads a log, does these rounds, and answers two questions with an object."""
    steps = ('call read_log {"name": "server.log"}', *rounds, f"say {json.dumps(FIRST)}")
    return f"when /And where/\n  say {json.dumps(SECOND)}\nend\n" + "\n---\n".join(steps)


def claude_code() -> Path:
    return installed("claude", "lib/python*/site-packages/claude_agent_sdk/_bundled/claude")


def claude_options(tools: str) -> tuple[str, ...]:
    return ("--allowedTools", tools, "--output-format", "json", "--model", "claude-opus-5-5")


def codex() -> Path:
    return installed("node", "node_modules/.bin/codex")


def opencode() -> Path:
    return installed("node", "node_modules/.bin/opencode")


def opencode_settings(**options: str) -> str:
    """The configuration of opencode, with these options of the provider."""
    models: dict[str, Any] = {"claude-opus-5": {}, "claude-haiku-4-5": {}}
    return json.dumps(
        {
            "autoupdate": False,
            "share": "disabled",
            "model": "anthropic/claude-opus-5",
            "small_model": "anthropic/claude-haiku-4-5",
            "provider": {"anthropic": {"options": {"apiKey": "simulated", **options}, "models": models}},
        }
    )


def aider() -> tuple[Path | str, ...]:
    """The start of its command: it asks nothing and prints plain text."""
    quiet = ("--no-git", "--yes-always", "--no-check-update", "--no-analytics", "--no-show-model-warnings")
    plain = ("--no-stream", "--no-fancy-input", "--no-pretty", "--no-show-release-notes", "--edit-format", "diff")
    return (installed("aider", "bin/aider"), "--model", "anthropic/claude-sonnet-4-5", *quiet, *plain)


def aider_script() -> str:
    """Edits of `server.py` in the form that aider finds in an answer: to 9090, then to 7070."""
    edit = "server.py\n<<<<<<< SEARCH\nPORT = {}\n=======\nPORT = {}\n>>>>>>> REPLACE"
    script = ""
    for asked, before, after in (("9090", 8080, 9090), ("7070", 9090, 7070)):
        first, *rest = edit.format(before, after).splitlines()
        script += f"when /make it {asked}/i\n  say {first}\n" + "".join(f"  | {line}\n" for line in rest) + "end\n"
    return script + "say Hm."
