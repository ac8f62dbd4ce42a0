"""Real session files of Claude Code and Codex, with hooks: followed, read, and what hooks added is not the user's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reverie.memory.upkeep.followed_sessions import open_follower
from reverie.settings import load_settings
from reverie.storage.transcript.chain import conversation
from reverie.storage.transcript.file import read_records
from reverie.storage.transcript.view import View
from reverie.types import TextBlock
from tests.integration.programs import Run, installed, serve

pytestmark = pytest.mark.integration

SCRIPT = "when /And where/\n  say In the log.\nend\nsay Port 8080."
EVENTS = ("SessionStart", "UserPromptSubmit")


def hook(event: str) -> list[dict[str, object]]:
    said = {
        "hookSpecificOutput": {"hookEventName": event, "additionalContext": f"{event}: the keeper lives in Lisbon."}
    }
    return [{"hooks": [{"type": "command", "command": f"echo '{json.dumps(said)}'"}]}]


def check(source: Path, first: str, second: str) -> None:
    """Both passes over the source, and what the copy says the user wrote."""

    def follow() -> list[str]:
        return [one.outcome.value for one in open_follower(load_settings(source)).follow(source)]

    assert follow() in (["new"], ["grew"])
    assert follow() == ["unchanged"]
    (copy,) = load_settings(source).places.home.glob("projects/*/*.jsonl")
    history = View.of(conversation(read_records(copy).records)).history
    blocks = [block for entry in history for block in entry.message.content if isinstance(block, TextBlock)]
    assert [block.text for block in blocks if block.origin.is_users] == [one for one in (first, second) if one]
    assert any(entry.message.usage for entry in history)


def test_claude_code(run: Run, tmp_path: Path) -> None:
    claude = installed("claude", "lib/python*/site-packages/claude_agent_sdk/_bundled/claude")
    with serve(SCRIPT) as server:
        environment = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "simulated"}
        environment |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
        settings = json.dumps({"hooks": {event: hook(event) for event in EVENTS}})
        common = ("--output-format", "json", "--model", "claude-opus-5-5", "--settings", settings)
        first = json.loads(run(claude, "-p", "Which port?", *common, **environment))
        check(tmp_path / "home" / ".claude" / "projects", "Which port?", "")
        run(claude, "-p", "And where was it?", "--resume", first["session_id"], *common, **environment)
        check(tmp_path / "home" / ".claude" / "projects", "Which port?", "And where was it?")


def test_codex(run: Run, tmp_path: Path) -> None:
    codex = installed("node", "node_modules/.bin/codex")
    with serve(SCRIPT) as server:
        home = tmp_path / "codex"
        home.mkdir()
        (home / "config.toml").write_text(
            'model = "gpt-5"\nmodel_provider = "simulator"\n[model_providers.simulator]\nname = "simulator"\n'
            f'base_url = "{server.url}/v1"\nenv_key = "OPENAI_API_KEY"\nwire_api = "responses"\n',
            encoding="utf-8",
        )
        (home / "hooks.json").write_text(json.dumps({"hooks": {event: hook(event) for event in EVENTS}}))
        environment = {"CODEX_HOME": str(home), "OPENAI_API_KEY": "simulated"}
        common = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json")
        common = (*common, "--dangerously-bypass-hook-trust")
        run(codex, "exec", "Which port?", *common, **environment)
        check(home / "sessions", "Which port?", "")
        run(codex, "exec", "resume", "--last", "And where was it?", *common, **environment)
        check(home / "sessions", "Which port?", "And where was it?")
        (copy,) = load_settings(home).places.home.glob("projects/*/*.jsonl")
        assert '"hook"' in copy.read_text() and "the keeper lives in Lisbon" in copy.read_text()
