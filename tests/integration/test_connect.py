"""`reverie connect` with the real programs: the plug-in is valid and loads, hooks arrive, and nothing stays behind."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.programs import Run, installed, objects, serve

pytestmark = pytest.mark.integration

REVERIE = (sys.executable, "-m", "reverie")
SCRIPT = "say Hello there.\n"


def claude() -> Path:
    return installed("claude", "lib/python*/site-packages/claude_agent_sdk/_bundled/claude")


@pytest.fixture
def variables() -> Iterator[dict[str, str]]:
    with serve(SCRIPT) as server:
        yield {
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "simulated",
            "OPENAI_API_KEY": "simulated",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }


def status(run: Run, **variables: str) -> dict[str, Any]:
    return json.loads(run(*REVERIE, "connect", "--status", "--json", **variables))


def configuration(folder: Path) -> dict[str, bytes]:
    """The files that `connect` may touch."""
    names = ("settings.json", "settings.local.json", "hooks.json", "config.toml")
    found = [path for path in folder.rglob("*") if path.name in names and ".reverie" not in path.parts]
    return {str(path): path.read_bytes() for path in found}


def test_claude_code_loads_the_plug_in_and_forgets_it(run: Run, tmp_path: Path, variables: dict[str, str]) -> None:
    home, program = tmp_path / "home", claude()
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text('{\n\t"permissions": {"deny": ["WebFetch"]}\n}')
    before = configuration(tmp_path)
    run(*REVERIE, "connect", "claude-code", "--yes")
    plugin = home / ".reverie" / "connect" / "claude-code" / "reverie"
    assert "Validation passed" in run(program, "plugin", "validate", "--profile", "directory", plugin)
    run(program, "plugin", "validate", "--strict", plugin.parent)
    text = "Don't use `make` on \"Fridays\"; it costs $5 & 'more'"
    run(program, "-p", f"/reverie:remember {text}", **variables)
    said = status(run)
    assert said["problems"] == [] and said["service"]["events"] >= 3, "hooks reached the service"
    memory = Path(run(*REVERIE, "memory", "path").strip())
    assert memory.is_relative_to(home / ".claude") and any(text in path.read_text() for path in memory.glob("*.md"))
    assert "Hello there." in run(program, "-p", "/reverie:memory", **variables)
    run(*REVERIE, "disconnect")
    assert configuration(tmp_path) == before
    named = [path for path in (home / ".claude" / "plugins").rglob("*") if "reverie" in path.name]
    named += [path for path in (home / ".claude" / "plugins").glob("*.json") if "reverie" in path.read_text()]
    assert named == [] and not (plugin.parent / ".claude-plugin").exists()
    assert json.loads(run(*REVERIE, "connect", "--status", "--json"))["service"] is None
    assert "Hello there." in run(program, "-p", "Hello", **variables)
    left = (
        [path.name for path in (home / ".claude" / "plugins").glob("*")]
        if (home / ".claude" / "plugins").exists()
        else []
    )
    assert not {"data", "marketplaces", "known_marketplaces.json", "installed_plugins.json"}.intersection(left)


def test_claude_code_keeps_its_memory_where_we_look(run: Run, tmp_path: Path, variables: dict[str, str]) -> None:
    run(*REVERIE, "connect", "claude-code", "--yes")
    work = tmp_path / "work"
    repo, long = work / "my.repo", work / ("a" * 120) / ("b" * 120)
    for folder in (repo / "deep", work / "döts and ünïcode 𝕏", long):
        folder.mkdir(parents=True)
    git = ["git", "-C", str(repo), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"], ["worktree", "add", "-q", "../tree"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    (work / "link").symlink_to(repo)
    for folder in (repo / "deep", work / "tree", work / "link", work / "döts and ünïcode 𝕏", long):
        memory = Path(run(*REVERIE, "memory", "path", "-C", folder).strip())
        if memory.is_dir():
            memory.rmdir()
        run("env", "-C", folder, claude(), "-p", "Hello", **variables)
        assert memory.is_dir(), f"Claude Code makes this folder when it starts: {memory}"


def test_one_project_is_connected_by_its_local_file(run: Run, tmp_path: Path, variables: dict[str, str]) -> None:
    subprocess.run(["git", "init", "-q", tmp_path / "work"], check=True)
    run(*REVERIE, "connect", "claude-code", "--project", "--yes")
    assert [path.removeprefix(str(tmp_path)) for path in configuration(tmp_path)] == [
        "/work/.claude/settings.local.json"
    ]
    trusted = {"projects": {str(tmp_path / "work"): {"hasTrustDialogAccepted": True}}}
    (tmp_path / "home" / ".claude.json").write_text(json.dumps(trusted))  # as the dialogue records it
    run(claude(), "-p", "Hello", **variables)
    assert status(run)["service"]["events"] >= 3
    run(*REVERIE, "disconnect")
    assert configuration(tmp_path) == {} and not (tmp_path / "work" / ".claude").exists()


def test_codex_trusts_the_hooks_and_forgets_them(run: Run, tmp_path: Path, variables: dict[str, str]) -> None:
    program = installed("node", "node_modules/.bin/codex")
    codex = tmp_path / "home" / ".codex"
    codex.mkdir()
    (codex / "config.toml").write_text(
        'model = "gpt-5" # mine\nmodel_provider = "simulator"\n[model_providers.simulator]\nname = "simulator"\n'
        f'base_url = "{variables["ANTHROPIC_BASE_URL"]}/v1"\nenv_key = "OPENAI_API_KEY"\nwire_api = "responses"',
        encoding="utf-8",
    )
    (codex / "hooks.json").write_text('{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}')
    before = configuration(tmp_path)
    common = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json")

    def ask(prompt: str) -> None:
        events = objects(run(program, "exec", prompt, *common, **variables))
        assert events[-1]["type"] == "turn.completed", events

    run(*REVERIE, "connect", "codex", "--yes")
    ask("Hello")
    shown = subprocess.run(
        [*REVERIE, "connect", "--status"],
        env={"HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown.returncode == 1 and "Codex skips 6 of 6 hooks" in shown.stdout and "not running" in shown.stdout
    path = f"{program.parent}:{variables.get('PATH', '/usr/local/bin:/usr/bin:/bin')}"
    run(*REVERIE, "connect", "codex", "--trust-hooks", "--yes", PATH=path)
    ask("Hello again")
    said = status(run)
    assert said["problems"] == [] and said["service"]["events"] >= 3
    run(*REVERIE, "disconnect")
    assert configuration(tmp_path) == before
